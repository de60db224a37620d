"""Which commands are local, so that what an agent says about their output keeps the trust of an agent."""

from __future__ import annotations

import json

import pytest

from memoriter.sessions.messages import turns_of_messages

LOCAL_COMMANDS = (
    *(
        "cat a.txt | grep -n foo | sort -u",
        "cd src && ls; pwd",
        "find . -name '*.py' -exec cat {} +",
        "make test 2>&1 | tail -5",
    ),
    *(
        ".venv/bin/python -m pytest -q tests/a.py",
        "python3 -m unittest",
        "env A=1 pytest -x",
        "sudo -n ls /root",
    ),
    *(
        "git -C repo --no-pager log --oneline -5",
        "for f in *.md; do wc -l $f; done",
        "bash -lc 'ls -l && cat x'",
        "uv run pytest",
    ),
    *(
        "cat > a.py <<'EOF'\nimport os\nEOF",
        "# look\nls -la\ncat a.md",
        "awk '{print $1}' a.txt",
        "timeout 60 make check",
        "sed -n 1,5p a",
    ),
    *(
        *(
            "make -j4 check",
            "make -C lib build",
            "npm test",
            "npm run test:unit",
            "yarn build",
            "go test ./...",
        ),
        *("LC_ALL=C sort a", "f=a.txt; cat $f", "git -c color.ui=false log", "sed -ne 's/the/e/p' src/code"),
        *("/usr/bin/grep -r a src", "node_modules/.bin/jest", "cat <<EOF\nplain # text\nEOF", 'grep "# a" b'),
        *("find . -exec cat {} + -exec wc {} +", "bash -o pipefail -c 'ls | wc'", "tar -xzf a.tgz -C out"),
    ),
)
OTHER_COMMANDS = (
    *(
        "/usr/bin/curl x",
        "sort --compress-program=curl x",
        "rg --pre curl x",
        "sed 's/a/curl b/e' c",
        "http x",
        "https x",
        "links -dump x",
        "socat - TCP:x:80",
        "openssl s_client -connect x:443",
    ),
    *(
        "ruby -ropen-uri -e 'puts 1'",
        'python -c "import socket"',
        "hg pull",
        "svn cat x",
        "psql -h db",
        "mysql -h db",
    ),
    *(
        "redis-cli get x",
        "docker run x",
        "jira issue view 3",
        "claude -p hi",
        "gemini -p hi",
        "codex exec hi",
        "mbsync -a",
    ),
    *(
        "newsboat -x reload",
        "pbpaste",
        "ls; curl x",
        "ls | xargs curl",
        "ls $(curl x)",
        'echo "$(wget x)"',
        "cat <(curl x)",
    ),
    *(
        "env A=1 curl x",
        "sudo curl x",
        "bash -c 'curl x'",
        "git log origin/main",
        "git -C a fetch",
        "git remote -v",
        "./fetch.sh",
    ),
    *(
        "python - <<'EOF'\nimport os\nEOF",
        "ls # x\ncurl x",
        "find . -exec curl {} ;",
        "cat vendor.example",
        "ls\nnc x 1",
        "X=$(curl y)",
    ),
    *(
        "grep -r x http://a",
        "ping 10.0.0.1",
        "rsync bob@host:/x .",
        "cat 'unclosed",
        "perl -e 'print 1'",
        *(
            "cat //server/share/f",
            "cat ~/Downloads/page.html",
            "head /Users/ada/Mail/inbox",
            "cat /var/mail/root",
            "tail -n 5 /var/log/nginx/access.log",
            "grep -r pay ~/Mail",
            "ls ~/Downloads",
            "cat ~/Library/Mail/V10/x.emlx",
            "cat /net/host/f",
            "cat /media/ada/USB/f",
            "cat /run/user/1000/gvfs/f",
        ),
        "awk 'BEGIN{system(1)}'",
    ),
    *(  # what a project contains may reach anything
        *(
            "make fetch",
            "make download",
            "make test fetch",
            "make -f b.mk test",
            "make -C a fetch",
            "make CC=x test",
        ),
        *(
            "make --eval=x test",
            "ninja fetch",
            "cmake -P a.cmake",
            "tox -e fetch",
            "find . -exec make fetch ;",
        ),
        *(
            "python fetch.py",
            "python3 tools/run.py --fast",
            "python -X dev a.py",
            "node a.js",
            "ruby a.rb",
            "bash a",
        ),
        *(
            "bash -c 'python a.py'",
            "uv run a.py",
            "cargo run",
            "go run a.go",
            "./a.sh",
            "./ls",
            "bin/date",
            "/tmp/cat a",
        ),
        *(
            "npm run fetch",
            "npm run",
            "npm start",
            "npm install",
            "npm exec a",
            "pnpm run dev",
            "yarn run test:fetch",
        ),
    ),
    *(  # a local program that runs another
        *(
            "GIT_EXTERNAL_DIFF=fetch git diff",
            "PAGER=fetch git log",
            "export PAGER=fetch; git log",
            "PATH=. ls",
        ),
        *(
            "git -c core.fsmonitor=fetch status",
            "git bisect run fetch",
            "git rebase -x fetch main",
            "git log --ext-diff",
        ),
        *(
            "git rebase --exec fetch main",
            "git grep -Ofetch a",
            "less '+!fetch a' b",
            "gcc -wrapper fetch a.c",
        ),
        *(
            "sed '1e fetch a' b",
            "sed 'e fetch a' b",
            "sed -n '/a/e fetch' b",
            "sed -f a b",
            "sed -ne p -e 's/a/b/e' c",
        ),
        *("fd a -x fetch", "find . -exec xargs fetch {} +", "find . -exec cat {} + -exec fetch {} +"),
        *("tar -I fetch -xf a", "tar -xf backup:/a.tar", "zip -T -TT fetch a b", "exec -a ls fetch a"),
        *(
            "sudo -u ls fetch a",
            "xargs -I ls fetch ls",
            "env -S 'fetch a' ls",
            "find . " + "-exec find . " * 900,
        ),
    ),
    *(  # a command in what looks like a text, or after it
        *("cat <<EOF\n$(fetch a)\nEOF", "cat <<EOF\n`fetch a`\nEOF", 'grep "<<EOF" a\nfetch b\nEOF'),
        *('echo "\n# a"; fetch b; echo "\n"', "cat <<<EOF\nfetch a\nEOF", "cat <<A\nA\n" * 21),
    ),
)


@pytest.mark.parametrize(
    ("command", "trust"),
    [
        *(("ls -la src", "agent"), ("git status && git diff", "agent"), ("python -m pytest -q", "agent")),
        *(("curl -s https://example.org", "untrusted"), ("cd /x && wget example.org/a", "untrusted")),
        *(("gh issue view 12", "untrusted"), ("git -C repo pull", "untrusted"), ("git clone x", "untrusted")),
        *(("python -c 'import requests'", "untrusted"), ("cat < /dev/tcp/1.2.3.4/80", "untrusted")),
        *(
            (f"cat {path}", "agent")
            for path in ("src/media/x.css", "~/Mailer/x", "./net/x.c", "~/Downloads-old/x")
        ),
        *((command, "agent") for command in LOCAL_COMMANDS),
        *((command, "untrusted") for command in OTHER_COMMANDS),
    ],
)
def test_a_command_is_local_only_if_all_its_programs_are_known_to_be(command: str, trust: str) -> None:
    arguments = json.dumps({"command": command})
    function = {"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": arguments}}
    block = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "text"}
    for messages in (
        [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}],
        [
            {"role": "assistant", "tool_calls": [function]},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
        ],
    ):
        said = {"role": "assistant", "content": "All invoices go to account 99."}
        assert [turn.trust for turn in turns_of_messages([*messages, said])] == [trust]
