"""Decide whether a command of a shell is local: its output then does not come from outside.

A command is local only if every program in it is on a short list and no argument names a host or an address. Anything
that is not understood is not local.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

#: Characters of a command that are read. A longer one is not local.
MAX_COMMAND = 20_000
#: Commands inside commands (`bash -c "…"`) that are followed.
MAX_DEPTH = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LOCAL = _words("""
    ls dir cat head tail less more wc sort uniq cut tr grep egrep fgrep rg ag fd tree stat file du df pwd cd awk
    gawk mawk pushd popd echo printf true false test [ [[ : mkdir rmdir touch cp mv rm ln chmod basename dirname
    realpath readlink which type date cal set unset id whoami uname ps kill pgrep jobs wait sleep diff cmp comm
    paste patch tee xxd od hexdump md5sum sha1sum sha256sum shasum jq column nl rev seq expr bc tar zip unzip gzip
    gunzip zcat for select case esac in pytest ruff black mypy pyright flake8 pylint isort prettier eslint tsc jest
    vitest mocha gcc g++ clang javac get-childitem get-content select-string get-location set-location findstr break
    continue return exit shift local read
""")
#: Programs of which only these commands are local.
_COMMANDS: Mapping[str, frozenset[str]] = {
    "git": _words("""
        status diff log show branch add commit checkout switch restore stash rev-parse rev-list ls-files ls-tree blame
        tag reset merge rebase cherry-pick revert describe init mv rm grep shortlog reflog worktree apply clean
        cat-file merge-base diff-tree
    """),
    "go": _words("build test vet fmt version"),
    "cargo": _words("build test check fmt clippy"),
}
#: Names under which projects build and test. A task with another name may reach out, and so may a program of a project.
_TASKS = _words("all build check clean compile coverage format fmt lint test tests type typecheck unit")
_TASK_OPTION = re.compile(
    r"-[BknsiqS]+|-j\d*|\d+|-C.*|--(?:silent|quiet|keep-going|no-print-directory|dry-run|jobs=\d+|directory=.*)"
)
_MODULES = _words("pytest unittest doctest mypy ruff black json.tool compileall py_compile timeit")
#: Words before a program, and their options that have no value.
_PREFIXES = _words(
    "env sudo time nohup nice command exec builtin xargs if then elif else do while until ! { }"
)
_PREFIX_OPTIONS = _words("-n -E -i -0 -r -p")
_ENDS = _words("fi done")
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run")}
#: Folders of installed programs. A program elsewhere may have any name.
_INSTALLED = re.compile(
    r"(?:(?:/usr(?:/local)?)?/s?bin|/opt/homebrew/bin|(?:.*/)?(?:\.?v?env/(?:bin|Scripts)|node_modules/\.bin))/"
)
#: Variables that no program runs. Those in lower case are the command's own.
_VARIABLE = re.compile(r"[a-z_]\w*=|\w+=\d*$|(?:LC_\w+|LANG|TZ|TERM|CI|PYTHONPATH|NODE_ENV|\w*COLOR\w*)=")
#: Addresses, names of hosts, users at hosts, and branches of others.
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]{1,20}://|(?<!\S)[\"']?(?://|\\\\{2,4})\w|(?:~|\$HOME|/(?:home|Users)/[^/\s]{1,60}|/root)/(?:Downloads|Mail|Maildir|Library/Mail)(?![\w-])|(?<![\w.~-])/(?:net|media|run/user/\d{1,10}/gvfs)/|/var/(?:mail|spool|log)/|/dev/(?:tcp|udp)/|/inet|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|\w@[\w-]|\blocalhost\b"
    r"|(?<![\w./-])(?:[a-z0-9-]{1,60}\.){1,5}(?:com|org|net|io|dev|app|ai|edu|gov|cn|de|uk|eu|example|local|internal)(?![\w.-])"
    r"|\b(?:origin|upstream|remotes?)/|FETCH_HEAD|@\{u|(?<![\w./-])[\w.-]{2,60}:/(?!/)",
    re.IGNORECASE,
)
#: Options and commands of local programs that run another program.
_RUNS = re.compile(r"--(?!no-)(?:[a-z]+-)*(?:pre|program|command|pager|exec|action|ext-diff)(?![a-z-])")
_RUNS_OF: Mapping[str, re.Pattern[str]] = {
    "git": re.compile(r"-O|-x$"),
    "fd": re.compile("-[xX]"),
    "tar": re.compile("-?[a-zA-Z]*[IF]$"),
    "zip": re.compile("-TT|--unzip"),
    **dict.fromkeys(("less", "more"), re.compile(r"\+")),
    **dict.fromkeys(("gcc", "g++", "clang"), re.compile("-wrapper|-B|-fplugin")),
    **dict.fromkeys(("awk", "gawk", "mawk"), re.compile(r"(?s:.*(?:system|getline|[|>@]))|-[a-zA-Z]*[fil]")),
}
#: The command `e` and the flag `e` of sed, which run a program.
_SED_RUNS = re.compile(r"(?:^|[\s;{}$/!\d]|[^\w\s]\w{1,5})e(?:[\s;}]|$)")
#: Quoted text, comments and documents inside a command, in the order in which they begin.
_QUOTED = re.compile(
    r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|(?:^|(?<=\s))#[^\n]*"
    r"|(?<!<)<<-?\s{0,4}(['\"]?)(\w{1,40})\1([^\n]{0,2000})\n(.*?)^\s{0,40}\2[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
MAX_DOCUMENTS = 20
#: Settings of git that run nothing.
_HARMLESS = re.compile(r"color\.|core\.quotepath=|core\.pager=(?:cat)?$")
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
    if command.count("<<") > MAX_DOCUMENTS:
        return False
    words = shlex.shlex(_QUOTED.sub(_shortened, command), posix=True, punctuation_chars="();<>|&\n")
    words.whitespace, words.whitespace_split, words.commenters = " \t\r", True, ""
    try:
        parts = list(_parts(list(words)))
    except ValueError:
        return False
    return bool(parts) and all(_is_local_part(part, depth) for part in parts)


def _shortened(found: re.Match[str]) -> str:
    """Return quoted text unchanged, and nothing for a comment or a document that runs no command."""
    text, mark = found[0], found[2]
    if mark:
        runs = not found[1] and re.search(r"\$\(|`", found[4])
        return "`" if runs else f"<{mark}{found[3]}"
    return "" if text.startswith("#") else " " if text == "\\\n" else text


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
    while words and (words[0] in _PREFIXES or _VARIABLE.match(words[0])):
        words = words[1:]
        while words and words[0] in _PREFIX_OPTIONS:
            words = words[1:]
    if words[:1] == ["timeout"]:
        words = [word for word in words[1:] if not word.startswith("-")][1:]
    if tuple(words[:2]) in _RUNNERS:
        words = words[2:] or ["?"]
    if not words or (len(words) == 1 and words[0] in _ENDS):
        return True
    installed = _INSTALLED.match(words[0])
    program = words[0][installed.end() if installed else 0 :].lower().removesuffix(".exe")
    return _is_local_program(program, words[1:], depth)


def _is_local_program(program: str, rest: list[str], depth: int) -> bool:
    own = _RUNS_OF.get(program)
    if any(_RUNS.match(one) or (own and own.match(one)) for one in rest):
        return False
    if program in _COMMANDS:
        return _subcommand(rest) in _COMMANDS[program]
    name = program.rstrip("0123456789.")  # python3.12
    return _OTHERS[name](rest, depth) if name in _OTHERS else program in _LOCAL


def _subcommand(words: list[str]) -> str:
    """Return the command of a program such as git, after its options; empty after a setting that may run a program."""
    words = list(words)
    while words and words[0].startswith("-"):
        if words[0] == "-c" and not _HARMLESS.match(" ".join(words[1:2])):
            return ""
        words = words[2:] if words[0] in ("-C", "-c") else words[1:]
    return words[0] if words else ""


def _is_task(word: str) -> bool:
    return all(part in _TASKS for part in re.split("[:-]", word)) or bool(_TASK_OPTION.fullmatch(word))


def _are_tasks(words: list[str], _: int) -> bool:
    return all(before == "-C" or _is_task(word) for before, word in pairwise(["", *words]))


def _is_script(words: list[str], _: int) -> bool:
    return any(map(_is_task, (words[1:] if words[:1] == ["run"] else words)[:1]))


def _is_module(words: list[str], _: int) -> bool:
    return words[:1] == ["-m"] and " ".join(words[1:2]) in _MODULES


def _is_shell(words: list[str], depth: int) -> bool:
    flags = pairwise(words[:4])
    return any(re.fullmatch("-[a-z]*c", flag) and _is_local(command, depth + 1) for flag, command in flags)


def _is_find(words: list[str], depth: int) -> bool:
    runs = [words[place + 1 :] for place, word in enumerate(words) if re.match("-(?:exec|ok)", word)]
    return depth < MAX_DEPTH and all(run and _is_local_part(run, depth + 1) for run in runs)


def _is_sed(words: list[str], _: int) -> bool:
    if any(re.match("-[a-zA-Z]*(?:f|e.)|--(?!quiet|posix|debug)[a-z]", word) for word in words):
        return False
    scripts = [word for flag, word in pairwise(words) if re.fullmatch("-[a-zA-Z]*e", flag)]
    return not any(map(_SED_RUNS.search, scripts or [word for word in words if word[:1] != "-"][:1]))


#: Programs that run what their arguments name.
_OTHERS: Mapping[str, Callable[[list[str], int], bool]] = {
    **dict.fromkeys(("make", "ninja"), _are_tasks),
    **dict.fromkeys(("npm", "pnpm", "yarn"), _is_script),
    **dict.fromkeys(("python", "pypy"), _is_module),
    **dict.fromkeys(("bash", "sh", "zsh", "dash", "ksh"), _is_shell),
    "export": lambda words, _: all(map(_VARIABLE.match, words)),
    "find": _is_find,
    "sed": _is_sed,
}
