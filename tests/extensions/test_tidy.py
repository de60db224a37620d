"""`memoriter tidy`: what a run changes, that one undo reverts it, and what it never does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from postgres_cluster import PostgresCluster
from tidy_samples import NOW, arrive, days_ago, entry

from memoriter import Memory
from memoriter.extensions.tidy.running import history, tidy
from memoriter.records import Entry
from memoriter.testing import HashEmbedder

OpenMemory = Callable[..., Memory]


def state(memory: Memory) -> dict[str, tuple[str, str | None]]:
    return {one.text: (one.state, one.superseded_by) for one in memory.entries.list(states=())}


def without_numbers(memory: Memory) -> list[Entry]:
    """Return all entries without what is not part of a change: its number and how often they were used."""
    return sorted(
        (
            replace(one, seq=0, access_count=0, last_accessed_at=None)
            for one in memory.entries.list(states=())
        ),
        key=lambda one: one.id,
    )


def kinds(memory: Memory) -> list[tuple[str, str]]:
    """Tidy, and return the kind of each step with the first text."""
    steps = tidy(memory).steps
    return [(step.kind, step.edits[0].before.text) for step in steps if step.edits[0].before]


# ---- duplicates and changes -------------------------------------------------------------------------------------


def test_duplicates_are_joined_and_one_undo_brings_them_back(open_memory: OpenMemory) -> None:
    memory = open_memory()
    old = entry(1, "The bridge is closed in May", days=9, tags=("town",), importance=2.0)
    new = entry(2, "In May the bridge is closed", days=3, tags=("roads",), importance=4.0)
    arrive(memory, old, new)
    before = without_numbers(memory)

    report = tidy(memory)
    assert [(step.kind, step.sources) for step in report.steps] == [
        ("joined", (f"entry:{old.id}", f"entry:{new.id}"))
    ]
    assert state(memory) == {old.text: ("active", None), new.text: ("superseded", old.id)}
    kept = memory.entries.get(old.id)
    assert (kept.importance, kept.tags, kept.repetitions) == (4.0, ("town", "roads"), 2)
    assert [line.text for line in memory.recall("Is the bridge closed in May?").lines] == [old.text]
    assert tidy(memory).steps == ()

    memory.entries.undo()
    assert without_numbers(memory) == before
    assert [run.undone for run in history(memory)] == [True]
    assert tidy(memory).steps == (), "what was undone is left alone"


def test_the_owners_words_stay_and_others_add_nothing_to_them(open_memory: OpenMemory) -> None:
    memory = open_memory()
    agents = entry(1, "The bridge is closed in May", days=9, trust="agent", importance=5.0, repetitions=7)
    owners = entry(2, "In May the bridge is closed", days=3, importance=2.0)
    outside = entry(3, "In May, the bridge is closed!", days=1, trust="untrusted", importance=5.0)
    arrive(memory, outside, agents, owners, *(entry(n, f"Lamp {n} is green", days=5) for n in range(10, 50)))
    tidy(memory)
    assert {one.text: one.state for one in memory.entries.list(states=()) if "bridge" in one.text} == {
        agents.text: "superseded",
        owners.text: "active",
        outside.text: "superseded",
    }
    kept = memory.entries.get(owners.id)
    assert (kept.trust, kept.importance, kept.repetitions) == ("owner", 2.0, 1)


def test_less_trusted_words_never_retire_more_trusted_ones(open_memory: OpenMemory) -> None:
    memory = open_memory()
    arrive(
        memory,
        entry(1, "I live in Berlin", days=9),
        entry(2, "I live in Munich", days=3, trust="agent"),
        entry(3, "I live in Oslo", days=1, trust="untrusted"),
    )
    assert kinds(memory) == []


def test_a_later_statement_retires_an_earlier_one_that_it_replaced(open_memory: OpenMemory) -> None:
    memory = open_memory()
    old, new = entry(1, "I live in Berlin", days=9), entry(2, "I live in Munich", days=3)
    arrive(memory, new, old)
    assert kinds(memory) == [("replaced", "I live in Berlin")]
    assert state(memory) == {old.text: ("superseded", new.id), new.text: ("active", None)}


def test_statements_of_one_moment_are_not_ordered_and_both_stay(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.entries.import_(json.dumps([{"memory": "I live in Berlin"}, {"memory": "I live in Munich"}]))
    assert kinds(memory) == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("We use Jenkins for CI", "We switched from Jenkins to Buildkite"),
        ("我每天喝两杯咖啡", "我戒咖啡了"),
    ],
)
def test_pairs_that_were_never_judged_are_judged_in_other_words(
    open_memory: OpenMemory, earlier: str, later: str
) -> None:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    arrive(memory, entry(1, earlier, days=9), entry(2, later, days=3), entry(3, "My cat is called Tom"))
    memory.entries.search("anything")  # computes the vectors
    assert kinds(memory) == [("replaced", earlier)]


def test_the_same_change_of_different_things_retires_nothing(open_memory: OpenMemory) -> None:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    texts = [
        "The billing service moved to Go",
        "The search service moved to Go",
        "小王搬到了上海",
        "小李搬到了上海",
    ]
    arrive(memory, *(entry(number, text, days=9 - number) for number, text in enumerate(texts, 1)))
    memory.entries.search("anything")
    assert kinds(memory) == []


# ---- plans, importance and notes ---------------------------------------------------------------------------------


def test_a_plan_whose_days_have_passed_is_marked_and_matters_least(open_memory: OpenMemory) -> None:
    memory = open_memory()
    said, day = days_ago(100), (NOW - timedelta(60)).date().isoformat()
    plan = entry(1, f"I am going to Singapore on {day}", days=100, importance=4.0)
    coming = entry(2, "I am going to Lima on 2099-07-01", days=100)
    arrive(memory, plan, coming)
    report = tidy(memory)
    assert [(step.kind, step.why) for step in report.steps] == [
        ("passed", f"it was planned for {day}, which has passed")
    ]
    marked = memory.entries.get(plan.id)
    assert (marked.state, marked.tags, marked.importance, marked.valid_from) == (
        "active",
        ("past-plan",),
        1.0,
        said,
    )
    assert tidy(memory).steps == ()


def test_only_what_the_owner_said_on_several_days_is_promoted(open_memory: OpenMemory) -> None:
    memory = open_memory()
    facts = [
        entry(1, "The garage code is in the blue book", days=40),
        entry(2, "The printer is called Ada", days=40, trust="agent"),
        entry(3, "The vendor says that paying early is safe", days=40, trust="relayed"),
        entry(4, "The newsletter recommends herons", days=40, trust="untrusted"),
    ]
    arrive(memory, *facts, said=(20, 10))
    arrive(memory, entry(5, "The kettle stands on the shelf", days=10, repetitions=9))
    report = tidy(memory)
    assert [(step.kind, step.edits[0].before.text) for step in report.steps if step.edits[0].before] == [
        ("promoted", facts[0].text)
    ]
    assert report.steps[0].why.startswith("said on 3 days")
    assert [memory.entries.get(one.id).importance for one in facts] == [4.0, 3.0, 3.0, 3.0]


def test_importance_falls_by_one_point_for_what_was_never_used_while_others_were(
    open_memory: OpenMemory,
) -> None:
    memory = open_memory()
    expires = days_ago(-500)
    unused = entry(1, "The spare fuse is behind the clock", days=300, expires_at=expires)
    by_hand = entry(2, "The cellar key hangs in the hall", days=300)
    lasting = entry(3, "The boat needs two people", days=300, importance=5.0, expires_at=expires)
    used = entry(
        4, "The attic is dry", days=300, expires_at=expires, access_count=3, last_accessed_at=days_ago(1)
    )
    arrive(memory, unused, by_hand, lasting)
    assert kinds(memory) == [], "a memory that was never used says nothing about an entry"
    arrive(memory, used)
    assert kinds(memory) == [("lowered", unused.text)]
    lowered = memory.entries.get(unused.id)
    assert (lowered.importance, lowered.expires_at) == (2.0, expires)
    assert kinds(memory) == []


def test_an_entry_that_a_note_says_too_is_marked_until_the_note_changes(
    open_memory: OpenMemory, note: Callable[[str, str], Path]
) -> None:
    memory = open_memory()
    file = note("memory/house.md", "# House\n\n- The stork nests on the tower.\n")
    arrive(memory, entry(1, "The stork nests on the tower"))
    report = tidy(memory)
    assert [(step.kind, step.why) for step in report.steps] == [
        ("marked", "memory/house.md#L3 says the same")
    ]
    assert [one.tags for one in memory.entries.list()] == [("in-notes",)]
    file.write_text("# House\n", encoding="utf-8")
    tidy(memory)
    assert [one.tags for one in memory.entries.list()] == [()]


# ---- limits and guarantees ---------------------------------------------------------------------------------------


def test_a_run_changes_at_most_a_tenth_and_later_runs_finish(open_memory: OpenMemory) -> None:
    memory = open_memory()
    doubles = [
        one
        for number in range(1, 21)
        for one in (
            entry(number, f"The lamp {chr(96 + number)}x is green in May", days=9),
            entry(number + 100, f"In May the lamp {chr(96 + number)}x is green", days=3),
        )
    ]
    arrive(memory, *doubles)
    report = tidy(memory)
    assert (report.entries, report.changed, report.left) == (40, 4, 18)
    while tidy(memory).steps:
        pass
    assert len(memory.entries.list()) == 20


WORDS = [
    "heron",
    "stork",
    "tea",
    "jazz",
    "Berlin",
    "Munich",
    "tomorrow",
    "2020-05-01",
    "not",
    "we",
    "I",
    "live in",
]
statements = st.lists(
    st.tuples(
        st.lists(st.sampled_from([*WORDS, "备份", "我住在", "现在"]), min_size=1, max_size=6).map(" ".join),
        st.sampled_from(["owner", "agent", "relayed", "untrusted"]),
        st.integers(1, 500),
    ),
    min_size=1,
    max_size=15,
)


@given(statements)
@settings(max_examples=25)
def test_a_run_loses_nothing_changes_no_note_and_can_be_undone(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "notes/memory").mkdir(parents=True)
    written = "\n".join(f"- {text}" for text, *_ in found[:3])
    (folder / "notes/memory/log.md").write_text(written, encoding="utf-8")
    with Memory.open(
        folder / "notes", home=folder / "home", embedder=HashEmbedder(), overrides={"search.rerank": False}
    ) as memory:
        arrive(
            memory,
            *(
                entry(number, text, days=days, trust=trust)
                for number, (text, trust, days) in enumerate(found, 1)
            ),
        )
        before = without_numbers(memory)
        planned = tidy(memory, dry_run=True)
        assert without_numbers(memory) == before
        report = tidy(memory)
        assert [(one.kind, one.sources) for one in report.steps] == [
            (one.kind, one.sources) for one in planned.steps
        ]
        assert report.changed <= max(2, len(before) // 10)
        after = {one.id: one for one in memory.entries.list(states=())}
        assert {id_: one.text for id_, one in after.items()} == {one.id: one.text for one in before}
        assert all(after[one.id].trust == one.trust for one in before)
        if report.steps:
            memory.entries.undo(report.steps[0].edits[0].entry_id)
        assert without_numbers(memory) == before
    assert (folder / "notes/memory/log.md").read_text(encoding="utf-8") == written


def test_two_processes_that_tidy_at_once_change_each_entry_once(
    open_memory: OpenMemory, workspace: Path, tmp_path: Path
) -> None:
    memory = open_memory()
    for number in range(1, 60, 2):
        name = f"lamp {chr(97 + number // 8)}{chr(97 + number % 8)}x"
        arrive(memory, entry(number, f"The {name} is green in May", days=9))
        arrive(memory, entry(number + 1, f"In May the {name} is green", days=3))
    program = (
        "import sys\nfrom memoriter import Memory\nfrom memoriter.testing import HashEmbedder\n"
        "from memoriter.extensions.tidy.running import tidy\n"
        "with Memory.open(sys.argv[1], home=sys.argv[2], embedder=HashEmbedder(),"
        " overrides={'search.rerank': False}) as memory:\n"
        "    changed, report = 0, tidy(memory)\n"
        "    while report.steps or report.left:\n"
        "        changed, report = changed + report.changed, tidy(memory)\n"
        "    print(changed)\n"
    )
    command = [sys.executable, "-c", program, str(workspace), str(tmp_path / "state")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    changed = [int(process.communicate()[0]) for process in both]
    events = [event for run in history(memory, 100) for event in run.events]
    assert sum(changed) == len(events)
    assert len({event.entry_id for event in events}) == len(events)
    assert len(memory.entries.list()) == 30


@pytest.mark.integration
def test_a_memory_on_a_server_is_tidied_and_undone(postgres: PostgresCluster, tmp_path: Path) -> None:
    settings = {"store.url": postgres.url, "store.tenant": "tidy", "search.rerank": False}
    with Memory.open(home=tmp_path / "home", embedder=HashEmbedder(), overrides=settings) as memory:
        arrive(memory, entry(1, "I live in Berlin", days=9), entry(2, "I live in Munich", days=3))
        before = without_numbers(memory)
        assert kinds(memory) == [("replaced", "I live in Berlin")]
        assert kinds(memory) == []
        memory.entries.undo()
        assert without_numbers(memory) == before
        assert [run.undone for run in history(memory)] == [True]
        assert kinds(memory) == []
