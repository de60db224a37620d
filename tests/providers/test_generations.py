"""Changed, lost and fallback embedders.

Old vectors are used until the new ones exist, kinds are never mixed, and nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from test_faults import by_meaning
from vendors import Vendors, url

from memoriter import Memory
from memoriter.engines.builtin import BuiltinEngine
from memoriter.errors import Cancelled

OpenProvider = Callable[..., Memory]
Note = Callable[[str, str], Path]

NOTES = {
    "memory/heron.md": "The grey heron stands in the river at dawn.",
    "memory/otter.md": "The otter sleeps under the old bridge.",
    "memory/kite.md": "A red kite circles above the valley.",
}


@pytest.fixture(autouse=True)
def notes(note: Note) -> None:
    for path, text in NOTES.items():
        note(path, text)


def builtin(memory: Memory) -> BuiltinEngine:
    assert isinstance(memory._parts.engine, BuiltinEngine)
    return memory._parts.engine


def models(memory: Memory) -> set[str]:
    """The embedders of the vectors in the index."""
    import apsw

    database = apsw.Connection(
        str(memory.settings.index_folder / "index.db"), flags=apsw.SQLITE_OPEN_READONLY
    )
    found = {model for (model,) in database.execute("select distinct model from chunks")}
    database.close()
    return found


class TestAChangedModel:
    def test_is_reported_while_old_vectors_answer_and_new_ones_are_computed(
        self, open_provider: OpenProvider, vendors: Vendors
    ) -> None:
        open_provider("openai").sync()
        changed = open_provider("openai", embedding__model="text-embedding-3-large")
        answer = changed.search("where does the otter sleep")
        assert (by_meaning(answer), answer.model) == (True, "text-embedding-3-small")
        assert answer.degraded is not None
        assert answer.degraded.startswith(
            "The embedder has changed: the vectors of openai/text-embedding-3-small/64/"
        )
        builtin(changed).background.wait(120)
        answer = changed.search("where does the kite circle")
        assert (by_meaning(answer), answer.model, answer.degraded) == (True, "text-embedding-3-large", None)
        assert len(models(changed)) == 1

    def test_falls_back_to_keywords_without_the_old_embedder(self, open_provider: OpenProvider) -> None:
        open_provider("voyage").sync()
        changed = open_provider("openai", embedding__background=False)
        answer = changed.search("where does the otter sleep")
        assert not by_meaning(answer)
        assert answer.hits
        assert answer.degraded is not None
        assert answer.degraded.startswith(
            "Keyword search only: the index has vectors of voyage/voyage-4-large/64, whose embedder is no"
        )

    def test_embeds_nothing_when_it_is_changed_back(
        self, open_provider: OpenProvider, vendors: Vendors
    ) -> None:
        open_provider("openai").sync()
        open_provider("openai", embedding__model="text-embedding-3-large").sync()
        before = len(vendors.texts)
        report = open_provider("openai").sync()
        assert (report.embedded, report.cached, report.rebuilt) == (0, 3, True)
        assert len(vendors.texts) == before

    def test_that_fails_keeps_the_old_vectors_in_use(
        self, open_provider: OpenProvider, vendors: Vendors, note: Note
    ) -> None:
        open_provider("openai").sync()
        vendors.fault = "500"
        note("memory/newt.md", "The newt hides below the stone.")
        changed = open_provider(
            "openai", embedding__model="text-embedding-3-large", embedding__background=False
        )
        assert changed.sync().degraded
        vendors.fault = None
        answer = changed.search("where does the otter sleep")
        assert (by_meaning(answer), answer.model) == (True, "text-embedding-3-small")
        assert [hit.path for hit in changed.search("newt stone").hits][:1] == ["memory/newt.md"]

    def test_that_is_interrupted_continues_later(
        self, open_provider: OpenProvider, vendors: Vendors, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        open_provider("openai").sync()
        before = len(vendors.texts)
        monkeypatch.setattr("memoriter.embedding.cache.MAX_ITEMS", 1)
        changed = open_provider(
            "openai",
            embedding__model="text-embedding-3-large",
            embedding__concurrency=1,
            embedding__background=False,
        )

        def stop() -> None:
            if len(vendors.texts) > before:
                raise Cancelled("closed")

        with pytest.raises(Cancelled):
            builtin(changed).indexer.sync(stop=stop)
        assert len(vendors.texts) == before + 1
        assert changed.search("where does the otter sleep").model == "text-embedding-3-small"
        report = changed.sync()
        assert (report.embedded, report.cached, report.pending) == (2, 1, 0)


class TestAFallback:
    def test_is_used_until_the_provider_works_again(
        self, open_provider: OpenProvider, vendors: Vendors, note: Note, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        more = {
            "embedding__fallback": "ollama",
            "embedding__ollama_base_url": url("ollama"),
            "embedding__background": False,
        }
        monkeypatch.setattr(
            "memoriter.extensions.ollama.embeddings.OllamaEmbedder.dimensions", {"nomic-embed-text": 64}
        )
        memory = open_provider("openai", **more)
        memory.sync()
        assert {model.split("/")[0] for model in models(memory)} == {"openai"}

        vendors.only_ollama = True
        report = memory.sync()
        assert report.degraded is None  # nothing had to be embedded
        note("memory/newt.md", "The newt hides below the stone.")
        report = memory.sync()
        assert report.degraded is not None
        assert report.degraded.startswith("The vectors of the fallback (ollama/nomic-embed-text/64/")
        assert {model.split("/")[0] for model in models(memory)} == {"ollama"}
        answer = memory.search("where does the newt hide")
        assert (by_meaning(answer), answer.provider, answer.fallback) == (True, "ollama", True)
        assert answer.degraded is not None
        assert "openai failed with status 500" in answer.degraded

        vendors.only_ollama = False
        again = open_provider("openai", **more)
        report = again.sync()
        assert (report.degraded, report.embedded, report.cached) == (None, 1, 3)
        answer = again.search("where does the newt hide")
        assert (answer.provider, answer.fallback, answer.degraded) == ("openai", False, None)

    def test_answers_a_search_that_repairs_the_index(
        self,
        open_provider: OpenProvider,
        vendors: Vendors,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        import apsw

        monkeypatch.setattr(
            "memoriter.extensions.ollama.embeddings.OllamaEmbedder.dimensions", {"nomic-embed-text": 64}
        )
        vendors.only_ollama = True
        memory = open_provider(
            "openai",
            embedding__fallback="ollama",
            embedding__ollama_base_url=url("ollama"),
            embedding__background=False,
        )
        memory.sync()
        other = apsw.Connection(str(memory.settings.index_folder / "index.db"))
        other.execute("drop table chunks_fts")
        other.close()
        answer = memory.search("where does the otter sleep")
        assert builtin(memory).index.healed is not None
        assert (by_meaning(answer), answer.provider, answer.fallback) == (True, "ollama", True)


class TestMissingVectors:
    def test_are_computed_in_the_background_when_the_provider_works_again(
        self, open_provider: OpenProvider, vendors: Vendors
    ) -> None:
        vendors.fault = "503"
        memory = open_provider("openai")
        report = memory.sync()
        assert (report.pending, report.embedded) == (3, 0)
        vendors.fault = None
        memory.search("otter")
        builtin(memory).background.wait(120)
        answer = memory.search("where does the otter sleep")
        assert (by_meaning(answer), answer.degraded) == (True, None)

    def test_are_only_computed_once_after_a_spent_quota(
        self, open_provider: OpenProvider, vendors: Vendors, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memoriter.embedding.cache.MAX_ITEMS", 1)
        vendors.quota = 2
        one_by_one = {
            "embedding__concurrency": 1,
            "embedding__background": False,
        }
        report = open_provider("openai", **one_by_one).sync()
        assert (report.embedded, report.pending) == (2, 1)
        assert report.degraded is not None
        assert "the quota at openai is used up" in report.degraded
        assert "run `memoriter index` to continue" in report.degraded
        vendors.quota = None
        report = open_provider("openai", **one_by_one).sync()
        assert (report.embedded, report.pending, report.degraded) == (1, 0, None)
