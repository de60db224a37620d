"""Settings under the names that other programs use."""

from __future__ import annotations

import pytest
import yaml
from places import Place

from memoriter import Memory
from memoriter.config import load
from memoriter.config.settings import keys
from memoriter.errors import ConfigError

THEIRS = """
sync: {onSearch: false, intervalMinutes: 7, onSessionStart: false, watch: false}
watchDebounceMs: 2500
hybrid: {enabled: true, vectorWeight: 0.7, textWeight: 0.3}
storage:
  vector_db_path: ./vectors
  metadata_db_path: ./memories.db
  embedding_model: text-embedding-3-small
  embedding_dimension: 256
batch: {timeoutMinutes: 30, concurrency: 2}
maxSearchResults: 4
minScore: 0.35
memory: {qmd: {paths: [./plain, {path: ./journal, name: journal, pattern: "**/*.txt"}]}}
"""


@pytest.mark.requirement("C13", "D15")
def test_the_names_of_other_programs_are_accepted(place: Place) -> None:
    place.own_file.write_text(THEIRS)
    settings = place.load()
    shown = {setting.key: setting.value for setting in settings.describe() if setting.origin != "default"}
    assert {key: value for key, value in shown.items() if key not in ("home", "workspace")} == {
        "search.sync_before": False,
        "watch.interval_minutes": 7.0,
        "watch.on_session_start": False,
        "watch.enabled": False,
        "watch.debounce_s": 2.5,
        "search.vector_weight": 0.7,
        "search.text_weight": 0.3,
        "entries.index_folder": str(place.home / "vectors"),
        "entries.database": str(place.home / "memories.db"),
        "embedding.model": "text-embedding-3-small",
        "embedding.provider": "openai",
        "embedding.dimensions": 256,
        "embedding.batch_timeout_minutes": 30.0,
        "embedding.concurrency": 2,
        "search.max_results": 4,
        "search.min_score": 0.35,
        "memory.qmd.paths": [
            str(place.home / "plain"),
            {"path": str(place.home / "journal"), "name": "journal", "pattern": "**/*.txt"},
        ],
    }


@pytest.mark.requirement("C13")
@pytest.mark.parametrize("name", ["sync.intervalMs", "sync.interval_ms"])
def test_arguments_and_variables_have_them_too(place: Place, name: str) -> None:
    assert place.load({name: 120_000}).watch.interval_minutes == 2
    place.environ["MEMORITER_SYNC__INTERVAL_MS"] = "180000"
    place.environ["MEMORITER_SYNC__ON_SEARCH"] = "false"
    settings = place.load()
    assert (settings.watch.interval_minutes, settings.search.sync_before) == (3, False)


def test_hybrid_off_searches_by_vectors_and_still_finds_keywords_without_an_embedder(place: Place) -> None:
    place.own_file.write_text("hybrid: {enabled: false}\nembedding: {provider: none}")
    settings = place.load()
    assert (settings.search.vector_weight, settings.search.text_weight) == (1.0, 0.0)
    (place.workspace / "MEMORY.md").write_text("The heron nests in the marsh.\n")
    with Memory.open(settings=settings) as memory:
        assert [hit.path for hit in memory.search("heron")] == ["MEMORY.md"]


@pytest.mark.requirement("D15")
def test_entries_are_kept_where_the_settings_say(place: Place) -> None:
    place.own_file.write_text("storage: {vector_db_path: ./v, metadata_db_path: ./memories.db}")
    place.environ["MEMORITER_EMBEDDING__PROVIDER"] = "none"
    for agent, database, folder in (("main", "memories.db", "v"), ("work", "memories-work.db", "v-work")):
        with Memory.open(settings=place.load({"agent": agent})) as memory:
            memory.remember(f"The heron of {agent}")
            assert [hit.snippet for hit in memory.search("heron", source="entries")] == [
                f"The heron of {agent}"
            ]
        assert (place.home / database).is_file()
        assert (place.home / folder).is_dir()
        assert not (place.home / "agents" / agent / "memory.db").exists()


@pytest.mark.requirement("E6")
def test_memory_dir_is_where_notes_are_written_and_read(tmp_path) -> None:
    folder = tmp_path / "data" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("The heron nests in the marsh.\n")
    environ = {
        "MEMORY_DIR": "./data/memory",
        "STORAGE_DIR": "./data",
        "MEMORITER_EMBEDDING__PROVIDER": "none",
    }
    with Memory.open(settings=load(environ=environ, cwd=tmp_path)) as memory:
        saved = memory.save("The stork is on the roof.")
        assert [file.name for file in folder.iterdir() if file.name != "MEMORY.md"] == [
            saved.path.split("/")[1]
        ]
        assert "stork" in (tmp_path / "data" / saved.path).read_text()
        assert [hit.path for hit in memory.search("heron")] == ["memory/MEMORY.md"]
        assert [hit.path for hit in memory.search("stork")] == [saved.path]


WRONG = [
    "5 Minuten",
    "",
    "true",
    "[1, 2]",
    "{a: 1}",
    "-1",
    "1e999",
    ".nan",
    "{path: 3}",
    "[{path: 3}]",
    "[[x]]",
    "💥",
]
RAW = ("pydantic", "Input should", "<class", "PosixPath", "Undefined", "unable to parse", "url")


@pytest.mark.parametrize("key", list(keys()))
def test_no_wrong_value_gets_a_raw_message(place: Place, key: str) -> None:
    *sections, name = key.split(".")
    for wrong in WRONG:
        text = f"{name}: {wrong}"
        for section in reversed(sections):
            text = f"{section}: {{{text}}}"
        place.own_file.write_text(text)
        try:
            yaml.safe_load(text)
            place.load()
        except ConfigError as error:
            message = str(error).replace(str(place.root), "").replace(key, "")
            assert not [raw for raw in RAW if raw in message], message
            assert "\n" not in message
        except yaml.YAMLError:
            continue


def test_a_wrong_time_says_how_to_write_one(place: Place) -> None:
    place.own_file.write_text("memory: {qmd: {update: {interval: 5 Minuten}}}")
    with pytest.raises(ConfigError) as error:
        place.load()
    assert str(error.value) == (
        f"The setting memory.qmd.update.interval = '5 Minuten' from {place.own_file} is not valid: it must be "
        "seconds, or a time such as '500ms', '15s', '5m' or '1h'."
    )


def test_a_wrong_path_object_says_what_is_allowed(place: Place) -> None:
    place.own_file.write_text("memory: {qmd: {paths: [{path: ./x, patern: '*.md'}]}}")
    with pytest.raises(ConfigError, match="unknown key 'patern'"):
        place.load()


@pytest.mark.requirement("B3", "B8", "D10", "E1")
def test_values_that_programs_rely_on_are_the_defaults(place: Place) -> None:
    settings = place.load()
    extraction, retrieval, cleanup = settings.extraction, settings.retrieval, settings.cleanup
    trigger = extraction.trigger
    assert {
        "chunking": (settings.chunking.tokens, settings.chunking.overlap),
        "sessions": (settings.sessions.delta_bytes, settings.sessions.delta_messages),
        "search": (settings.search.max_results, settings.search.sync_before),
        "extraction": (extraction.min_confidence, extraction.min_importance),
        "trigger": (trigger.message_interval, trigger.on_session_end),
        "retrieval": (retrieval.inject_on_query, retrieval.max_memories, retrieval.budget_ratio),
        "cleanup": (cleanup.auto_cleanup, cleanup.interval, cleanup.retention_days),
    } == {
        "chunking": (512, 64),
        "sessions": (100_000, 50),
        "search": (6, True),
        "extraction": (0.7, 2),
        "trigger": (10, True),
        "retrieval": (True, 10, 0.1),
        "cleanup": (True, 24, 30),
    }
