"""Recalled lines are checked against the working tree: what it does not have is labelled stale."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from test_hooks_of_hosts import answer
from test_projects import commit, git, say, shop  # noqa: F401 - the fixture

from lab.evals.recalled_blocks import read_back
from memoriter.extensions.projects.checking import Tree
from memoriter.recall.render import Line, render

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

FILES = {
    "src/app.py": "import argparse\n# --dry_run\nparser.add_argument('--fast')\n",
    "packages/web/src/index.ts": "export {}\n",
    "scripts/deploy.sh": "#!/bin/sh\n",
    "Makefile": "PORT := 1\ntest: lint  ## run\n\ttrue\nlint check:\n\ttrue\n",
    "justfile": "build target='x':\n  true\n@quiet:\n  true\n",
    "package.json": '{"scripts": {"dev": "vite --port 5173"}, "dependencies": {"react": "^18.2.0", "vite": "5.0.1"}}',
    "pyproject.toml": '[project]\nrequires-python = ">=3.11"\ndependencies = ["django>=4.2,<5", "flask==2.1"]\n',
    "compose.yaml": 'services:\n  db:\n    image: postgres:14\n    ports: ["5433:5432"]\n',
}


@pytest.fixture
def tree(shop: Path) -> Path:  # noqa: F811 - the fixture
    """A repository with a few files of each kind."""
    for name, text in FILES.items():
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text(text, "utf-8")
    git(shop, "add", ".")
    commit(shop, "more.txt")
    return shop


def found(tree: Tree, line: str) -> list[str]:
    return [name for name in tree.missing(line) if name]


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("The entry point is src/app.py.", []),
        ("The entry point is src/main.py, not src/app.py.", ["src/main.py"]),
        ("入口是src/main.py，脚本在scripts/deploy.sh。", ["src/main.py"]),
        ("Styles are in src/index.ts.", []),  # of packages/web
        ("The old code is in `src/legacy` and `packages/web`.", ["src/legacy"]),
        ("deploy.sh runs at night; rollback.sh does not.", ["rollback.sh"]),
        ("We use TCP/IP, Node.js, feature/login and and/or; see https://x.org/a/b.md and ~/notes/x.md.", []),
        ("Never read ../../etc/hosts.md or /etc/app.yaml.", []),
        ("Run `make test`, then `make deploy`.", ["make deploy"]),
        ("Please make sure that we just do it.", []),
        ("Build with just build; `just publish` uploads.", ["just publish"]),
        ("Start it by npm run dev, check by npm run lint.", ["script lint"]),
        ("Use src/app.py --fast --dry-run --no-cache.", ["--no-cache"]),
        ("Other programs have --no-cache.", []),
        ("The dev server is on port 5173, the old one on localhost:3000.", ["port 3000"]),
        ("数据库的端口是5433，以前端口是6000。", ["port 6000"]),
        ("We are on Django 4.2 and Python 3.12, with React 18.3.", []),
        ("Django 3.2, Python 3.9, flask 2.0, React 17", ["Django 3.2", "Python 3.9", "flask 2.0", "React 17"]),
        ("It runs on Postgres 14; the old server had Postgres 12.", ["Postgres 12"]),
        ("version 1.2.3 of the API, section 4.2, numpy 1.26", []),
    ],
)  # fmt: skip
def test_a_line_names_what_the_tree_does_not_have(tree: Path, line: str, missing: list[str]) -> None:
    assert found(Tree(tree), line) == missing


def test_a_file_that_is_deleted_is_missing_before_the_commit(tree: Path) -> None:
    (tree / "src" / "app.py").unlink()
    (tree / "src" / "new.py").write_text("", "utf-8")
    assert found(Tree(tree), "src/app.py became src/new.py") == ["src/app.py"]
    assert found(Tree(tree), f"{tree}/src/app.py and {tree}/src/new.py") == ["src/app.py"]


def test_without_git_a_path_is_checked_if_its_folder_exists(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert found(Tree(tmp_path), "src/a.py, lib/b.py and c.py") == ["src/a.py"]


def test_a_file_that_cannot_be_read_labels_nothing(tree: Path) -> None:
    (tree / "package.json").write_bytes(b"\xff{")
    (tree / "Makefile").write_text("include other.mk\n", "utf-8")
    (tree / ".git" / "index").write_bytes(b"DIRC\0\0\0\4")
    assert found(Tree(tree), "`make deploy`, npm run lint, gone.py") == []


def test_no_file_is_read_when_the_time_is_over(tree: Path) -> None:
    late = Tree(tree)
    late.ends = 0.0
    assert late.is_late
    assert found(late, "`make deploy`, npm run lint, port 3000, Django 3.2, src/app.py --gone, gone.py") == []


def recalled(folder: Path, tree: Path, prompt: str) -> list[Line]:
    sent = {"session_id": "next", "cwd": str(tree), "prompt": prompt}
    output = answer(folder, "claude-code", "UserPromptSubmit", sent).output
    return read_back(json.loads(output)["hookSpecificOutput"]["additionalContext"])[1]


def test_a_hook_labels_stale_lines_of_the_project_and_no_others(tmp_path: Path, tree: Path) -> None:
    say(tmp_path, tree, "one", "We deploy the orders service with scripts/release.sh.")
    other = tmp_path / "other"
    other.mkdir()
    say(tmp_path, other, "two", "We deploy the billing service with scripts/billing.sh.")
    stale = {line.text: line.stale for line in recalled(tmp_path, tree, "How do we deploy the services?")}
    assert stale["We deploy the orders service with scripts/release.sh."] == "scripts/release.sh"
    assert not any(label for text, label in stale.items() if "billing" in text)
    (tree / "scripts" / "release.sh").write_text("", "utf-8")
    assert not any(line.stale for line in recalled(tmp_path, tree, "How do we deploy the services?"))
    (tree / "scripts" / "release.sh").unlink()
    config = tmp_path / "state" / "config.yaml"
    config.write_text("projects:\n  check_lines: false\n", "utf-8")
    assert not any(line.stale for line in recalled(tmp_path, tree, "How do we deploy the services?"))


def test_a_stale_line_is_rendered_with_its_label_and_read_back() -> None:
    lines = [
        Line("entry:1", "fact", "Use a.py.", "agent", "2026-01-02", "a.py"),
        Line("", "fact", "x", stale="b"),
    ]
    block = render(lines, "r1", "en")
    assert '- ["entry:1", "agent", "stale: a.py", "2026-01-02", "Use a.py."]' in block
    assert "stale = not found in the working tree now" in block
    assert read_back(block) == ("r1", lines)
