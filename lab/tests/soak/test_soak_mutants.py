"""A mutant changes one thing of a module, and replaces the code that other modules have imported already."""

from __future__ import annotations

import sys
import types

from lab.soak.mutants import mutants
from lab.soak.mutation import replace_code

SOURCE = '''
LIMITS = ("group", "room")

def allows(kind: str, count: int) -> bool:
    """Say whether."""
    if kind in LIMITS and count > 2:
        raise ValueError("two are enough")
    return not kind
'''


def test_every_condition_constant_return_call_and_element_is_changed_once() -> None:
    assert [(mutant.line, mutant.change) for mutant in mutants(SOURCE)] == [
        (2, "without 'group'"),
        (2, "without 'room'"),
        (6, "always True: if kind in LIMITS and count > 2:"),
        (6, "always False: if kind in LIMITS and count > 2:"),
        (6, "kind in LIMITS and count > 2 → kind in LIMITS or count > 2"),
        (6, "kind in LIMITS → kind not in LIMITS"),
        (6, "count > 2 → count >= 2"),
        (6, "2 → 3"),
        (7, "removed: raise ValueError('two are enough')"),
        (8, "return not kind → return None"),
        (8, "not kind → +bool(kind)"),
    ]


def test_code_that_was_imported_before_is_replaced() -> None:
    module = types.ModuleType("sample_of_mutants")
    module.__file__ = "sample_of_mutants.py"
    sys.modules[module.__name__] = module
    try:
        exec(SOURCE, module.__dict__)
        imported = module.__dict__["allows"]
        assert imported("", 1) is True
        replace_code(
            module, next(mutant for mutant in mutants(SOURCE) if mutant.change.endswith("return None"))
        )
        assert imported("", 1) is None
    finally:
        del sys.modules[module.__name__]
