"""Which embedder answers, and why this one and none of the others.

Nothing is loaded and nobody is called to decide: a model is known by its files, a provider by its key and its package.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from memoriter.embedding.breaker import Breaker
from memoriter.embedding.cache import RememberedQueries
from memoriter.embedding.checked import Checked
from memoriter.embedding.deadline import Deadline
from memoriter.embedding.protocol import Embedder
from memoriter.embedding.remote import Limits, Remote, Service, installed, missing_extra
from memoriter.embedding.retrying import Retrying
from memoriter.embedding.wire import is_here
from memoriter.embedding.wish import EmbedderSpec
from memoriter.errors import EmbedderUnavailable

ENTRY_POINTS = "memoriter.embedders"  #: group of callables that take no argument and return an Embedder
BUNDLED = Path(__file__).parent / "models"
AUTO = (
    "local",
    "openai",
    "gemini",
    "voyage",
)  #: in this order; Ollama has no key that would show it is there
PACKAGES = {"openai": "openai", "gemini": "google.genai", "voyage": "voyageai", "ollama": "ollama"}
PROVIDERS = ("local", "openai", "gemini", "voyage", "ollama", "llama-cpp")

HOW_TO_GET_ONE = (
    "set embedding.model_path (MEMORITER_EMBEDDING__MODEL_PATH) to a folder with an ONNX model "
    "and its tokenizer.json"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The embedder that was found, or none, and the reasons in words."""

    embedder: Embedder | None
    provider: str
    model: str
    reason: str
    missing: bool = False  #: vectors were asked for and cannot be had
    others: Mapping[str, str] = field(default_factory=dict)  #: by provider, why it is not the one
    instead: str | None = None  #: the provider that was asked for, when its fallback is used from the start
    fallback: Choice | None = None  #: what takes over when the embedder fails
    remote: Remote | None = None  #: the service under the wrappers, for what only it can do
    hasty: Embedder | None = None  #: the same without patience, for documents that a search waits for
    recipe: str = ""  #: what makes the same embedder again, but for keys

    @classmethod
    def given(cls, embedder: Embedder, wish: EmbedderSpec | None = None) -> Self:
        """An embedder that the caller made; when to leave it alone is the caller's own affair."""
        identity = embedder.identity
        timed = Deadline(Checked(embedder), query_s=(wish or EmbedderSpec()).local_query_s)
        return cls(timed, identity.provider, identity.model, "given by the caller")

    @property
    def limits(self) -> Limits | None:
        """What one call may hold, where the provider has a limit."""
        return self.remote.limits if self.remote else None


def resolve(wish: EmbedderSpec | None = None) -> Choice:
    """Find the embedder. Never raises: where there is none, the choice says how to get one."""
    wish = wish or EmbedderSpec()
    if wish.provider == "none":
        return Choice(None, "none", "", "keyword search only, as set")
    if wish.provider == "auto":
        return _auto(wish)
    try:
        choice = _make(wish)
    except EmbedderUnavailable as error:
        return _instead(wish, str(error))
    others = dict.fromkeys((name for name in PROVIDERS if name != wish.provider), "not asked for")
    return replace(choice, others=others, fallback=_fallback(wish))


def remake(wish: EmbedderSpec, recipe: str) -> Choice | None:
    """The embedder that a recipe describes, if it can still be had."""
    former = wish.from_recipe(recipe) if recipe else None
    if former is None:
        return None
    try:
        return _make(former)
    except EmbedderUnavailable:
        return None


def bundled_model() -> Path | None:
    """The folder of the newest model that came with the package."""
    folders = [manifest.parent for manifest in BUNDLED.glob("*/manifest.json")]
    return max(folders, key=lambda folder: (_version(folder.name), folder.name), default=None)


# ---- which ----------------------------------------------------------------------------------------------------


def _auto(wish: EmbedderSpec) -> Choice:
    """The first of the usual ones that can be had."""
    others: dict[str, str] = {}
    names = ("llama-cpp", *AUTO) if _is_gguf(wish.model_path) else AUTO
    for name in names:
        own = wish if name in ("local", "llama-cpp") else wish.only(name)
        try:
            choice = _make(replace(own, provider=name))
        except EmbedderUnavailable as error:
            others[name] = str(error)
            continue
        rest = [other for other in PROVIDERS if other != name and other not in others]
        others |= dict.fromkeys(rest, f"not needed: {name} comes first")
        return replace(choice, others=others, fallback=_fallback(wish))
    return Choice(None, "none", "", f"keyword search only: {others[names[0]]}", missing=True, others=others)


def _instead(wish: EmbedderSpec, reason: str) -> Choice:
    """What is used when the one that was asked for cannot be had."""
    fallback = _fallback(wish)
    others = {wish.provider: reason}
    if fallback is None or fallback.embedder is None:
        words = f"keyword search only: {reason}" + (f"; {fallback.reason}" if fallback else "")
        return Choice(None, "none", "", words, missing=True, others=others)
    words = f"the fallback, because {wish.provider} cannot be used: {reason}"
    return replace(fallback, reason=words, others=others, instead=wish.provider)


def _fallback(wish: EmbedderSpec) -> Choice | None:
    if wish.fallback in ("none", wish.provider):
        return None
    try:
        return _make(wish.only(wish.fallback))
    except EmbedderUnavailable as error:
        return Choice(None, "none", "", f"no fallback: {error}", missing=True)


# ---- how ------------------------------------------------------------------------------------------------------


def _make(wish: EmbedderSpec) -> Choice:
    """The embedder of this name; EmbedderUnavailable says why it cannot be had."""
    if wish.provider == "local":
        return _local(wish)
    if wish.provider == "llama-cpp":
        return _llama_cpp(wish)
    if wish.provider in PACKAGES:
        return _service(wish)
    return _added(wish)


def _local(wish: EmbedderSpec) -> Choice:
    from memoriter.embedding.local import LocalEmbedder

    folder = wish.model_path or bundled_model()
    if folder is None:
        raise EmbedderUnavailable(f"no model came with this installation; {HOW_TO_GET_ONE}")
    reason = f"the model in {folder}, as set" if wish.model_path else "the model that comes with memoriter"
    return _here(LocalEmbedder(folder, threads=wish.threads), wish, reason)


def _llama_cpp(wish: EmbedderSpec) -> Choice:
    from memoriter.embedding.llama_cpp import LlamaCpp

    if wish.model_path is None:
        raise EmbedderUnavailable("no model: set embedding.model_path to a GGUF file")
    return _here(
        LlamaCpp(wish.model_path, threads=wish.threads), wish, f"the model {wish.model_path}, as set"
    )


def _added(wish: EmbedderSpec) -> Choice:
    """One that an installed package offers."""
    from importlib.metadata import entry_points

    name = wish.provider
    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in found:
        known = ("auto", *PROVIDERS, "none", *sorted(found))
        near = difflib.get_close_matches(name[:100], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise EmbedderUnavailable(f"there is no embedder {name[:100]!r}; {hint}")
    try:
        make: Callable[[], Embedder] = found[name].load()
        embedder = make()
        _ = embedder.identity
    except Exception as error:
        # A stranger's package may fail in any way; memory goes on with keywords and says so.
        raise EmbedderUnavailable(f"the embedder {name!r} failed to start: {error}") from error
    return _here(embedder, wish, f"{name}, as set")


def _here(embedder: Embedder, wish: EmbedderSpec, reason: str) -> Choice:
    """An embedder that runs in this process."""
    timed = Deadline(Checked(embedder), query_s=wish.local_query_s, batch_s=wish.local_batch_s)
    identity = embedder.identity
    return Choice(
        RememberedQueries(Breaker(timed)),
        identity.provider,
        identity.model,
        reason,
        recipe=wish.recipe(wish.provider),
    )


def _service(wish: EmbedderSpec) -> Choice:
    """An embedder at the other end of a wire: retried, timed, left alone when it fails."""
    name = wish.provider
    if not installed(PACKAGES[name]):
        raise EmbedderUnavailable(missing_extra(name))
    service = _open(name, wish)
    address = getattr(service, "base_url", None)
    near = is_here(address)
    query_s, batch_s = (wish.local_query_s, wish.local_batch_s) if near else (wish.query_s, wish.batch_s)
    redacts = wish.redact == "always" or (wish.redact == "remote" and not near)
    remote = Remote(service, redacts=redacts, query_s=query_s, batch_s=batch_s)
    patient = Retrying(Deadline(Checked(remote), batch_s=batch_s), attempts=wish.attempts)
    breaker = Breaker(Deadline(patient, query_s=query_s))
    hasty = breaker.beside(Deadline(Checked(remote), batch_s=query_s))
    where = f"at {address}" if address and name in wish.base_urls else f"by {service.variable}"
    reason = f"{name}, {where}" if name != "ollama" else f"ollama at {address}"
    return Choice(
        RememberedQueries(breaker),
        name,
        service.identity.model,
        reason,
        remote=remote,
        hasty=hasty,
        recipe=wish.recipe(name),
    )


def _open(name: str, wish: EmbedderSpec) -> Service:
    if name == "openai":
        from memoriter.embedding.openai import OpenAIService

        return OpenAIService(wish)
    if name == "gemini":
        from memoriter.embedding.gemini import GeminiService

        return GeminiService(wish)
    if name == "voyage":
        from memoriter.embedding.voyage import VoyageService

        return VoyageService(wish)
    from memoriter.embedding.ollama import OllamaService

    return OllamaService(wish)


def _is_gguf(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() == ".gguf"


def _version(name: str) -> int:
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else -1
