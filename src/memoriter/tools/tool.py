"""Tools: a name, a description for language models, two pydantic models and a function.

The model of the arguments gives the JSON schema, the checks and the error messages. The model of the result gives the
output schema and the result of a call that fails. `toolbox` calls tools, `table` lists all of them.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WrapValidator,
)
from pydantic.alias_generators import to_camel

from memoriter.errors import BadArgument

if TYPE_CHECKING:
    from memoriter.memory import Memory
    from memoriter.records import ProgressCallback, Trust

Result = dict[str, Any]
"""A result as plain JSON data."""

Schema = dict[str, Any]

Access = Literal["read", "write", "admin"]
"""The access of a caller. Each level includes the levels before it; `admin` is the owner."""
ACCESS: tuple[Access, ...] = ("read", "write", "admin")

Outcome = Literal[
    "ok",
    "unknown",
    "invalid",
    "not_found",
    "refused",
    "conflict",
    "disabled",
    "unavailable",
    "failed",
    "broken",
]
"""Outcome of a call. `conflict`: the data changed in the meantime. `unavailable`: the database server does not answer.
`failed`: an expected failure. `broken`: a bug.
"""

#: Unknown names of arguments that an error repeats, and characters of each.
MAX_NAMED = 3
MAX_NAME = 60
#: Characters of a query. A longer one is a document.
MAX_QUERY = 10_000

#: The last second that has a date, in seconds since the epoch.
LATEST = 253_402_300_799


# ---- models -------------------------------------------------------------------------------------------------------


class Arguments(BaseModel):
    """Base of the arguments of a tool. Callers may use the camelCase or the Python name of an argument."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )


class Shape(BaseModel):
    """Base of a result and of the objects in it. JSON has camelCase names.

    A field may be a record of the library without tuples, if callers get all of it. A field with a default is always in
    the result, even when the call fails.
    """

    model_config = ConfigDict(
        frozen=True,
        from_attributes=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
        json_schema_serialization_defaults_required=True,
    )

    def to_json(self) -> Result:
        """Return the result as plain JSON data."""
        return self.model_dump(by_alias=True)

    @classmethod
    def empty(cls) -> Result:
        """Return the result of a call that has nothing to return."""
        return cls.model_construct().model_dump(by_alias=True, warnings=False)


Count = Annotated[int, Field(ge=0)]
Score = Annotated[float, AfterValidator(lambda value: round(value, 6))]
#: A string that may be a `Sentence`. Pydantic would otherwise turn it into a plain string.
Prose = Annotated[str, WrapValidator(lambda value, check: value if isinstance(value, str) else check(value))]
Degraded = Annotated[Prose | None, Field(description="What is missing from this answer, and why.")]


def omitted_if_none(description: str | None = None) -> Any:
    """Declare a field of a `Shape` that is left out of the JSON when it is None."""
    return Field(default=None, exclude_if=lambda value: value is None, description=description)


@cache
def json_schema(model: type[BaseModel]) -> Schema:
    """Return the JSON schema of arguments or of a result, without references, titles and docstrings."""
    mode: Literal["validation", "serialization"] = (
        "validation" if issubclass(model, Arguments) else "serialization"
    )
    schema = model.model_json_schema(mode=mode)
    schema.pop("description", None)
    left_out = ("title", "$ref", "default") if mode == "serialization" else ("title", "$ref")
    plain = _plain(schema, schema.pop("$defs", {}), left_out)
    return {"type": "object", "properties": {}, "required": [], **plain}


@cache
def _names(model: type[Arguments]) -> Mapping[str, tuple[str, ...]]:
    """Return the names by which callers may pass each argument, by its name in the schema."""
    names = {}
    for argument, (name, info) in zip(
        json_schema(model)["properties"], model.model_fields.items(), strict=True
    ):
        aliases = info.validation_alias
        others = aliases.choices if isinstance(aliases, AliasChoices) else ()
        names[argument] = tuple(dict.fromkeys((argument, *map(str, others), name)))
    return names


@cache
def _schemas(model: type[Arguments]) -> Mapping[str, Schema]:
    """Return the schema of each argument by all of its names."""
    properties = json_schema(model)["properties"]
    return {name: properties[argument] for argument, names in _names(model).items() for name in names}


def _plain(schema: Schema, definitions: Mapping[str, Schema], left_out: Sequence[str]) -> Schema:
    if "$ref" in schema:
        definition = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {**definition, "description": None, **schema}
    required = schema.get("required", ())
    plain = {}
    for key, value in schema.items():
        if key in left_out or value is None:
            continue
        if key == "properties":
            value = {  # noqa: PLW2901
                name: _plain(field if name in required else _without_null(field), definitions, left_out)
                for name, field in value.items()
            }
        elif key == "anyOf":
            value = [_plain(option, definitions, left_out) for option in value]  # noqa: PLW2901
        elif isinstance(value, dict) and key in ("items", "additionalProperties"):
            value = _plain(value, definitions, left_out)  # noqa: PLW2901
        plain[key] = value
    return plain


def _without_null(schema: Schema) -> Schema:
    """Drop the null of a field that is simply left out when there is no value."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


# ---- tools --------------------------------------------------------------------------------------------------------

A_co = TypeVar("A_co", bound=Arguments, covariant=True)

writer: ContextVar[str] = ContextVar("memoriter_writer", default="")
"""The name of the calling program: of its token, or as an MCP client names itself. Entries record it."""
MAX_WRITER = 40


@dataclass(frozen=True, slots=True)
class Call(Generic[A_co]):
    """One call of a tool with checked arguments."""

    memory: Memory
    arguments: A_co
    session: str | None = None
    progress: ProgressCallback | None = None
    #: A program that runs in the owner's process acts for the owner.
    access: Access = "admin"
    #: Recorded in the ledger of recalls.
    interface: str = "host"

    @property
    def trust(self) -> Trust:
        """Return whether the caller speaks for the owner or as an agent."""
        return "owner" if grants(self.access, "admin") else "agent"

    @property
    def source(self) -> str:
        """Return the source of what the caller adds."""
        name = " ".join(writer.get().split())[:MAX_WRITER]
        return f"tool:{name}" if name else "tool"

    @property
    def masked(self) -> bool:
        """Return whether secrets in notes are hidden from the caller. Tools for agents hide them from every caller."""
        return self.trust != "owner"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool or operation. Every interface offers it from this definition."""

    name: str
    #: Read by language models: what the tool does and when to use it.
    description: str
    arguments: type[Arguments]
    result: type[Shape]
    run: Callable[[Call[Any]], Shape]
    #: One sentence per language for the system prompt. Only tools that agents call have hints.
    hints: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = True
    #: Whether it deletes or overwrites stored data.
    destructive: bool = False
    owner_only: bool = False
    #: Whether its argument `session` may be a session key, which must be allowed too.
    names_session: bool = False
    #: Whether the gateway answers GET requests for it too.
    by_get: bool = False
    #: Whether the result names folders of this machine. Only the owner sees them in full.
    reveals_paths: bool = False
    #: The only MCP client that lists it, with its output schema. Others can call it too.
    client: str = ""

    @property
    def access(self) -> Access:
        """Return the access that a caller needs."""
        if self.owner_only:
            return "admin"
        return "read" if self.read_only else "write"

    @property
    def empty(self) -> Result:
        """Return the result of a call that has nothing to return."""
        return self.result.empty()

    def schema(self) -> Schema:
        """Return the JSON schema of the arguments."""
        return json_schema(self.arguments)

    def output_schema(self) -> Schema:
        """Return the JSON schema of the result. Every result also says whether memory is disabled, and any error."""
        properties = {**json_schema(self.result)["properties"], **_ALWAYS}
        return {"type": "object", "properties": properties, "required": [*self.empty, "disabled"]}

    def openai(self) -> dict[str, object]:
        """Return the tool in the format of OpenAI's chat completions."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema()}
        return {"type": "function", "function": function}

    def anthropic(self) -> dict[str, object]:
        """Return the tool in the format of Anthropic's messages."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema()}

    def annotations(self) -> dict[str, bool]:
        """Return the tool annotations of the Model Context Protocol."""
        return {"readOnlyHint": self.read_only, "destructiveHint": self.destructive, "openWorldHint": False}

    def check(self, arguments: Mapping[str, object]) -> Arguments:
        """Return the arguments as their model. Raises `BadArgument` with one sentence per wrong argument."""
        # Models send null for arguments that they leave out.
        known = _schemas(self.arguments)
        values = {name: value for name, value in arguments.items() if name in known and value is not None}
        unknown = [name for name, value in arguments.items() if name not in known and value is not None]
        # JSON may hold half a surrogate pair, which no answer can.
        named = [name[:MAX_NAME].encode("utf-8", "replace").decode() for name in unknown[:MAX_NAMED]]
        problems = dict[str, str]()
        try:
            readable = {name: _readable(name, value, known[name]) for name, value in values.items()}
            checked = self.arguments.model_validate(readable)
            if not unknown:
                return checked
        except ValidationError as error:
            problems = {
                str(problem["loc"][0]): problem["type"] for problem in error.errors(include_input=False)
            }
        except RecursionError:
            raise BadArgument("The arguments are nested too deeply.", *values) from None
        # An unknown name comes first: it often explains why a required argument is missing.
        sentences = [self._unknown(named, len(unknown))] if unknown else []
        sentences += [self._sentence(name, problem) for name, problem in problems.items()]
        raise BadArgument(" ".join(sentences), *named, *problems)

    def _unknown(self, named: Sequence[str], count: int) -> str:
        """Return the sentence about unknown names. It repeats a few of them and counts the others."""
        others = f" and {count - len(named):,} others" if count > len(named) else ""
        listed = ", ".join(map(repr, named)) + others
        known = ", ".join(self.schema()["properties"]) or "none"
        return f"{self.name} has no argument {listed}. Its arguments are: {known}."

    def _sentence(self, name: str, problem: str) -> str:
        if problem == "missing":
            return f"{self.name} needs `{name}`."
        return f"`{name}` must be {expected(_schemas(self.arguments)[name])}."

    def signature(self) -> inspect.Signature:
        """Return the signature of the tool as a Python function."""
        fields = sorted(self.arguments.model_fields.items(), key=lambda item: not item[1].is_required())
        kinds = list(self.schema()["properties"].values())
        names = list(self.arguments.model_fields)
        parameters = []
        for name, info in fields:
            kind = _PYTHON[kinds[names.index(name)]["type"]]
            default = inspect.Parameter.empty if info.is_required() else None
            annotation = kind if info.is_required() else kind | None
            parameters.append(
                inspect.Parameter(
                    name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
                )
            )
        return inspect.Signature(parameters, return_annotation=dict)


def operation(
    name: str, *, description: str = "", **options: Any
) -> Callable[[Callable[[Call[Any]], Shape]], Tool]:
    """Make a tool of a function. Its annotations name the models, and its docstring is the description."""

    def make(run: Callable[[Call[Any]], Shape]) -> Tool:
        types, text = get_type_hints(run), description or " ".join((run.__doc__ or "").split())
        (arguments,) = get_args(types["call"])
        return Tool(name, text, arguments, types["return"], run, **options)

    return make


_PYTHON: Mapping[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip

_ALWAYS: Schema = {
    "disabled": {"type": "boolean"},
    "error": {"type": "string"},
    "code": {"type": "string", "description": "A stable name of the error, for programs."},
    "details": {"type": "object", "description": "Values that the error mentions."},
    "codes": {"type": "object", "description": "The code and the arguments of sentences in the result."},
}


def grants(granted: Access, needed: Access) -> bool:
    """Return whether a caller with one access may do what needs the other."""
    return ACCESS.index(needed) <= ACCESS.index(granted)


# ---- arguments ----------------------------------------------------------------------------------------------------


def _readable(name: str, value: object, schema: Schema) -> object:
    """Return the value as the schema expects it: language models often write numbers as strings."""
    kind = schema.get("type")
    if isinstance(value, str):
        if kind not in ("integer", "number", "boolean"):
            # JSON may hold half a surrogate pair, files cannot.
            return value.encode("utf-8", "replace").decode()
        try:
            value = json.loads(value.strip().lower())
        except (ValueError, RecursionError):
            return value
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list | dict):
        try:
            text = json.dumps(value, ensure_ascii=False)
            return value if text.isascii() else json.loads(text.encode("utf-8", "replace"))
        except (TypeError, ValueError, RecursionError):
            raise BadArgument(
                f"`{name}` must be plain JSON data that is not nested too deeply.", name
            ) from None
    return value


def expected(schema: Schema) -> str:
    """Say in a few words which values a schema allows."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if schema.get("type") == "array":
        items, most = schema["items"], schema.get("maxItems")
        size = f"at most {most:,} " if most else ""
        noun = {"integer": "whole numbers", "object": "objects"}.get(items.get("type"), "strings")
        return f"a list of {size}{noun}" + (f": {', '.join(items['enum'])}" if "enum" in items else "")
    if schema.get("type") == "string":
        most = schema.get("maxLength")
        return f"a string of at most {most:,} characters" if most else "a string"
    kinds = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
    return kinds.get(schema.get("type", ""), "an object") + _bounds(
        schema.get("minimum"), schema.get("maximum")
    )


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" between {low:,} and {high:,}"
    if low is not None:
        return f" that is at least {low:,}"
    return f" that is at most {high:,}" if high is not None else ""
