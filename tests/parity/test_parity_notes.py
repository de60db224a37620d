"""Requirements B1 to B14: notes, embedding, search, and memories of conversations."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import apsw
import numpy as np
import pytest

from memoriter.agent import Moment
from memoriter.config import load
from memoriter.embedding import EmbedderSpec, resolve
from memoriter.errors import ConfigError
from memoriter.notes.chunking import chunk_markdown
from memoriter.records import Document
from memoriter.testing import HashEmbedder
from memoriter.tools.toolbox import Toolbox


def said(*texts: str) -> tuple[dict[str, object], ...]:
    return tuple({"role": "user", "content": text} for text in texts)


def test_b1_notes_extra_paths_and_transcripts_are_found_with_their_source(
    note, open_memory, transcript, tmp_path: Path
) -> None:
    note("MEMORY.md", "a heron\n")
    note("memory/deep/er/b.md", "a stork\n")
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "c.md").write_text("a crane\n")
    transcript(("user", "I saw a pelican today"), ("assistant", "How nice."))
    memory = open_memory(files__extra_paths=(str(tmp_path / "extra"),))
    sources = {word: memory.search(word).hits[0].source for word in ("heron", "stork", "crane", "pelican")}
    assert sources == {"heron": "memory", "stork": "memory", "crane": "memory", "pelican": "sessions"}


def test_b2_the_tables_of_the_index(note, open_memory) -> None:
    note("memory/a.md", "heron\n")
    memory = open_memory()
    memory.sync()
    connection = apsw.Connection(memory.status().index_path, flags=apsw.SQLITE_OPEN_READONLY)
    names = {row[0] for row in connection.execute("select name from sqlite_master")}
    assert {"meta", "files", "chunks", "chunks_fts", "embedding_cache"} <= names
    columns = {row[1] for row in connection.execute("pragma table_info(embedding_cache)")}
    assert {"provider", "model", "provider_key", "hash"} <= columns
    [[model]] = connection.execute("select model from chunks").fetchall()
    assert model == str(HashEmbedder().identity)
    connection.close()


def test_b3_chunks_keep_whole_lines_overlap_and_count_cjk_by_its_weight() -> None:
    english = "\n".join(
        f"word number {number} of a very long paragraph that goes on" for number in range(200)
    )
    chunks = chunk_markdown(Document("a.md", "memory", english, "", 0, 0))
    assert max(len(chunk.text) for chunk in chunks) <= 512 * 4 + 64 * 4
    assert all(after.start_line <= before.end_line for before, after in pairwise(chunks))
    chinese = "\n".join("这是一个没有空行的很长的段落，一直写下去" for _ in range(100))
    assert (
        max(len(chunk.text) for chunk in chunk_markdown(Document("b.md", "memory", chinese, "", 0, 0))) <= 700
    )
    settings = load().chunking
    assert (settings.tokens, settings.overlap) == (512, 64)


def test_b4_embedders_are_chosen_by_name_or_by_their_keys(tmp_path: Path) -> None:
    assert resolve(EmbedderSpec(provider="auto")).provider == "local"
    models = {
        name: resolve(EmbedderSpec(provider=name, keys={name: "k" * 20})).model
        for name in ("openai", "gemini", "voyage")
    }
    assert models == {
        "openai": "text-embedding-3-small",
        "gemini": "gemini-embedding-001",
        "voyage": "voyage-4-large",
    }
    assert resolve(EmbedderSpec(provider="ollama")).provider == "ollama"
    without_key = resolve(EmbedderSpec(provider="openai", fallback="local"))
    assert without_key.provider == "local" or without_key.fallback is not None


def test_b5_vectors_are_cleaned_and_normalised() -> None:
    from memoriter.embedding.vectors import clean

    rows = clean(np.array([[3.0, 4.0], [np.nan, np.inf], [0.0, 0.0]], dtype=np.float32))
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0], [0.0, 0.0]]


def test_b6_hybrid_search_with_the_weights_that_the_owner_sets(note, open_memory) -> None:
    note("memory/a.md", "The heron stands in the shallow water at dawn.\n")
    note("memory/b.md", "Nothing of interest here.\n")
    memory = open_memory(search__vector_weight=0.7, search__text_weight=0.3, search__min_score=0.35)
    assert (memory.settings.search.vector_weight, memory.settings.search.text_weight) == (0.7, 0.3)
    [hit] = memory.search("heron at dawn").hits
    parts = {part.name: part for part in hit.explain.parts}
    assert {"vector", "keyword"} <= parts.keys()
    assert parts["vector"].weight / parts["keyword"].weight == pytest.approx(0.7 / 0.3)
    assert all(0 <= part.value <= 1 for part in parts.values())


def test_b7_a_sync_reads_only_what_changed_and_purges_removed_files(note, open_memory) -> None:
    one, two = note("memory/a.md", "heron\n"), note("memory/b.md", "stork\n")
    memory = open_memory()
    assert memory.sync().changed == 2
    assert (memory.sync().changed, memory.sync(verify=True).changed) == (0, 0)
    one.write_text("pelican\n")
    two.unlink()
    report = memory.sync()
    assert (report.changed, report.removed) == (1, 1)
    assert memory.search("stork").hits == ()


def test_b8_triggers_are_settings_with_the_required_defaults(note, open_memory) -> None:
    settings = load()
    assert (settings.sessions.delta_bytes, settings.sessions.delta_messages) == (100_000, 50)
    assert settings.search.sync_before
    memory = open_memory()
    memory.sync()
    note("memory/a.md", "heron\n")
    assert [hit.path for hit in memory.search("heron").hits] == ["memory/a.md"]


def test_b9_exactly_one_memory_is_in_the_slot(open_agent) -> None:
    tools = {slot: set(open_agent(slot).tools) for slot in ("memory-core", "memory-lancedb", "none")}
    assert {"memory_search", "memory_get"} <= tools["memory-core"]
    assert {"memory_recall", "memory_store", "memory_forget"} <= tools["memory-lancedb"]
    assert tools["none"] == set()
    assert load().plugins.slots.memory == "memory-core"
    with pytest.raises(ConfigError, match="memory-core"):
        load(arguments={"plugins.slots.memory": "memory-cor"})


def test_b10_an_entry_has_the_category_and_importance_of_memory_lancedb(toolbox: Toolbox) -> None:
    stored = toolbox.call(
        "memory_store", {"text": "I prefer tea over coffee", "importance": 4, "category": "preference"}
    )
    [found] = toolbox.call("memory_recall", {"query": "tea or coffee?"})["memories"]
    assert found["id"] == stored["memory"]["id"]
    assert (found["category"], found["importance"]) == ("preference", 4)
    assert {"text", "createdAt"} <= found.keys()


def test_b11_an_agent_stores_recalls_and_forgets_by_the_id_that_it_was_shown(toolbox: Toolbox) -> None:
    toolbox.call("memory_store", {"text": "My locker number is 4711"})
    [found] = toolbox.call("memory_recall", {"query": "locker number"})["memories"]
    for shown in (f"entry:{found['id']}",):
        receipt = toolbox.call("memory_forget", {"memoryId": shown})
        assert receipt.get("error") is None, receipt
    assert toolbox.call("memory_recall", {"query": "locker number"})["memories"] == []


def test_b12_three_memories_are_recalled_before_the_agent_starts(open_agent) -> None:
    agent = open_agent("memory-lancedb", entries__vector_engine="scan")
    for drink in ("tea", "coffee", "milk", "water", "juice"):
        agent.memory.remember(f"I drink {drink} in the {drink} break")
    block = agent.emit(
        Moment("before_agent_start", prompt="what do I drink in the tea break?")
    ).prepend_context
    assert block.startswith("<relevant-memories ")
    assert 1 <= block.count("I drink") <= 3


@pytest.mark.parametrize(
    "text",
    [
        "Remember that the meeting is at nine.",
        "I prefer tabs over spaces.",
        "We decided to use Postgres for billing.",
        "My favourite colour is dark red.",
        "Red is my favourite colour of all.",
        "Important: the API limit is 100 requests per minute.",
        "Never deploy on a Friday afternoon.",
        "Always run the tests before a release.",
        "My phone number is +49 151 2345 6789.",
        "My e-mail is mira@example.org now.",
        "记住，会议改到九点半了。",
        "我喜欢用深色的主题写代码。",
        "我们决定使用 PostgreSQL 数据库。",
        "重要的是所有报告都必须用中文写。",
        "请始终用中文回答我的所有问题。",
        "永远不要在周五发布新的版本。",
        "我总是在早上九点开会。",
    ],
)
def test_b13_statements_with_the_required_triggers_are_captured(text: str, open_memory) -> None:
    memory = open_memory()
    [kept] = memory.capture_messages(said(text), session="s1")
    assert (kept.action, kept.entry.trust) == ("added", "owner")


def test_b13_captures_are_limited(open_agent) -> None:
    agent = open_agent()
    doors = [f"Remember that door {number} has the code 44{number}1." for number in range(6)]
    effect = agent.emit(Moment("agent_end", messages=said(" ".join(doors))))
    assert len(effect.remembered) == 3
    again = agent.emit(Moment("agent_end", session="s2", messages=said(doors[0])))
    assert [result.action for result in again.remembered] == ["repeated"]
    block = agent.emit(Moment("before_agent_start", prompt="which code has door 1?")).prepend_context
    assert block
    assert agent.emit(Moment("agent_end", session="s3", messages=said(block))).remembered == ()
    too_short_and_too_long = said("I like x", "I prefer " + "x" * 600)
    assert agent.emit(Moment("agent_end", session="s4", messages=too_short_and_too_long)).remembered == ()


def test_b14_the_system_prompt_tells_the_agent_when_to_search(toolbox: Toolbox) -> None:
    assert "memory_search" in toolbox.prompt("en")
    assert "memory_search" in toolbox.prompt("zh")
    assert json.dumps(toolbox.prompt("zh"), ensure_ascii=False).count("记忆")
