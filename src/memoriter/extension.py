"""Extensions: what a folder or an installed package adds to memoriter.

An extension is one `Extension` object, registered in the entry point group `memoriter.extensions`. It names its code as
"package.module:attribute". The code is imported when it is used, so an installed extension costs only its declaration.

    >>> extension = Extension(name="files", importers={"files": Offer("memoriter_files.reading:import_files")})

The extensions in `memoriter.extensions` are registered in the same way as those of other packages.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args

from memoriter import logs
from memoriter.errors import install_command

log = logs.get("extension")

ENTRY_POINTS = "memoriter.extensions"

#: The kinds of parts that an extension can offer, each by name. The name is the value of a setting or a word on the
#: command line; for stores it is the scheme of a URL, for readers the ending of a file.
Kind = Literal[
    "embedders",
    "chats",
    "vector_engines",
    "stores",
    "engines",
    "rerankers",
    "readers",
    "transcripts",
    "importers",
    "hosts",
    "commands",
    "mounts",
    "mcp_tools",
    "operations",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Offer:
    """One part of an extension."""

    #: "package.module:attribute". The protocol of each kind says what the attribute is.
    code: str
    #: The extra of memoriter that installs the packages it needs, if any.
    extra: str = ""
    #: The package that it cannot work without, if the extra installs one.
    package: str = ""
    #: One line for lists and for ``--help``.
    summary: str = ""
    #: The group of a command in ``--help``.
    group: str = ""
    #: The place in the order of an automatic choice. None: only by name.
    rank: int | None = None
    #: For embedders: the ending of the model files that it runs, such as ".gguf".
    suffix: str = ""
    #: For embedders: the beginnings of the names of its models, by which a model reveals its provider.
    models: tuple[str, ...] = ()

    def load(self) -> Any:
        """Import the code. Raises `ImportError` if it or a package that it needs is missing."""
        return resolve(self.code)

    @property
    def install(self) -> str:
        """The command that installs what it needs."""
        return install_command(self.extra)

    def is_installed(self) -> bool:
        """Return whether the package that it needs is installed. The package is not imported."""
        return not self.package or importlib.util.find_spec(self.package) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """Everything that one extension adds. Each mapping is by name."""

    name: str
    embedders: Mapping[str, Offer] = field(default_factory=dict)
    chats: Mapping[str, Offer] = field(default_factory=dict)
    vector_engines: Mapping[str, Offer] = field(default_factory=dict)
    stores: Mapping[str, Offer] = field(default_factory=dict)
    engines: Mapping[str, Offer] = field(default_factory=dict)
    rerankers: Mapping[str, Offer] = field(default_factory=dict)
    #: Functions that take the bytes of a file and return its text and a remark, or raise `SourceError`.
    readers: Mapping[str, Offer] = field(default_factory=dict)
    #: Functions that take a record of a transcript and return the message in it, with ``role`` and ``content``. They
    #: return None if the record has another format, and an empty ``role`` for what the host wrote itself.
    transcripts: Mapping[str, Offer] = field(default_factory=dict)
    importers: Mapping[str, Offer] = field(default_factory=dict)
    hosts: Mapping[str, Offer] = field(default_factory=dict)
    commands: Mapping[str, Offer] = field(default_factory=dict)
    #: Functions that take a gateway and return a `Mount`, by the path at which the gateway serves it.
    mounts: Mapping[str, Offer] = field(default_factory=dict)
    #: Functions that take the names of an agent's tools and return tools in the form that one MCP client requires.
    mcp_tools: Mapping[str, Offer] = field(default_factory=dict)
    #: Operations (`tools/tool.py`), which every interface offers.
    operations: Mapping[str, Offer] = field(default_factory=dict)
    #: Methods of `Memory`: functions "package.module:attribute" that take a memory.
    methods: Mapping[str, str] = field(default_factory=dict)
    #: Functions "package.module:attribute" that take a memory and ``deep`` and yield findings for `memoriter doctor`.
    checks: Sequence[str] = ()
    #: Functions "package.module:attribute" that take a memory. The resident process calls them when it is idle, and
    #: cancels them when a request arrives (`memoriter.background`). Each decides whether it is due.
    chores: Sequence[str] = ()
    #: Sections of settings by their place, such as {"memory.example": "package.module:ExampleSettings"}. If the place
    #: is a section of the core, the fields are added to it.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: Environment variables that other tools use too, with the settings that they set.
    variables: Mapping[str, str] = field(default_factory=dict)
    #: Beginnings of the names of other variables that change what it does. The resident process serves only callers
    #: that have the same values.
    environment: Sequence[str] = ()
    #: Names of settings in other programs: a setting of ours, or "package.module:function" that returns settings by
    #: name for a value.
    other_names: Mapping[str, str] = field(default_factory=dict)


def resolve(code: str) -> Any:
    """Import what "package.module:attribute" names."""
    module, _, attribute = code.partition(":")
    return getattr(import_module(module), attribute)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return every installed extension: our own first, then the others by name."""
    return tuple(found for _, found in _declared() if isinstance(found, Extension))


@cache
def problems() -> Mapping[str, str]:
    """Return the extensions that cannot be used, each with the reason."""
    found = {name: reason for name, reason in _declared() if isinstance(reason, str)}
    for kind in KINDS:
        owners = dict[str, str]()
        for extension in extensions():
            for name in getattr(extension, kind):
                owner = owners.setdefault(name, extension.name)
                if owner != extension.name:
                    found[extension.name] = f"{owner} already offers {name!r} ({kind})"
    return found


def forget_installed() -> None:
    """Look for installed extensions again, after a package was installed into this process."""
    for known in (extensions, problems, _declared):
        known.cache_clear()


def offers(kind: Kind) -> Mapping[str, Offer]:
    """Return what the extensions offer of this kind, by name. Of two with one name, the first counts."""
    found = dict[str, Offer]()
    for extension in extensions():
        for name, offer in getattr(extension, kind).items():
            found.setdefault(name, offer)
    return found


def suggest(name: str, known: Sequence[str]) -> str:
    """Return the end of an error about an unknown name: the one that was probably meant, or all of them."""
    near = difflib.get_close_matches(name[:100], known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Available: {', '.join(known)}."


@cache
def _declared() -> tuple[tuple[str, Extension | str], ...]:
    """Return each registered extension, or the reason why it cannot be loaded."""
    points = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (not _is_ours(point), point.name))
    return tuple((point.name, _load(point)) for point in points)


def _is_ours(point: EntryPoint) -> bool:
    return point.value.startswith(f"{__package__}.")


def _load(point: EntryPoint) -> Extension | str:
    try:
        found = point.load()
    except Exception as error:  # noqa: BLE001 - another package may fail in any way; memoriter works without it
        log.warning("The extension %r cannot be loaded: %s", point.name, error)
        return f"cannot be loaded: {error}"
    return found if isinstance(found, Extension) else f"{point.value} is not an Extension"


def added_method(memory: object, name: str) -> Callable[..., Any]:
    """Return a method of a memory that an extension adds."""
    for extension in extensions():
        if name in extension.methods:
            return partial(resolve(extension.methods[name]), memory)
    raise AttributeError(f"{type(memory).__name__!r} object has no attribute {name!r}")


def ranked(kind: Kind) -> Iterator[tuple[str, Offer]]:
    """Yield what the extensions offer of this kind, in the order of an automatic choice. Others are left out."""
    found = [(offer.rank, name, offer) for name, offer in offers(kind).items() if offer.rank is not None]
    for _, name, offer in sorted(found, key=lambda one: one[:2]):
        yield name, offer
