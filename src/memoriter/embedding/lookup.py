"""Choose the embedder, and say why it was chosen and not another.

The choice loads no model and calls no provider: a local model is known by its files, a provider by its key and package.
There is one exception: a server is asked once for the dimensions of a model that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from memoriter.embedding.guarded import Guarded, ProviderHealth
from memoriter.embedding.protocol import CallLimits, Embedder, EmbedderSpec, RemoteEmbedder
from memoriter.errors import EmbedderUnavailable
from memoriter.extension import offers, ranked, suggest
from memoriter.sentences import sentence

BUNDLED = Path(__file__).parent / "models"
#: Time limit for documents, in time limits of one attempt: retries, their pauses, and a lookup of the host that hangs.
BATCH_LIMIT_FACTOR = 5

HOW_TO_GET_A_MODEL = (
    "set embedding.model_path (MEMORITER_EMBEDDING__MODEL_PATH) to a folder with an ONNX model "
    "and its tokenizer.json"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen embedder, or none, and the reason."""

    embedder: Embedder | None
    provider: str
    model: str
    reason: str
    #: An embedder was requested, and none is available.
    missing: bool = False
    #: The reason why a provider was not chosen, by provider.
    others: Mapping[str, str] = field(default_factory=dict)
    #: The requested provider, when its fallback is used from the start.
    instead: str | None = None
    #: The replacement of the embedder when it fails.
    fallback: Choice | None = None
    #: The embedder without guards, if it calls a server.
    remote: RemoteEmbedder | None = None
    #: The same embedder without retries, for documents that a search waits for.
    without_retry: Embedder | None = None
    #: The recipe that makes the same embedder again, without keys.
    recipe: str = ""

    @classmethod
    def of_embedder(cls, embedder: Embedder, spec: EmbedderSpec | None = None) -> Self:
        """Use an embedder that the caller made. It gets a time limit for queries, but no cooldown."""
        identity = embedder.identity
        guarded = Guarded(embedder, query_s=(spec or EmbedderSpec()).local_query_s)
        return cls(guarded, identity.provider, identity.model, sentence("embedder.caller"))

    @property
    def limits(self) -> CallLimits | None:
        """Limits of one call, if the provider has any."""
        return self.remote.limits if self.remote else None


def resolve(spec: EmbedderSpec | None = None) -> Choice:
    """Choose the embedder. Never raises: without an embedder, the choice says how to get one."""
    spec = spec or EmbedderSpec()
    if spec.provider == "none":
        return Choice(None, "none", "", sentence("embedder.none"))
    if spec.provider == "auto":
        return _auto(spec)
    try:
        choice = _make(spec)
    except EmbedderUnavailable as error:
        return _instead(spec, str(error))
    others = dict.fromkeys((name for name in _providers() if name != spec.provider), "not requested")
    return replace(choice, others=others, fallback=_fallback(spec))


def remake(spec: EmbedderSpec, recipe: str) -> Choice | None:
    """Make the embedder of a recipe, or return None if it is no longer available."""
    former = spec.from_recipe(recipe) if recipe else None
    if former is None:
        return None
    try:
        return _make(former)
    except EmbedderUnavailable:
        return None


def bundled_model() -> Path | None:
    """Return the folder of the newest model that came with the package."""
    folders = [manifest.parent for manifest in BUNDLED.glob("*/manifest.json")]
    return max(folders, key=lambda folder: (_version(folder.name), folder.name), default=None)


def _auto(spec: EmbedderSpec) -> Choice:
    """Choose the first available of the usual providers."""
    others: dict[str, str] = {}
    names = [*_for_file(spec.model_path), "local", *(name for name, _ in ranked("embedders"))]
    for name in names:
        own = spec if name == "local" or name in _for_file(spec.model_path) else spec.for_provider(name)
        try:
            choice = _make(replace(own, provider=name))
        except EmbedderUnavailable as error:
            others[name] = str(error)
            continue
        unused = [other for other in _providers() if other != name and other not in others]
        others |= dict.fromkeys(unused, f"not needed: {name} comes first")
        return replace(choice, others=others, fallback=_fallback(spec))
    return Choice(
        None, "none", "", sentence("embedder.missing", why=others[names[0]]), missing=True, others=others
    )


def _instead(spec: EmbedderSpec, reason: str) -> Choice:
    """Choose the fallback of a provider that is not available."""
    fallback = _fallback(spec)
    others = {spec.provider: reason}
    if fallback is None or fallback.embedder is None:
        why = sentence("embedder.missing", why=reason + (f"; {fallback.reason}" if fallback else ""))
        return Choice(None, "none", "", why, missing=True, others=others)
    why = sentence("embedder.fallback", name=spec.provider, why=reason)
    return replace(fallback, reason=why, others=others, instead=spec.provider)


def _fallback(spec: EmbedderSpec) -> Choice | None:
    if spec.fallback in ("none", spec.provider):
        return None
    try:
        return _make(spec.for_provider(spec.fallback))
    except EmbedderUnavailable as error:
        return Choice(None, "none", "", f"no fallback: {error}", missing=True)


def _make(spec: EmbedderSpec) -> Choice:
    """Make the embedder of the named provider, or raise EmbedderUnavailable."""
    if spec.provider == "local":
        return _local(spec)
    offer = offers("embedders").get(spec.provider)
    if offer is None:
        known = ("auto", *_providers(), "none")
        raise EmbedderUnavailable(
            f"unknown embedder {spec.provider[:100]!r}. {suggest(spec.provider, known)}"
        )
    try:
        made = offer.load()(spec)
        _ = made.identity
    except EmbedderUnavailable:
        raise
    except Exception as error:
        # Another package may fail in any way. The memory continues with keywords and says so.
        raise EmbedderUnavailable(f"the embedder {spec.provider!r} failed to start: {error}") from error
    if hasattr(made, "without_retry"):
        return _remote(made, spec)
    file = spec.model_path if offer.suffix else None
    reason = sentence("embedder.file", path=file) if file else sentence("embedder.chosen", name=spec.provider)
    return _in_process(made, spec, reason)


def _providers() -> tuple[str, ...]:
    return ("local", *offers("embedders"))


def _for_file(path: Path | None) -> tuple[str, ...]:
    """Return the providers that run this model file."""
    suffix = path.suffix.lower() if path else ""
    return tuple(name for name, offer in offers("embedders").items() if suffix and offer.suffix == suffix)


def _local(spec: EmbedderSpec) -> Choice:
    from memoriter.embedding.local import LocalEmbedder

    folder = spec.model_path or bundled_model()
    if folder is None:
        raise EmbedderUnavailable(f"no model came with this installation; {HOW_TO_GET_A_MODEL}")
    reason = sentence("embedder.folder", path=folder) if spec.model_path else sentence("embedder.bundled")
    # It always answers, and handing a query to a thread would take 0.3 ms.
    return _in_process(LocalEmbedder(folder, threads=spec.threads), spec, reason, limits_queries=False)


def _in_process(
    embedder: Embedder, spec: EmbedderSpec, reason: str, *, limits_queries: bool = True
) -> Choice:
    """Guard an embedder that runs in this process."""
    identity = embedder.identity
    health = ProviderHealth(identity.provider)
    query_s = spec.local_query_s if limits_queries else None
    guarded = Guarded(embedder, query_s=query_s, batch_s=spec.local_batch_s, health=health)
    return Choice(guarded, identity.provider, identity.model, reason, recipe=spec.recipe(spec.provider))


def _remote(remote: RemoteEmbedder, spec: EmbedderSpec) -> Choice:
    """Guard an embedder that calls a server."""
    health, query_s = ProviderHealth(spec.provider), remote.query_s
    guarded = Guarded(remote, query_s=query_s, batch_s=BATCH_LIMIT_FACTOR * remote.batch_s, health=health)
    return Choice(
        guarded,
        spec.provider,
        remote.identity.model,
        remote.reason,
        remote=remote,
        without_retry=Guarded(remote.without_retry(), batch_s=query_s, health=health),
        recipe=spec.recipe(spec.provider),
    )


def _version(name: str) -> int:
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else -1
