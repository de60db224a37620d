"""Whatever a provider does wrong: keywords answer in time, the answer says why, no bad vector is kept, and when the
fault ends all is well again without anybody's help."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from vendors import DIMS, KEY, Vendors, url, vector

from memoriter import Answer, Memory
from memoriter.engines.builtin import BuiltinEngine

#: Each fault with words of the reason that the answer must give.
FAULTS = {
    "refused": "cannot be reached",
    "dns": "cannot be reached",
    "connect hang": "did not answer within|cannot be reached",
    "slow headers": "did not answer within|cannot be reached",
    "slow body": "did not answer within|cannot be reached|took longer",
    "drip": "did not answer within|took longer",
    "truncated": "cannot be reached|cannot be read",
    "tls": "cannot be reached",
    "429": "limits our rate",
    "quota": "used up",
    "500": "status 500",
    "503": "status 503",
    "401": "refused the key",
    "wrong json": "cannot be read|no vectors|vectors for",
    "no json": "cannot be read",
    "html": "text/html, not with JSON",
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
    "duplicate index": "numbered",
    "other model": "not of",
}
CALM = {"embedding__background": False}
LATE = ("connect hang", "slow headers", "slow body", "drip")
UNSEEN = {
    "gemini": ("duplicate index", "other model"),  # its answers carry neither numbers nor a name
    "ollama": ("duplicate index", "tls"),  # no numbers; a server of one's own, reached without TLS
}

OpenProvider = Callable[..., Memory]


def by_meaning(answer: Answer) -> bool:
    return any(part.name == "vector" for hit in answer.hits for part in hit.explain.parts)


def stored(memory: Memory) -> np.ndarray:
    """Every vector that is kept, whosever it is."""
    import apsw

    database = apsw.Connection(
        str(memory.settings.agent_folder / "index.db"), flags=apsw.SQLITE_OPEN_READONLY
    )
    with database:
        blobs = [blob for (blob,) in database.execute("select vector from embedding_cache")]
    database.close()
    return np.array([np.frombuffer(blob, dtype="<f4") for blob in blobs])


def reconnect(memory: Memory) -> None:
    """Let the next call open a connection of its own."""
    assert isinstance(memory.engine, BuiltinEngine)
    assert memory.engine.choice.embedder is not None
    memory.engine.choice.embedder.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_provider(
    fault: str,
    provider: str,
    vendors: Vendors,
    open_provider: OpenProvider,
    note: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if fault in UNSEEN.get(provider, ()):
        pytest.skip("cannot happen, or cannot be seen, with this provider")
    note("memory/heron.md", "The grey heron stands in the river at dawn.")
    memory = faulty = open_provider(provider, **CALM)
    if fault == "tls":
        faulty = open_provider(provider, **CALM, embedding__base_url=url(provider, "https"))
    else:
        assert memory.sync().pending == 0
        assert by_meaning(memory.search("heron dawn"))
        reconnect(memory)
    if fault in LATE:
        # The patience of an indexing run is not that of a search, even where a search takes in a new note.
        monkeypatch.setattr("memoriter.embedding.wish.ATTEMPTS", 4)
        faulty = open_provider(provider, **CALM, embedding__query_timeout_s=0.4)
    good = stored(memory)

    vendors.fault = fault
    note("memory/otter.md", "The otter sleeps under the old bridge.")
    started = time.monotonic()
    answer = faulty.search("where does the otter sleep")
    elapsed = time.monotonic() - started

    assert elapsed < 40, "keywords were late"
    assert [hit.path for hit in answer.hits] == ["memory/otter.md"]
    assert not by_meaning(answer)
    assert answer.degraded
    assert any(words in answer.degraded for words in FAULTS[fault].split("|")), answer.degraded
    assert KEY not in answer.degraded
    np.testing.assert_array_equal(stored(faulty), good)
    assert not [path for path, _, _ in vendors.requests if "elsewhere" in path]

    vendors.fault = None
    reconnect(memory)
    # Who is told that the quota is spent is left alone for ten minutes; another process is not.
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


def test_a_provider_that_keeps_failing_is_left_alone(
    vendors: Vendors, open_provider: OpenProvider, note: Callable[[str, str], Path]
) -> None:
    note("memory/heron.md", "The grey heron stands in the river at dawn.")
    memory = open_provider("openai", **CALM)
    memory.sync()
    vendors.fault = "500"
    for word in ("dawn", "river", "grey"):
        assert memory.search(f"heron {word}").hits
    asked = vendors.calls()
    answer = memory.search("heron stands")
    assert answer.hits
    assert vendors.calls() == asked
    assert answer.degraded is not None
    assert "openai is left alone and tried again in" in answer.degraded
