"""Small changes of a module's source, each of which some test should notice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

#: Operators and what replaces them.
OPERATORS: dict[type[Any], type[Any]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
#: Calls whose arguments only word a message.
WORDING = ("sentence", "warning", "info", "debug", "exception", "error")


@dataclass(frozen=True)
class Mutant:
    """A changed module: where, how, and its code as a tree."""

    line: int
    change: str
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    """Return every mutant of a module, in the order of its lines."""
    original = ast.parse(source)
    left_out = {inner for outer in _left_out(original) for inner in ast.walk(outer)}
    found: list[Mutant] = []
    for number, node in enumerate(ast.walk(original)):
        if node in left_out:
            continue
        for variant in range(_variants(node)):
            tree = copy.deepcopy(original)
            changed = next(node for at, node in enumerate(ast.walk(tree)) if at == number)
            change = _change(changed, variant)
            if change:
                ast.fix_missing_locations(tree)
                found.append(Mutant(getattr(node, "lineno", 0), change, tree))
    yield from sorted(found, key=lambda mutant: mutant.line)


def _variants(node: ast.AST) -> int:
    """Return how many mutants a node may have."""
    match node:
        case ast.Compare():
            return len(node.ops)
        case ast.Tuple() | ast.List() | ast.Set():
            is_target = isinstance(getattr(node, "ctx", None), ast.Store)
            return 0 if is_target or len(node.elts) < 2 else len(node.elts)
        case ast.Dict():
            return len(node.keys) if len(node.keys) > 1 else 0
        case ast.If() | ast.IfExp():
            return 2
    return int(type(node) in CHANGES)


def _change(node: ast.AST, variant: int) -> str:
    """Change a node in place; return a description, or nothing if it cannot be changed."""
    before = _shown(node)
    change: Any = CHANGES.get(type(node))
    how = change(node, variant) if change else None
    return "" if how is None else how or f"{before} → {_shown(node)}"


def _shown(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0][:70]


# Each function changes one kind of node in place. It returns a description, "" for the usual one, or None if this node
# cannot be changed.


def _compare(node: ast.Compare, variant: int) -> str:
    node.ops[variant] = OPERATORS[type(node.ops[variant])]()
    return ""


def _operate(node: Any, _: int) -> str | None:
    if type(node.op) not in OPERATORS:
        return None
    node.op = OPERATORS[type(node.op)]()
    return ""


def _remove_element(node: Any, variant: int) -> str:
    return f"without {_shown(node.elts.pop(variant))}"


def _remove_key(node: ast.Dict, variant: int) -> str:
    node.values.pop(variant)
    key = node.keys.pop(variant)
    return f"without {_shown(key)}" if key else "without a part"


def _decide(node: ast.If | ast.IfExp, variant: int) -> str:
    before = _shown(node)
    node.test = ast.Constant(value=variant == 0)
    return f"always {variant == 0}: {before}"


def _affirm(node: ast.UnaryOp, _: int) -> str | None:
    if not isinstance(node.op, ast.Not):
        return None
    node.op = ast.UAdd()
    node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
    return ""


def _constant(node: ast.Constant, _: int) -> str | None:
    if isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node.value, int):
        node.value += 1
    else:
        return None
    return ""


def _return(node: ast.Return, _: int) -> str | None:
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return None
    node.value = ast.Constant(value=None)
    return ""


def _remove_call(node: ast.Expr, _: int) -> str | None:
    if not isinstance(node.value, ast.Call):
        return None
    before = _shown(node)
    node.value = ast.Constant(value=None)
    return f"removed: {before}"


def _remove_raise(node: Any, _: int) -> str:
    before = _shown(node)
    node.__class__ = ast.Expr
    node.__dict__.pop("exc", None)
    node.__dict__.pop("cause", None)
    node.value = ast.Constant(value=None)
    return f"removed: {before}"


CHANGES: dict[type[ast.AST], Callable[..., str | None]] = {
    ast.Compare: _compare,
    ast.BoolOp: _operate,
    ast.BinOp: _operate,
    ast.Tuple: _remove_element,
    ast.List: _remove_element,
    ast.Set: _remove_element,
    ast.Dict: _remove_key,
    ast.If: _decide,
    ast.IfExp: _decide,
    ast.UnaryOp: _affirm,
    ast.Constant: _constant,
    ast.Return: _return,
    ast.Expr: _remove_call,
    ast.Raise: _remove_raise,
}


def _left_out(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes below which a change would only change a message, an annotation or the moment of an import."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from node.decorator_list
                yield from (
                    part for part in (node.returns, *(arg.annotation for arg in node.args.args)) if part
                )
                yield from (arg.annotation for arg in node.args.kwonlyargs if arg.annotation)
            case ast.ClassDef():
                yield from node.decorator_list
            case ast.AnnAssign():
                yield node.annotation
            case ast.Raise():
                yield from (part for part in (node.exc, node.cause) if part)
            case ast.Call(func=ast.Name(id="getattr"), args=[_, _, default]):
                yield default
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in WORDING:
                yield node
            case (
                ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assert() | ast.JoinedStr() | ast.ImportFrom()
            ):
                yield node
            case ast.Assign(targets=[ast.Name(id="__all__" | "log" | "__slots__" | "TYPE_CHECKING")]):
                yield node
            case ast.Subscript():
                yield node.slice
