"""What a statement does to the entries that it is compared with: the verdict, and every field of the edits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memoriter.entries import Draft, Entries, merge
from memoriter.entries.drafts import DAY, MAX_TAGS
from memoriter.entries.merge import (
    Nearby,
    Neighbour,
    Verdict,
    approval,
    cosines_near,
    edits,
    judge,
    neighbours,
    outcome,
)
from memoriter.records import Entry, Remembered
from memoriter.store.entry_store import Edit
from memoriter.testing import HashEmbedder

AT = 1000.0
SHORT, LONG = "We deploy on Tuesdays", "We deploy on Tuesdays after the stand-up"


def known(text: str = SHORT, **fields: Any) -> Entry:
    return Entry("k1", text, **({"type": "fact", "expires_at": 5.0} | fields))


def verdict(draft: Draft, *entries: Entry) -> tuple[str, list[str]]:
    found = judge(draft, [Neighbour(entry, None) for entry in entries])
    return found.action, [entry.id for entry in found.targets]


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        (SHORT, SHORT, "repeat"),
        (LONG, SHORT, "repeat"),
        (SHORT, LONG, "merge"),
        ("I live in Paris", "I moved to Berlin", "supersede"),
        ("I like apples", "I like oranges", "add"),
    ],
)
def test_the_relation_decides_between_statements_of_equal_trust(old: str, new: str, action: str) -> None:
    targets = [] if action == "add" else ["k1"]
    assert verdict(Draft(new, "fact"), known(old)) == (action, targets)


@pytest.mark.parametrize(
    ("of_entry", "of_draft", "new", "action"),
    [
        ("owner", "agent", SHORT, "add"),
        ("owner", "agent", "We do not deploy on Tuesdays", "add"),
        ("agent", "owner", SHORT, "supersede"),
        ("agent", "owner", LONG, "supersede"),
        ("agent", "owner", "We deploy", "add"),
        ("agent", "owner", "We do not deploy on Tuesdays", "supersede"),
        ("untrusted", "agent", LONG, "supersede"),
    ],
)
def test_trust_decides_between_statements_of_different_speakers(
    of_entry: Any, of_draft: Any, new: str, action: str
) -> None:
    assert verdict(Draft(new, "fact", trust=of_draft), known(trust=of_entry))[0] == action


def test_a_refinement_merges_whatever_its_type() -> None:
    assert verdict(Draft(LONG, "workflow"), known())[0] == "merge"
    assert verdict(Draft(LONG, "other"), known())[0] == "merge"
    assert verdict(Draft(LONG, "fact"), known(type="other"))[0] == "merge"


def test_a_statement_supersedes_at_most_three_entries_and_a_repetition_comes_first() -> None:
    old = [replace(known("I live in Paris"), id=f"k{number}") for number in range(5)]
    same = replace(known("I moved to Berlin"), id="same")
    assert verdict(Draft("I moved to Berlin", "fact"), *old) == ("supersede", ["k0", "k1", "k2"])
    assert verdict(Draft("I moved to Berlin", "fact"), *old, same) == ("repeat", ["same"])


def test_a_repetition_counts_and_keeps_the_greater_values() -> None:
    old = known(importance=2.0, confidence=0.5, tags=("a", "b"), repetitions=4, access_count=3)
    draft = Draft("we deploy on tuesdays!", "fact", importance=4.0, confidence=0.4, tags=("b", "c"))
    found = judge(draft, [Neighbour(old, None)])
    assert edits(found, draft, AT) == [
        Edit(
            "repeat",
            replace(
                old,
                repetitions=5,
                importance=4.0,
                confidence=0.5,
                tags=("a", "b", "c"),
                updated_at=AT,
                expires_at=None,
            ),
            old,
            found.why,
            "we deploy on tuesdays!",
        )
    ]
    assert outcome(found, old) == Remembered(old, "repeated", note=found.why)


def test_a_repetition_in_the_same_words_stores_no_words_and_extends_the_life() -> None:
    old, draft = known(importance=2.0), Draft(SHORT, "fact", importance=1.0, on_purpose=False)
    (edit,) = edits(judge(draft, [Neighbour(old, None)]), draft, AT)
    assert edit.after is not None
    assert (edit.said, edit.after.importance, edit.after.expires_at) == (None, 2.0, AT + 365 * DAY)


def test_a_less_trusted_repetition_only_counts() -> None:
    old, draft = known(), Draft(SHORT, "fact", importance=5.0, tags=("x",), trust="agent")
    assert edits(Verdict("repeat", (old,), "why"), draft, AT) == [
        Edit("repeat", replace(old, repetitions=2), old, "why")
    ]


@pytest.mark.requirement("D3")
def test_a_merge_keeps_what_is_known_about_the_old_entry() -> None:
    old = known(
        importance=4.0,
        confidence=0.2,
        category="c",
        tags=tuple(f"t{number}" for number in range(MAX_TAGS)),
        related=("r",),
        repetitions=2,
        valid_from=7.0,
        access_count=9,
        last_accessed_at=8.0,
    )
    draft = Draft(LONG, "fact", importance=3.0, confidence=0.9, tags=("new",), on_purpose=False)
    found = judge(draft, [Neighbour(old, None)])
    first, second = edits(found, draft, AT)
    assert first.after is not None
    assert first == Edit(
        "merge",
        Entry(
            first.after.id,
            LONG,
            "fact",
            category="c",
            importance=4.0,
            confidence=0.9,
            created_at=AT,
            updated_at=AT,
            valid_from=7.0,
            expires_at=AT + 365 * DAY,
            access_count=9,
            last_accessed_at=8.0,
            repetitions=3,
            related=("r", "k1"),
            tags=old.tags,
        ),
        None,
        found.why,
    )
    ended = replace(old, state="superseded", superseded_by=first.after.id, updated_at=AT)
    assert second == Edit("supersede", ended, old, found.why)
    assert outcome(found, first.after) == Remembered(first.after, "merged", "k1", found.why)


def test_a_statement_of_unknown_type_takes_that_of_an_entry_of_equal_trust() -> None:
    old = known("I live in Paris", type="relationship")
    draft = Draft("I moved to Berlin")
    found = judge(draft, [Neighbour(old, None)])
    first, _ = edits(found, draft, AT)
    assert first.after is not None
    assert (first.kind, first.after.type, first.after.related) == ("add", "relationship", ("k1",))
    assert outcome(found, first.after) == Remembered(first.after, "superseded", "k1", found.why)
    less = replace(old, trust="agent")
    first, _ = edits(judge(draft, [Neighbour(less, None)]), draft, AT)
    assert first.after is not None
    assert first.after.type == "other"
    first, _ = edits(found, replace(draft, type="fact"), AT)
    assert first.after is not None
    assert first.after.type == "fact"


def test_a_new_statement_is_added() -> None:
    draft = Draft("I like tea", "fact")
    (edit,) = edits(judge(draft, []), draft, AT)
    assert edit.after is not None
    assert (edit.kind, edit.before, edit.note, edit.after.related) == ("add", None, "", ())
    assert outcome(Verdict("add"), edit.after) == Remembered(edit.after, "added")


def test_an_approved_entry_is_in_force_from_then_on() -> None:
    staged = known(state="staged", related=("x",), importance=1.0, type="workflow")
    draft = Draft(SHORT, "workflow")
    assert approval(Verdict("add"), staged, draft, AT) == [
        Edit(
            "approve",
            replace(staged, state="active", updated_at=AT, expires_at=AT + 90 * DAY, related=()),
            staged,
        )
    ]
    lasting = replace(staged, expires_at=None)
    (edit,) = approval(Verdict("add"), lasting, draft, AT)
    assert edit.after is not None
    assert edit.after.expires_at is None


def test_an_approved_repetition_is_absorbed() -> None:
    old, staged = replace(known(), id="old"), known("we deploy on tuesdays!", state="staged")
    draft = Draft(staged.text, "fact")
    repeat, absorb = approval(Verdict("repeat", (old,), "why"), staged, draft, AT)
    assert (repeat.kind, repeat.said, repeat.before) == ("repeat", staged.text, old)
    ended = replace(staged, state="superseded", superseded_by="old", updated_at=AT)
    assert absorb == Edit("absorb", ended, staged, "why")


def near(entries: Entries, text: str, *, vector: Any = None) -> list[tuple[str, float | None]]:
    entries._context.follower.try_follow(embed=False)
    cosines = cosines_near(entries._context.follower, Draft(text), vector)
    found, _ = neighbours(entries._context.store, Nearby(cosines, entries._context.store.seq()))
    return [(one.entry.text, one.cosine and round(one.cosine, 3)) for one in found]


def embedded(text: str) -> Any:
    return HashEmbedder().embed([text])[0]


def test_neighbours_are_found_by_words_and_by_vectors_nearest_first(entries: Entries) -> None:
    for text in ("The heron nests in May", "The heron sleeps", "Invoices are paid on Fridays"):
        entries.add_draft(Draft(text, "fact"))
    text = "The heron nests in May, says Anna"
    found = near(entries, text, vector=embedded(text))
    assert [known for known, _ in found][:2] == ["The heron nests in May", "The heron sleeps"]
    cosines = [cosine or 0.0 for _, cosine in found]
    assert cosines == sorted(cosines, reverse=True)
    assert {known for known, _ in near(entries, text)} == {"The heron nests in May", "The heron sleeps"}
    assert {cosine for _, cosine in near(entries, text)} == {None}
    assert near(entries, text, vector=embedded(text) * 0) == [
        (known, 0.0) for known, _ in near(entries, text)
    ]
    entries._context.follower.embedder = None
    assert near(entries, text, vector=embedded(text)) == near(entries, text)


def test_only_entries_in_force_are_neighbours(entries: Entries) -> None:
    first = entries.add_draft(Draft("The heron nests in May", "fact")).entry
    assert first is not None
    entries.supersede(first.id, "The heron nests in June")
    assert [text for text, _ in near(entries, "heron nests")] == ["The heron nests in June"]
    assert near(entries, "nothing of the kind") == []


def test_sixteen_neighbours_by_vector_and_four_rare_words(entries: Entries) -> None:
    for number in range(20):
        entries.add_draft(Draft(f"item{number} common", "fact"))
    text = "common item0 item1 item2 item3"
    assert sorted(known for known, _ in near(entries, text)) == [f"item{n} common" for n in range(4)]
    vector = embedded("entirely unrelated")
    assert len(near(entries, "unknown words", vector=vector)) == 16
    ids = [entry.id for entry in entries.list()]
    cosines = cosines_near(entries._context.follower, Draft(text), None)
    found, _ = neighbours(entries._context.store, Nearby(cosines, entries._context.store.seq()))
    order = [one.entry.id for one in found]
    assert order == sorted(set(order) & set(ids))


def test_entries_that_the_index_does_not_contain_yet_are_neighbours_without_a_cosine(
    entries: Entries,
) -> None:
    for text in ("The heron nests in May", "The heron sleeps", "Invoices are paid on Fridays"):
        entries.add_draft(Draft(text, "fact"))
    invoices, sleeps, nests = entries.list()
    seq, cosines = entries._context.store.seq(), {(nests.id, nests.text): 0.5, (sleeps.id, sleeps.text): 0.7}

    def found(since: int) -> list[tuple[str, float | None]]:
        near, _ = neighbours(entries._context.store, Nearby(cosines, since))
        return [(one.entry.id, one.cosine) for one in near]

    assert found(seq) == [(sleeps.id, 0.7), (nests.id, 0.5)]
    assert found(seq - 1) == [(sleeps.id, 0.7), (nests.id, 0.5), (invoices.id, None)]
    entries.update(sleeps.id, text="The heron flies")
    assert found(seq) == [(nests.id, 0.5), (sleeps.id, None)]  # the cosine was that of another text
    entries.update(sleeps.id, text="The heron sleeps")
    assert found(seq) == [(sleeps.id, 0.7), (nests.id, 0.5)]


def test_only_the_newest_entries_are_compared_if_the_index_is_far_behind(
    entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        entries.add_draft(Draft(f"item{number} common", "fact"))
    assert merge.MAX_UNINDEXED == 256
    monkeypatch.setattr(merge, "MAX_UNINDEXED", 3)
    found, uncompared = neighbours(entries._context.store, Nearby({}, 0))
    assert uncompared == 1
    assert sorted(one.entry.text for one in found) == [f"item{number} common" for number in (1, 2, 3)]
    oldest = next(entry for entry in entries.list() if entry.text == "item0 common")
    entries.update(oldest.id, tags=["changed"])
    found, uncompared = neighbours(entries._context.store, Nearby({}, 0))
    assert uncompared == 1
    assert sorted(one.entry.text for one in found) == [f"item{number} common" for number in (0, 2, 3)]
