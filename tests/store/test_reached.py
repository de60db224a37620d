"""Several processes bring one derived index up to date at once, each killed at any point: none misses a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_samples import put

from memoriter.index.progress import Reached
from memoriter.store import Index, open_index

KEY = "followed"


class Changes:
    """A store of record that does nothing but number its changes."""

    def __init__(self, store_id: str = "one") -> None:
        self.store_id = store_id
        self.newest = 0
        self.before_answering: Callable[[], None] | None = None  #: what others do while one asks

    def seq(self) -> int:
        answer, others = self.newest, self.before_answering
        if others is not None:
            self.before_answering = None
            others()
        return answer


def following(index: Index, changes: Changes) -> Iterator[None]:
    """One follower, step by step: whoever stops asking for the next step has killed it."""
    reached = Reached(index, KEY, changes)
    since, now = reached.begin(), changes.seq()
    yield
    for change in range(since + 1, changes.newest + 1):
        put(index, str(change), f"change {change}")
        yield
    reached.note(since, now)


def follow(index: Index, changes: Changes) -> None:
    for _ in following(index, changes):
        pass


def held(index: Index) -> set[int]:
    return {int(path) for path in index.files()}


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return open_index(tmp_path)


def test_an_index_of_another_store_or_of_a_later_state_is_begun_anew(index: Index) -> None:
    changes, other = Changes(), Changes("other")
    changes.newest = other.newest = 2
    follow(index, changes)
    follow(index, other)
    assert (held(index), index.meta(KEY)) == ({1, 2}, "other 2")
    other.newest = 1  # as it was in an older copy of the store
    follow(index, other)
    assert (held(index), index.meta(KEY)) == ({1}, "other 1")


def test_an_index_whose_keywords_another_tokenizer_made_is_begun_anew(index: Index) -> None:
    changes = Changes()
    changes.newest = 2
    follow(index, changes)
    put(index, "3", "a row that nothing covers")
    index.set_meta(tokenizer="of an older version")
    follow(index, changes)
    assert (held(index), index.meta(KEY)) == ({1, 2}, "one 2")


def test_who_asks_while_another_follows_does_not_take_the_index_for_one_of_a_later_state(
    index: Index,
) -> None:
    changes = Changes()
    changes.newest = 1
    follow(index, changes)

    def another_adds() -> None:
        changes.newest = 2
        follow(index, changes)

    changes.before_answering = another_adds
    late = following(index, changes)
    next(late)
    assert held(index) == {1, 2}  # and is killed here


def test_who_follows_an_index_that_is_begun_anew_meanwhile_does_not_vouch_for_what_it_has_not_seen(
    index: Index,
) -> None:
    changes = Changes()
    changes.newest = 2
    follow(index, changes)
    changes.newest = 3
    late = following(index, changes)
    next(late)
    index.clear()  # as when the file was damaged, and another began a new one
    index.set_meta(**{KEY: "one 0"})
    for _ in late:
        pass
    follow(index, changes)
    assert held(index) == {1, 2, 3}


ACTS = ["change", "begin", "step", "step", "step", "kill", "meanwhile", "damage"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 1)), max_size=40))
def test_whatever_the_mark_covers_is_in_the_index(script: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder, open_index(Path(folder)) as index:
        changes, running = Changes(), dict[int, Iterator[None]]()

        def another_adds() -> None:
            changes.newest += 1
            follow(index, changes)

        for act, who in script:
            if act == "change":
                changes.newest += 1
            elif act == "begin":
                running[who] = following(index, changes)
            elif act == "step" and who in running:
                next(running[who], None)
            elif act == "kill":
                running.pop(who, None)
            elif act == "meanwhile":
                changes.before_answering = another_adds
            elif act == "damage":
                index.heal("damaged")
            covered = int((index.meta(KEY) or "one 0").partition(" ")[2])
            assert set(range(1, covered + 1)) <= held(index)
        changes.before_answering = None
        follow(index, changes)
        assert held(index) == set(range(1, changes.newest + 1))
