"""What a provider's failure means, in our own errors and words.

Vendors raise what they like; a status, the headers and one line of text are all that is taken from it. Their
exceptions are dropped and not chained: they hold requests, and requests hold keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memoriter.errors import EmbedderBusy, EmbeddingError, QuotaSpent

#: What providers write when waiting a minute would not help. "Billing" alone does not say so: some advertise it with
#: every rate limit.
_USED_UP = ("insufficient_quota", "exceeded your current quota", "credit balance", "out of credits")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What can be said of a vendor's exception."""

    status: int | None = None  #: of HTTP; None: no answer came, or none that could be read
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    unreadable: bool = False  #: an answer came, and the client could not make sense of it


def told(
    provider: str, error: Exception, trouble: Trouble, *, key: str = "", variable: str = ""
) -> EmbeddingError:
    """The error to raise instead of the vendor's."""
    if ours := _ours(error):
        return ours
    what = _one_line(trouble.message, key)
    if trouble.unreadable:
        return EmbeddingError(f"{provider} answered what cannot be read{_after(what)}")
    if trouble.status is None:
        return EmbedderBusy(f"{provider} cannot be reached: {what or type(error).__name__}")
    if trouble.status in (401, 403):
        # The vendor's own sentence is left out: some quote the key.
        where = f"; check {variable}" if variable else ""
        return EmbeddingError(f"{provider} refused the key (status {trouble.status}){where}")
    return _by_status(provider, trouble.status, what, _retry_after(trouble.headers))


def _by_status(provider: str, status: int, what: str, wait_s: float | None) -> EmbeddingError:
    if status == 402 or (status == 429 and any(sign in what.lower() for sign in _USED_UP)):
        return QuotaSpent(
            f"the quota at {provider} is used up: {what}; what is embedded is kept, "
            "and `memoriter index` goes on from there when there is quota again"
        )
    if status == 429:
        wait = f"; it asks to wait {wait_s:g} s" if wait_s is not None else ""
        return EmbedderBusy(f"{provider} limits our rate{wait}", wait_s)
    if status in (408, 409, 425) or status >= 500:
        return EmbedderBusy(f"{provider} failed with status {status}{_after(what)}", wait_s)
    return EmbeddingError(f"{provider} refused the request with status {status}{_after(what)}")


def _after(what: str) -> str:
    return f": {what}" if what else ""


def _ours(error: BaseException) -> EmbeddingError | None:
    """An error of ours that the vendor's client has wrapped."""
    return next((cause for cause in _causes(error) if isinstance(cause, EmbeddingError)), None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _one_line(message: str, key: str) -> str:
    from memoriter.text.redaction import redact  # many patterns, for failures alone

    first = " ".join(message.split())[:300]
    if len(key) >= 4:
        first = first.replace(key, "***")
    return redact(first).rstrip(".")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider asks us to wait: a number, milliseconds, or a date."""
    low = {str(name).lower(): str(value) for name, value in headers.items()}
    try:
        if "retry-after-ms" in low:
            return max(0.0, float(low["retry-after-ms"]) / 1000)
        if "retry-after" not in low:
            return None
        value = low["retry-after"]
        if value.replace(".", "", 1).isdecimal():
            return float(value)
        from email.utils import parsedate_to_datetime

        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
