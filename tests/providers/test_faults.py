"""Faults of providers: keywords answer in time and the answer says why.

No invalid vector is stored, and the memory recovers automatically when the fault ends.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from vendors import DIMS, KEY, PATHS, Vendors, url, vector

from memoriter import Answer, Memory
from memoriter.engines.builtin import BuiltinEngine

#: Each fault with a part of the reason that the answer must give.
FAULTS = {
    "refused": "cannot be reached",
    "dns": "cannot be reached",
    "connect hang": "did not answer within|cannot be reached",
    "slow headers": "did not answer within|cannot be reached",
    "slow body": "did not answer within|cannot be reached|took longer",
    "drip": "did not answer within|took longer",
    "truncated": "cannot be reached|cannot be read",
    "tls": "cannot be reached",
    "429": "rate limit",
    "quota": "used up",
    "500": "status 500",
    "503": "status 503",
    "401": "rejected the key",
    "wrong json": "cannot be read|no vectors|vectors for",
    "no json": "cannot be read",
    "html": "text/html instead of JSON",
    "empty": "cannot be read|no vectors|vectors for",
    "gzip bomb": "compressed",
    "2 GiB": "too large",
    "redirect": "redirect",
    "wrong dims": "dimensions",
    "mixed dims": "different lengths|dimensions",
    "nan": "not finite",
    "inf": "not finite",
    "zero": "of length 0",
    "huge": "of length",
    "too few": "vectors for",
    "too many": "vectors for",
    "duplicate index": "wrong indexes",
    "other model": "instead of",
}
CALM = {"embedding__background": False}
LATE = ("connect hang", "slow headers", "slow body", "drip")
#: Faults that a provider cannot have, or cannot show.
UNSEEN = {
    "gemini": ("duplicate index", "other model"),  # its answers contain neither indexes nor a model
    "ollama": ("duplicate index", "tls"),  # no indexes; usually reached without TLS
}

OpenProvider = Callable[..., Memory]


def by_meaning(answer: Answer) -> bool:
    return any(part.name == "vector" for hit in answer.hits for part in hit.explain.parts)


def stored(memory: Memory) -> np.ndarray:
    """Every stored vector of any embedder."""
    import apsw

    database = apsw.Connection(
        str(memory.settings.index_folder / "index.db"), flags=apsw.SQLITE_OPEN_READONLY
    )
    with database:
        blobs = [blob for (blob,) in database.execute("select vector from embedding_cache")]
    database.close()
    return np.array([np.frombuffer(blob, dtype="<f4") for blob in blobs])


def reconnect(memory: Memory) -> None:
    """Let the next call open a new connection."""
    assert isinstance(memory._parts.engine, BuiltinEngine)
    assert memory._parts.engine.choice.embedder is not None
    memory._parts.engine.choice.embedder.close()


@pytest.mark.parametrize(
    ("fault", "provider"),
    [(fault, one) for fault in FAULTS for one in PATHS if fault not in UNSEEN.get(one, ())],
)
def test_a_fault_of_a_provider(
    fault: str,
    provider: str,
    vendors: Vendors,
    open_provider: OpenProvider,
    note: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    note("memory/heron.md", "The grey heron stands in the river at dawn.")
    memory = faulty = open_provider(provider, **CALM)
    if fault == "tls":
        faulty = open_provider(provider, **CALM, embedding__base_url=url(provider, "https"))
    else:
        assert memory.sync().pending == 0
        assert by_meaning(memory.search("heron dawn"))
        reconnect(memory)
    if fault in LATE:
        # A search that indexes a new note does not wait for the retries of an indexing run.
        monkeypatch.setattr("memoriter.extensions.vendors.embedder.MAX_RETRIES", 3)
        faulty = open_provider(provider, **CALM, embedding__query_timeout_s=0.4)
    good = stored(memory)

    vendors.fault = fault
    note("memory/otter.md", "The otter sleeps under the old bridge.")
    answer = faulty.search("where does the otter sleep")

    assert [hit.path for hit in answer.hits] == ["memory/otter.md"]
    assert not by_meaning(answer)
    assert answer.degraded
    assert any(words in answer.degraded for words in FAULTS[fault].split("|")), answer.degraded
    assert KEY not in answer.degraded
    np.testing.assert_array_equal(stored(faulty), good)
    assert not [path for path, _, _ in vendors.requests if "elsewhere" in path]

    vendors.fault = None
    reconnect(memory)
    # A spent quota starts a cooldown of ten minutes in this process, but not in another one.
    healed = open_provider(provider, **CALM) if fault == "quota" else memory
    report = healed.sync()
    assert (report.pending, report.degraded) == (0, None)
    answer = healed.search("where does the otter sleep")
    assert (by_meaning(answer), answer.degraded) == (True, None)
    if provider != "ollama":
        np.testing.assert_allclose(
            sorted(stored(healed).tolist()),
            sorted([vector("The grey heron stands in the river at dawn.", DIMS),
                    vector("The otter sleeps under the old bridge.", DIMS)]),
            atol=1e-6,
        )  # fmt: skip


def test_a_provider_that_keeps_failing_is_not_called_during_its_cooldown(
    vendors: Vendors, open_provider: OpenProvider, note: Callable[[str, str], Path]
) -> None:
    note("memory/heron.md", "The grey heron stands in the river at dawn.")
    memory = open_provider("openai", **CALM)
    memory.sync()
    vendors.fault = "500"
    for word in ("dawn", "river", "grey"):
        assert memory.search(f"heron {word}").hits
    calls = vendors.calls()
    answer = memory.search("heron stands")
    assert answer.hits
    assert vendors.calls() == calls
    assert answer.degraded is not None
    assert "openai is in cooldown; next attempt in" in answer.degraded
