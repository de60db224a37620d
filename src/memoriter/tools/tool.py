"""What a tool is: a name, words for the model, parameters, a function; and the forms in which it is handed out.

A call checks its arguments by the tool's own parameters and answers with plain data, whatever happens: a wrong
argument, a refused path and a memory that is switched off are results that a model can read. Which tools there are is
said in `tools`.
"""

from __future__ import annotations

import inspect
import json
import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from memoriter.memory import Memory
    from memoriter.records import Author, ProgressCallback

Kind = Literal["string", "integer", "number", "boolean", "array", "object"]
Result = dict[str, Any]

Access = Literal["read", "write", "admin"]
"""What a caller may do; each may do what those before it may. `admin` is the owner."""
ACCESS: tuple[Access, ...] = ("read", "write", "admin")

_PYTHON: Mapping[Kind, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


HUGE = 10**300  #: a whole number beyond this is no number that anybody means
LATEST = 253_402_300_799  #: seconds since the epoch; later than this there are no dates


Outcome = Literal[
    "ok", "unknown", "invalid", "not_found", "refused", "conflict", "disabled", "failed", "broken"
]
"""What became of a call: `conflict` is somebody else's change meanwhile, `failed` a failure that we foresee, `broken` a
mistake of ours."""


class WrongArgument(ValueError):
    """An argument that the tool cannot take; the text is for the model."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a tool."""

    name: str
    kind: Kind
    description: str
    required: bool = False
    choices: tuple[str, ...] = ()  #: of the value, or of each item of a list
    minimum: float | None = None
    maximum: float | None = None
    longest: int | None = None  #: most characters of a text, or items of a list
    items: Kind = "string"  #: what a list holds
    also: tuple[str, ...] = ()  #: other names by which it is taken

    @property
    def python_name(self) -> str:
        """The name in a Python signature: small letters, and no word of the language."""
        name = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda letter: f"_{letter[0].lower()}", self.name)
        return f"{name}_" if keyword.iskeyword(name) else name

    @property
    def names(self) -> tuple[str, ...]:
        """Every name by which it is taken."""
        return (self.name, self.python_name, *self.also)

    def schema(self) -> dict[str, object]:
        """As JSON schema."""
        one: dict[str, object] = {"enum": list(self.choices) or None}
        limits: dict[str, object] = {"minimum": self.minimum, "maximum": self.maximum}
        if self.kind == "array":
            limits = {"items": _given({"type": self.items, **one}), "maxItems": self.longest}
        elif self.kind == "string":
            limits = {**one, "maxLength": self.longest}
        return {"type": self.kind, "description": self.description, **_given(limits)}

    def checked(self, value: object) -> object:
        """The value in its right type; models write numbers as texts now and then."""
        value = self._typed(value)
        for one in value if isinstance(value, list) else (value,):
            if self.choices and one not in self.choices:
                raise WrongArgument(f"{self.name} must be one of {', '.join(self.choices)}.")
        if isinstance(value, str | list) and self.longest is not None and len(value) > self.longest:
            what = "characters" if isinstance(value, str) else "items"
            raise WrongArgument(f"{self.name} must have at most {self.longest} {what}.")
        if isinstance(value, int | float) and not isinstance(value, bool):
            low, high = self.minimum, self.maximum
            if (low is not None and value < low) or (high is not None and value > high):
                raise WrongArgument(f"{self.name} must be {_between(low, high)}.")
        return value

    def _typed(self, value: object) -> object:
        if isinstance(value, str) and self.kind in ("integer", "number", "boolean"):
            try:
                value = json.loads(value.strip().lower())
            except (ValueError, RecursionError):
                raise WrongArgument(f"{self.name} must be of type {self.kind}.") from None
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)
        if self.kind == "number" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value) if abs(value) < HUGE else math.inf
        if not isinstance(value, _PYTHON[self.kind]) or (isinstance(value, bool) and self.kind != "boolean"):
            raise WrongArgument(f"{self.name} must be of type {self.kind}.")
        if isinstance(value, float) and not math.isfinite(value):  # JSON as Python reads it knows NaN
            raise WrongArgument(f"{self.name} must be a number.")
        if isinstance(value, list) and not all(isinstance(one, _PYTHON[self.items]) for one in value):
            raise WrongArgument(f"{self.name} must be a list of {self.items}s.")
        return self._storable(value)

    def _storable(self, value: object) -> object:
        """Texts that can be kept: JSON may hold half a character, which no file can."""
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode()
        if not isinstance(value, list | dict):
            return value
        try:
            text = json.dumps(value, ensure_ascii=False)
            return json.loads(text.encode("utf-8", "replace")) if not text.isascii() else value
        except (TypeError, ValueError, RecursionError):
            raise WrongArgument(f"{self.name} must be plain data, not too deeply nested.") from None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool, its arguments checked."""

    memory: Memory
    arguments: Mapping[str, Any]
    session_key: str | None = None
    progress: ProgressCallback | None = None  #: for work that takes long
    access: Access = "admin"  #: what the caller may do; who runs the program is its owner

    @property
    def by(self) -> Author:
        """Whose word it is: the owner's, or that of somebody who was let in."""
        return "owner" if grants(self.access, "admin") else "agent"

    def __getitem__(self, name: str) -> Any:
        return self.arguments.get(name)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, once and for all doors."""

    name: str
    description: str  #: for the model
    params: tuple[Param, ...]
    run: Callable[[Call], Result]
    hints: Mapping[str, str]  #: one sentence a language on when to use it, for the system prompt
    empty: Mapping[str, object] = field(default_factory=dict)  #: the result when there is nothing to give
    read_only: bool = True
    destructive: bool = False  #: whether it removes or overwrites what is kept
    owner: bool = False  #: whether it is for the owner alone
    returns: Mapping[str, object] = field(default_factory=dict)  #: JSON schemas of what the result holds
    about_us: bool = (
        False  #: whether the result is about the program: where things are is told to the owner alone
    )

    @property
    def access(self) -> Access:
        """What a caller needs to be granted."""
        if self.owner:
            return "admin"
        return "read" if self.read_only else "write"

    def output_schema(self) -> dict[str, object]:
        """The result as JSON schema; every tool also says whether memory is disabled, and what went wrong."""
        always = {"disabled": {"type": "boolean"}, "error": {"type": "string"}}
        required = [*self.empty, "disabled"]
        return {"type": "object", "properties": {**self.returns, **always}, "required": required}

    def schema(self) -> dict[str, object]:
        """The parameters as JSON schema."""
        return {
            "type": "object",
            "properties": {param.name: param.schema() for param in self.params},
            "required": [param.name for param in self.params if param.required],
            "additionalProperties": False,
        }

    def openai(self) -> dict[str, object]:
        """As OpenAI's chat completions take it."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema()}
        return {"type": "function", "function": function}

    def anthropic(self) -> dict[str, object]:
        """As Anthropic's messages take it."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema()}

    def annotations(self) -> dict[str, bool]:
        """As the Model Context Protocol names them."""
        return {"readOnlyHint": self.read_only, "destructiveHint": self.destructive, "openWorldHint": False}

    def checked(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments under their own names, in their right types; raises `WrongArgument`."""
        names = {name: param for param in self.params for name in param.names}
        given: dict[str, object] = {}
        for name, value in arguments.items():
            if name not in names:
                known = ", ".join(param.name for param in self.params) or "none"
                raise WrongArgument(f"{self.name} has no parameter {name!r}; it has: {known}.")
            if value is not None:  # models send null for what they leave out
                given[names[name].name] = names[name].checked(value)
        for param in self.params:
            if param.required and param.name not in given:
                raise WrongArgument(f"{self.name} needs {param.name}.")
        return MappingProxyType(given)

    def signature(self) -> inspect.Signature:
        """The parameters as a Python function would have them."""
        ordered: Sequence[Param] = sorted(self.params, key=lambda param: not param.required)
        return inspect.Signature(
            [
                inspect.Parameter(
                    param.python_name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=inspect.Parameter.empty if param.required else None,
                    annotation=_PYTHON[param.kind] if param.required else _PYTHON[param.kind] | None,
                )
                for param in ordered
            ],
            return_annotation=dict,
        )


def camel(values: Mapping[str, object]) -> dict[str, object]:
    """The same under the names that JSON has: `last_sync` is `lastSync`."""
    return {re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name): one for name, one in values.items()}


def grants(granted: Access, needed: Access) -> bool:
    """Whether who was granted the one may do what needs the other."""
    return ACCESS.index(needed) <= ACCESS.index(granted)


def _given(limits: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in limits.items() if value is not None}


def _between(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}"
