"""Several processes may update one derived index at the same time and be killed at any point: no change is missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoriter.index.follow import Follower, Indexed
from memoriter.records import Chunk, Document
from memoriter.store import Index, open_index

NAME = "changes"


class Changes:
    """A store in which every change adds one document, named after the change's number."""

    def __init__(self, store_id: str = "one") -> None:
        self.store_id = store_id
        self.newest = 0
        #: What another process does while this one asks for the number.
        self.before_answering: Callable[[], None] | None = None

    def seq(self) -> int:
        answer, others = self.newest, self.before_answering
        if others is not None:
            self.before_answering = None
            others()
        return answer

    def mark(self, seq: int) -> str:
        return str(seq)

    def changed_since(self, seq: int) -> list[str]:
        return [str(number) for number in range(seq + 1, self.newest + 1)]

    def documents(self, paths: Sequence[str]) -> dict[str, Indexed]:
        return {path: document(path) for path in paths if int(path) <= self.newest}


def document(path: str) -> Indexed:
    text = f"change {path}"
    return Document(path, "memory", text, path, 0, len(text)), [Chunk(path, path, "memory", 1, 1, text)]


def following(index: Index, changes: Changes) -> Iterator[None]:
    """Run one follower step by step, one document per step. A follower that gets no further step was killed."""
    return Follower(changes, index, None, name=NAME, block=1)._steps({})


def follow(index: Index, changes: Changes) -> None:
    Follower(changes, index, None, name=NAME).follow()


def held(index: Index) -> set[int]:
    return {int(path) for path in index.files()}


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return open_index(tmp_path)


def test_an_index_of_another_store_or_of_a_later_state_is_rebuilt(index: Index) -> None:
    changes, other = Changes(), Changes("other")
    changes.newest = other.newest = 2
    follow(index, changes)
    follow(index, other)
    assert (held(index), index.meta(NAME)) == ({1, 2}, "other 2 2")
    other.newest = 1  # as it was in an older copy of the store
    follow(index, other)
    assert (held(index), index.meta(NAME)) == ({1}, "other 1 1")


def test_an_index_with_keywords_of_another_tokenizer_is_rebuilt(index: Index) -> None:
    changes = Changes()
    changes.newest = 2
    follow(index, changes)
    index.replace(*document("3"))  # a row that the position does not cover
    index.set_meta(tokenizer="of an older version")
    follow(index, changes)
    assert (held(index), index.meta(NAME)) == ({1, 2}, "one 2 2")


def test_an_index_that_another_process_just_updated_is_not_rebuilt(
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
    assert held(index) == {1, 2}  # the follower is killed here


def test_a_follower_whose_index_was_cleared_meanwhile_does_not_advance_the_position(
    index: Index,
) -> None:
    changes = Changes()
    changes.newest = 2
    follow(index, changes)
    changes.newest = 3
    late = following(index, changes)
    next(late)
    index.clear()  # as if the file was damaged and another process began a new one
    index.set_meta(**{NAME: "one 0 0"})
    for _ in late:
        pass
    follow(index, changes)
    assert held(index) == {1, 2, 3}


ACTIONS = ["change", "begin", "step", "step", "step", "kill", "meanwhile", "damage"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1)), max_size=40))
def test_the_index_holds_every_change_up_to_its_position(script: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder, open_index(Path(folder)) as index:
        changes, running = Changes(), dict[int, Iterator[None]]()

        def another_adds() -> None:
            changes.newest += 1
            follow(index, changes)

        for action, process in script:
            if action == "change":
                changes.newest += 1
            elif action == "begin":
                running[process] = following(index, changes)
            elif action == "step" and process in running:
                next(running[process], None)
            elif action == "kill":
                running.pop(process, None)
            elif action == "meanwhile":
                changes.before_answering = another_adds
            elif action == "damage":
                index.heal("damaged")
            covered = int((index.meta(NAME) or "one 0 0").split()[1])
            assert set(range(1, covered + 1)) <= held(index)
        changes.before_answering = None
        follow(index, changes)
        assert held(index) == set(range(1, changes.newest + 1))
