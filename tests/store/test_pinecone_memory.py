"""A memory whose vectors are in Pinecone: what answers, receipts and checks say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fake_pinecone import KEY, FakePinecone, pinecone_server

from memoriter import Memory
from memoriter.config import load
from memoriter.entries.forgetting import complete
from memoriter.memory import parts_of
from memoriter.tools.doctor import check_memory

REMOTE = "copies that Pinecone keeps after deletion, in its backups and until it compacts the index"


@pytest.fixture
def account() -> Iterator[FakePinecone]:
    with pinecone_server() as account:
        yield account


@pytest.fixture
def memory(
    account: FakePinecone,
    note: Callable[[str, str], object],
    open_memory: Callable[..., Memory],
    monkeypatch: pytest.MonkeyPatch,
) -> Memory:
    monkeypatch.setenv("PINECONE_API_KEY", KEY)
    note("MEMORY.md", "The backup runs every night at two.\n")
    settings = {"index__vector_engine": "pinecone", "entries__vector_engine": "pinecone"}
    return open_memory(**settings, pinecone__api_url=account.url)


def test_notes_and_entries_are_found_and_their_texts_stay_here(account: FakePinecone, memory: Memory) -> None:
    memory.sync()
    memory.remember("I drink green tea in the morning")
    answer = memory.search("when does the backup run?")
    assert (answer.hits[0].path, answer.degraded) == ("MEMORY.md", None)
    assert "backup" not in str(account.bodies)
    assert "tea" not in str(account.bodies)
    assert account.namespaces.keys()


def test_an_answer_says_that_pinecone_was_not_used(account: FakePinecone, memory: Memory) -> None:
    memory.sync()
    account.fault = "500"
    answer = memory.search("when does the backup run?")
    assert answer.hits[0].path == "MEMORY.md"
    assert "Pinecone was not used: vectors were compared on this machine." in str(answer.degraded)


def test_a_sync_reports_that_vectors_were_not_uploaded(account: FakePinecone, memory: Memory) -> None:
    account.fault = "401"
    report = memory.sync()
    assert "Pinecone rejected the key (status 401)" in str(report.degraded)


def test_the_checks_name_what_is_wrong(account: FakePinecone, memory: Memory) -> None:
    memory.sync()
    memory.remember("I drink green tea in the morning")
    account.fault = "401"
    findings = {f.name: f.text for f in check_memory(memory, memory.status(deep=True))}
    assert "Check PINECONE_API_KEY" in findings["vector engine"]


def test_forgetting_deletes_the_vectors_and_says_what_it_cannot_promise(
    account: FakePinecone, memory: Memory
) -> None:
    remembered = memory.remember("My old address is 5 Elm Street")
    memory.entries.erase(remembered.entry.id, dry_run=True)
    receipt = memory.entries.erase(remembered.entry.id)
    assert REMOTE in receipt.not_covered
    assert not any("does not answer" in line for line in receipt.not_covered)


def test_forgetting_while_pinecone_is_down_is_completed_at_the_next_start(
    account: FakePinecone, memory: Memory
) -> None:
    remembered = memory.remember("My old address is 5 Elm Street")
    memory.entries.cleanup()
    memory.entries._context.follower.index.refresh(parts_of(memory).embedder.identity)  # uploads the vector
    [namespace] = [name for name, vectors in account.namespaces.items() if vectors]
    account.fault = "500"
    receipt = memory.entries.erase(remembered.entry.id)
    assert any(line.startswith("vectors in Pinecone, not deleted yet") for line in receipt.not_covered)
    assert len(account.namespaces[namespace]) == 1
    account.fault = None
    complete(memory.entries._context)
    assert not account.namespaces.get(namespace)


def test_forgetting_after_a_switch_to_another_engine_says_what_is_left_there(
    account: FakePinecone, memory: Memory, open_memory: Callable[..., Memory]
) -> None:
    remembered = memory.remember("My old address is 5 Elm Street")
    memory.entries._context.follower.index.refresh(parts_of(memory).embedder.identity)  # uploads the vector
    memory.close()
    receipt = open_memory().entries.erase(remembered.entry.id)
    assert receipt.not_covered[-1] == (
        "vectors in Pinecone, which is no longer the vector engine: delete them there"
    )


def test_a_key_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINECONE_API_KEY", KEY)
    settings = load()
    shown = {setting.key: setting for setting in settings.describe()}["pinecone.api_key"]
    assert (shown.value, shown.origin) == ("***", "PINECONE_API_KEY")
