"""Decide whether a command of a shell is local: its output then does not come from outside.

A command is local only if every program in it is on a short list and no argument names a host or an address. Anything
that is not understood is not local.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise

#: Characters of a command that are read. A longer one is not local.
MAX_COMMAND = 20_000
#: Commands inside commands (`bash -c "…"`) that are followed.
MAX_DEPTH = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LOCAL = _words("""
    ls dir cat head tail less more wc sort uniq cut tr grep egrep fgrep rg ag sed find fd tree stat file du df pwd cd
    pushd popd echo printf true false test [ [[ : mkdir rmdir touch cp mv rm ln chmod basename dirname realpath readlink
    which type date cal export set unset id whoami uname ps kill pgrep jobs wait sleep diff cmp comm paste patch tee xxd
    od hexdump md5sum sha1sum sha256sum shasum jq column nl rev seq expr bc tar zip unzip gzip gunzip zcat xargs for
    select case esac in pytest tox ruff black mypy pyright flake8 pylint isort prettier eslint tsc jest vitest mocha
    make cmake ninja gcc g++ clang javac get-childitem get-content select-string get-location set-location findstr break
    continue return exit shift local read
""")
_RUN = _words("test run")
#: Programs of which only these commands are local.
_COMMANDS: Mapping[str, frozenset[str]] = {
    "git": _words("""
        status diff log show branch add commit checkout switch restore stash rev-parse rev-list ls-files ls-tree blame
        tag reset merge rebase cherry-pick revert describe init mv rm grep shortlog reflog worktree apply clean bisect
        cat-file merge-base diff-tree
    """),
    "go": _words("build test vet fmt version"),
    "cargo": _words("build test check fmt clippy"),
    **dict.fromkeys(("npm", "pnpm", "yarn"), _RUN),
}
_MODULES = _words("pytest unittest doctest mypy ruff black json.tool compileall py_compile timeit")
#: Programs that run a file, or the command after `-c`.
_INTERPRETERS = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)?)?|node|ruby|perl|bash|sh|zsh|dash|ksh")
_SHELLS = _words("bash sh zsh dash ksh")
#: Words before a program.
_PREFIXES = _words(
    "env sudo time nohup nice command exec builtin xargs if then elif else do while until ! { }"
)
_ENDS = _words("fi done")
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run")}
#: Addresses, names of hosts, users at hosts, and branches of others.
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]{1,20}://|(?<!\S)[\"']?(?://|\\\\{2,4})\w|(?:~|\$HOME|/(?:home|Users)/[^/\s]{1,60}|/root)/(?:Downloads|Mail|Maildir|Library/Mail)(?![\w-])|(?<![\w.~-])/(?:net|media|run/user/\d{1,10}/gvfs)/|/var/(?:mail|spool|log)/|/dev/(?:tcp|udp)/|/inet|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|\w@[\w-]|\blocalhost\b"
    r"|(?<![\w./-])(?:[a-z0-9-]{1,60}\.){1,5}(?:com|org|net|io|dev|app|ai|edu|gov|cn|de|uk|eu|example|local|internal)(?![\w.-])"
    r"|\b(?:origin|upstream|remotes?)/|FETCH_HEAD|@\{u",
    re.IGNORECASE,
)
#: Options and commands of local programs that run another program.
_RUNS = re.compile(r"--(?:[a-z]+-)*(?:pre|program|command|pager|exec|action)(?![a-z-])|\bs(\W).*\1.*\1\w*e")
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
_HEREDOC = re.compile(
    r"<<-?\s{0,4}(['\"]?)(\w{1,40})\1([^\n]{0,2000})\n.*?^\s{0,40}\2[ \t]*$", re.DOTALL | re.MULTILINE
)
_KEYS = ("command", "cmd", "commands", "script", "code")


def is_local(arguments: object) -> bool:
    """Return whether the arguments of a tool that runs commands show only local commands.

    >>> is_local({"command": "git diff | head -5"}), is_local({"command": "/usr/bin/curl x"}), is_local({})
    (True, False, False)
    """
    commands = list(_texts(arguments))
    return bool(commands) and all(_is_local(command, 0) for command in commands)


def _texts(arguments: object) -> Iterator[str]:
    """Yield the commands in the arguments: a text, a list of words, or an object with one of them."""
    if isinstance(arguments, str):
        try:
            found = json.loads(arguments)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict | list):
            yield from _texts(found)
        elif arguments.strip():
            yield arguments
    elif isinstance(arguments, Mapping):
        for key in _KEYS:
            yield from _texts(arguments.get(key))
    elif isinstance(arguments, list):
        yield shlex.join(map(str, arguments))


def _is_local(command: str, depth: int) -> bool:
    if len(command) > MAX_COMMAND or depth > MAX_DEPTH or _ADDRESS.search(command):
        return False
    plain = _COMMENT.sub("", _HEREDOC.sub(lambda found: f"<{found[2]}{found[3]}", command)).replace(
        "\\\n", " "
    )
    words = shlex.shlex(plain, posix=True, punctuation_chars="();<>|&\n")
    words.whitespace, words.whitespace_split, words.commenters = " \t\r", True, ""
    try:
        parts = list(_parts(list(words)))
    except ValueError:
        return False
    return bool(parts) and all(_is_local_part(part, depth) for part in parts)


def _parts(words: list[str]) -> Iterator[list[str]]:
    """Yield the words of each part of a pipeline or list, without the files of redirections."""
    part, skip = list[str](), False
    for word in [*words, ";"]:
        if word and not word.strip("();<>|&\n"):
            if ("<" in word or ">" in word) and "(" not in word:
                skip = True
                continue
            if part:
                yield part
            part, skip = [], False
        elif skip:
            skip = False
        else:
            part.append(word)


def _is_local_part(words: list[str], depth: int) -> bool:
    if any("$(" in word or "`" in word for word in words):
        return False
    while words and (words[0] in _PREFIXES or re.match(r"\w+=", words[0])):
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[1:]
    if words[:1] == ["timeout"]:
        words = [word for word in words[1:] if not word.startswith("-")][1:]
    if tuple(words[:2]) in _RUNNERS:
        words = words[2:] or ["?"]
    if not words or (len(words) == 1 and words[0] in _ENDS):
        return True
    program = re.split(r"[/\\]", words[0])[-1].lower().removesuffix(".exe")
    return _is_local_program(program, words[1:], depth)


def _is_local_program(program: str, rest: list[str], depth: int) -> bool:
    if _INTERPRETERS.fullmatch(program):
        return _runs_a_file(program, rest, depth)
    if program in _COMMANDS:
        return _subcommand(rest) in _COMMANDS[program]
    if program in ("awk", "gawk", "mawk"):
        return not re.search(r"system|getline|[|>]", " ".join(rest))
    run = [after for flag, after in pairwise(rest) if program == "find" and re.match("-(?:exec|ok)", flag)]
    runs = any(one.startswith("--") or program == "sed" for one in rest if _RUNS.match(one))
    return program in _LOCAL and not runs and all(one in _LOCAL for one in run)


def _subcommand(words: list[str]) -> str:
    """Return the command of a program such as git, after its options. `-C` and `-c` have a value."""
    words = list(words)
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in ("-C", "-c") else words[1:]
    return words[0] if words else ""


def _runs_a_file(program: str, words: list[str], depth: int) -> bool:
    for place, word in enumerate(words):
        if program in _SHELLS and re.fullmatch(r"-[a-z]*c", word):
            return place + 1 < len(words) and _is_local(words[place + 1], depth + 1)
        if word == "-m":
            return place + 1 < len(words) and words[place + 1] in _MODULES
        if word.startswith("-"):
            if word == "-" or re.match(r"-[a-zA-Z]*[cepr]|--(?:eval|print|require|import)", word):
                return False
            continue
        return True
    return False
