"""Mutation testing of the code that protects: path checks, scope, fence, redaction, merge and erasure.

pytest collects the tests of a module once. Then every mutant runs in a fork: its code replaces that of the loaded
module, and the tests run, fastest first, until one fails. A mutant that no test notices has survived.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from lab.soak.mutants import Mutant, mutants
from lab.soak.part import Part, Round, Task

ROOT = Path(__file__).parents[2]
ERASURE = (
    "tests/entries/test_erase.py",
    "tests/entries/test_erase_everywhere.py",
    "tests/entries/test_receipts.py",
    "tests/entries/test_lifecycle.py",
)
#: Modules, and the tests that protect them.
MODULES = {
    "memoriter.files.paths": ("tests/files/test_paths.py",),
    "memoriter.sessions.scope": ("tests/sessions/test_scope.py", "tests/sessions/test_scope_words.py"),
    "memoriter.recall.render": ("tests/recall/test_fence.py",),
    "memoriter.text.blocks": ("tests/text/test_memory_blocks.py",),
    "memoriter.text.redaction": ("tests/text/test_redaction_kinds.py",),
    "memoriter.entries.merge": ("tests/entries/test_verdicts.py",),
    "memoriter.entries.relation": ("tests/entries/test_relations.py",),
    "memoriter.entries.erase": ERASURE,
    "memoriter.store.erasure": ERASURE,
}
#: Mutants that behave like the original, by module and change, with the reason.
EQUIVALENT = Path(__file__).with_name("equivalent.json")
#: Tests that take more CPU time than this are left out.
MAX_TEST_S = 4.0
#: A mutant that takes longer than this, and than five runs of the tests without it, is killed and counts as noticed.
MIN_LIMIT_S = 10.0
#: So is one that waits for something and uses no CPU time for so many seconds.
MAX_WAIT_S = 300
#: Share of the mutants of a module that must be killed.
SHARE = 0.9


def replace_code(module: ModuleType, mutant: Mutant) -> None:
    """Let a loaded module and everything that imported from it run the code of a mutant."""
    before = dict(module.__dict__)
    exec(compile(mutant.tree, module.__file__ or "", "exec"), module.__dict__)
    for name, old in before.items():
        new = module.__dict__[name]
        if getattr(old, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(old) and inspect.isclass(new):
            _copy_class(old, new)
            module.__dict__[name] = old
        elif callable(old) and callable(new):
            _copy_function(old, new)
            module.__dict__[name] = old


def _copy_function(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    inner_old, inner_new = inspect.unwrap(old), inspect.unwrap(new)
    if not isinstance(inner_old, FunctionType) or not isinstance(inner_new, FunctionType):
        return
    if inner_old.__code__.co_freevars == inner_new.__code__.co_freevars:
        inner_old.__code__ = inner_new.__code__
        inner_old.__defaults__, inner_old.__kwdefaults__ = inner_new.__defaults__, inner_new.__kwdefaults__
    if hasattr(old, "cache_clear"):
        old.cache_clear()


def _copy_class(old: type, new: type) -> None:
    for name, value in vars(new).items():
        inner, known = _plain_function(value), _plain_function(vars(old).get(name))
        if inner is not None and known is not None:
            _copy_function(known, inner)


def _plain_function(member: object) -> FunctionType | None:
    """Return the function inside a method, a class method, a static method or a property."""
    found = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
    return found if isinstance(found, FunctionType) else None


class MutationRun:
    """A plugin of pytest that runs the collected tests once for each mutant, in forks."""

    def __init__(self, name: str, numbers: list[int] | None) -> None:
        self._module, self._numbers = importlib.import_module(name), numbers
        self.noticed, self.survivors = 0, list[str]()
        self._seconds: dict[str, float] = {}

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the tests unchanged, then for every mutant."""
        self._seconds = _run_items(session)
        if session.testsfailed:
            raise session.Failed("the tests fail without a mutant")
        quick = [item for item in session.items if self._seconds[item.nodeid] <= MAX_TEST_S]
        session.items = sorted(quick, key=lambda item: self._seconds[item.nodeid])
        source = Path(self._module.__file__ or "").read_text("utf-8")
        if self._is_noticed(session, Mutant(0, "nothing", ast.parse(source))):
            raise session.Failed("the tests fail when the code is replaced by the same code")
        known = list(mutants(source))
        equivalent = json.loads(EQUIVALENT.read_text("utf-8")).get(self._module.__name__, {})
        for number in range(len(known)) if self._numbers is None else self._numbers:
            mutant = known[number % len(known)]
            if mutant.change in equivalent:
                continue
            if self._is_noticed(session, mutant):
                self.noticed += 1
            else:
                self.survivors.append(f"{self._module.__name__}:{mutant.line}: {mutant.change}")
        return True

    def _is_noticed(self, session: Any, mutant: Mutant) -> bool:
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_PROF, MIN_LIMIT_S + 5 * sum(self._seconds.values()))
            signal.alarm(MAX_WAIT_S)
            code = 1
            try:
                devnull = os.open(os.devnull, os.O_WRONLY)
                os.dup2(devnull, 1)
                os.dup2(devnull, 2)
                replace_code(self._module, mutant)
                _run_items(session)
                code = 1 if session.testsfailed else 0
            finally:
                os._exit(code)
        return os.waitpid(child, 0)[1] != 0


def _run_items(session: Any) -> dict[str, float]:
    """Run the tests of a session until one fails; return the CPU time of each."""
    session.testsfailed = 0
    seconds: dict[str, float] = {}
    for number, item in enumerate(session.items):
        following = session.items[number + 1] if number + 1 < len(session.items) else None
        start = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        seconds[item.nodeid] = time.process_time() - start
        if session.testsfailed:
            break
    return seconds


def main(name: str, tests: list[str], numbers: list[int] | None) -> None:
    """Run in a process of its own, and print the result as the last line."""
    import pytest

    plugin = MutationRun(name, numbers)
    # The threads of LanceDB do not survive a fork.
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-o",
        "timeout=0",
        "-m",
        "not integration and not soak",
        "-k",
        "not lancedb",
    ]
    code = pytest.main([*options, *tests], plugins=[plugin])
    sys.stdout.write("\n" + json.dumps([int(code), plugin.noticed, plugin.survivors]) + "\n")


def _run(name: str, tests: tuple[str, ...], numbers: list[int] | None) -> Round:
    present = [test for test in tests if (ROOT / test).exists()]
    call = f"from lab.soak import mutation; mutation.main({name!r}, {present!r}, {numbers!r})"
    ended = subprocess.run(
        [sys.executable, "-c", call], cwd=ROOT, capture_output=True, text=True, check=False
    )
    try:
        code, noticed, survivors = json.loads(ended.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return Round({}, [f"{name}: {ended.stdout[-1500:]} {ended.stderr[-1500:]}"])
    done = Round({"mutants": noticed + len(survivors), "killed": noticed})
    done.notes = [f"`{name.removeprefix('memoriter.')}`: {noticed} of {noticed + len(survivors)}"]
    done.notes += [f"survived: {survivor}" for survivor in survivors]
    if code != 0:
        done.fail(f"{name}: the tests fail without a mutant: {ended.stdout[-1500:]}")
    elif noticed < SHARE * (noticed + len(survivors)):
        done.fail(f"{name}: only {noticed} of {noticed + len(survivors)} mutants were killed")
    return done


def run(task: Task) -> Round:
    """Run every mutant of one module; in short, a few of one."""
    name = list(MODULES)[task.number % len(MODULES)]
    if task.short:
        return _run("memoriter.sessions.scope", MODULES["memoriter.sessions.scope"], list(range(0, 80, 8)))
    done = _run(name, MODULES[name], None)
    done.count("modules")
    return done


def control(task: Task) -> Round:
    """Run mutants with tests of another module, which notice nothing."""
    del task
    return _run("memoriter.sessions.scope", ("tests/text/test_measure.py",), list(range(0, 80, 16)))


PART = Part(
    "mutation",
    "Mutants of path checks, scope, fence, redaction, merge and erasure",
    {"modules": len(MODULES)},
    run,
    control,
    "tests of another module",
)
