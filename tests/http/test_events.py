"""Live events about files and operations, and the limits of event streams."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from pathlib import Path

import pytest
from gateways import Running, Start, ask, listening, poll

from memoriter.server.http import events as events_module
from memoriter.server.http.events import MAX_KEPT_EVENTS, MAX_PENDING_EVENTS, Hub
from memoriter.server.http.responses import Refused


def test_a_changed_note_is_an_event(start: Start, note) -> None:
    gateway = start()
    caller = gateway.caller("read")
    with listening(caller) as events:
        assert events.next()["event"] == "hello"
        poll(lambda: ask(caller, "memory.stats")["file_count"] > 5)
        note("memory/zebras.md", "# Zebras\n\nThe zebra crossing is repainted in May.\n")
        while (synced := events.until("sync")["data"])["changed"] != 1:
            pass  # the first syncs
    assert (synced["agent"], synced["reason"], synced["error"]) == ("main", "notes", None)


def test_each_kind_of_change_has_its_own_event(gateway: Running) -> None:
    caller, other = gateway.caller("read"), gateway.caller("admin")
    with listening(caller) as events:
        events.until("hello")
        stored = ask(other, "memory_store", text="I prefer green tea in the morning.")
        while (stored_event := events.until("entries")["data"])["operation"] is None:
            pass  # the agent was just opened, and other processes may have changed it before
        assert (stored_event["operation"], stored_event["ids"]) == ("memory_store", [stored["memory"]["id"]])
        talk = [{"role": "user", "content": "Remember that my sister lives in Porto."}]
        captured = ask(other, "capture", messages=talk, session="one")
        assert events.until("capture")["data"]["ids"] == [captured["remembered"][0]["memory"]["id"]]
        ask(other, "memory_save", content="The zebra crossing is repainted in May.")
        assert events.until("notes")["data"]["path"].startswith("memory/")
        ask(other, "memory.sync", force=True)
        assert events.until("progress")["data"]["total"] > 0
        while events.until("sync")["data"].get("operation") != "memory.sync":
            pass  # the first sync of the agent
        ask(other, "recall", query="What do I drink in the morning?")
        assert events.until("recall")["data"]["recallId"]


def test_changes_by_another_process_are_events_even_under_load(start: Start) -> None:
    one, two = start(watch__enabled=False), start(watch__enabled=False)
    over = threading.Event()

    def work(gateway: Running, pause_s: float) -> None:
        caller = gateway.caller("write")
        for number in itertools.count():
            ask(caller, "memory_store", text=f"The parcel {number} weighs {number * 7 + 1} grams.")
            if over.wait(pause_s):
                return

    with listening(one.caller("read")) as events:
        at_work = [threading.Thread(target=work, args=args) for args in ((one, 0.02), (two, 0.5))]
        for working in at_work:
            working.start()
        try:
            operations: set[str | None] = set()
            while operations != {"memory_store", None}:  # None: a change by the other process
                operations.add(events.until("entries")["data"]["operation"])
        finally:
            over.set()
            for working in at_work:
                working.join()


def test_the_first_change_by_another_process_is_an_event(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "POLL_INTERVAL_S", 3.0)  # the first look comes after the change
    one, two = start(watch__enabled=False), start(watch__enabled=False)
    writer = two.caller("write")
    ask(writer, "memory_store", text="I prefer green tea in the morning.")
    with listening(one.caller("read")) as events:
        events.until("hello")
        ask(one.caller("read"), "entries.list")  # what a page shows until the next event
        ask(writer, "memory_store", text="The parcel weighs 7 grams.")
        assert events.until("entries")["data"]["operation"] is None


def test_own_changes_are_not_reported_as_changes_by_another_process(start: Start) -> None:
    gateway = start(watch__enabled=False)
    caller = gateway.caller("write")
    ask(caller, "memory_store", text="I prefer green tea in the morning.")
    operations: list[str | None] = []
    with listening(caller) as events:
        events.until("hello")
        for number in range(30):
            ask(caller, "memory_store", text=f"The parcel {number} weighs {number * 7 + 1} grams.")
            ask(caller, "recall", query="parcel")
            while operations.count("memory_store") <= number:
                operations.append(events.until("entries")["data"]["operation"])
    assert operations.count(None) <= 1  # the database file was new, and its creator is unknown


def test_a_client_that_reconnects_continues_after_its_last_event(gateway: Running) -> None:
    hub, caller = gateway.gateway.hub, gateway.caller("read")
    with listening(caller) as events:
        assert events.next()["data"]["resumed"] is False
        for number in range(3):
            hub.publish("main", "notes", number=number)
        first = events.until("notes")
    with listening(caller, Last_Event_ID=first["id"]) as events:
        assert events.next()["data"]["resumed"] is True
        assert [events.until("notes")["data"]["number"] for _ in range(2)] == [1, 2]
    for _ in range(MAX_KEPT_EVENTS + 5):
        hub.publish("main", "notes", number=9)
    with listening(caller, Last_Event_ID=first["id"]) as events:
        assert events.next()["data"]["resumed"] is False
    with listening(caller, Last_Event_ID="ffffffff-3") as events:
        assert events.next()["data"]["resumed"] is False


def test_a_stream_can_start_after_an_answer_so_that_nothing_in_between_is_missed(gateway: Running) -> None:
    hub, caller = gateway.gateway.hub, gateway.caller("read")
    answer = caller.post("/v1/agents/main/entries.list", json={})
    hub.publish("main", "notes", number=1)
    with listening(caller, after=answer.headers["x-memoriter-event"]) as events:
        assert events.next()["data"]["resumed"] is True
        assert events.until("notes")["data"]["number"] == 1


def test_a_stream_ends_when_its_token_is_revoked(gateway: Running) -> None:
    token, secret = gateway.gateway.tokens.create("read")
    with listening(gateway.client(secret)) as events:
        events.next()
        gateway.gateway.tokens.revoke(token.id)
        gateway.gateway.hub.publish("main", "notes", secret="after the end")
        with pytest.raises(EOFError):
            events.until("notes")
    poll(lambda: gateway.gateway.hub.listeners == 0)


def test_a_quiet_stream_has_heartbeats_and_ends_when_its_token_is_revoked(
    gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "HEARTBEAT_S", 0.05)
    token, secret = gateway.gateway.tokens.create("read")
    with gateway.client(secret).stream("GET", "/v1/events") as answer:
        lines = answer.iter_lines()
        assert ": ping" in lines
        gateway.gateway.tokens.revoke(token.id)
        for _ in lines:
            pass  # until the stream ends


def test_a_client_that_reads_nothing_is_disconnected(
    gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "SEND_TIMEOUT_S", 0.2)
    token = gateway.gateway.tokens.create("read")[1]
    place = gateway.address.removeprefix("http://")
    host, port = place.split(":")
    with socket.create_connection((host, int(port))) as client:
        head = f"GET /v1/events HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\n\r\n"
        client.sendall(head.encode())
        hub = gateway.gateway.hub
        poll(lambda: hub.listeners == 1)

        def gone() -> bool:
            hub.publish("main", "notes", filling="x" * 100_000)
            return hub.listeners == 0

        poll(gone)


def test_a_head_request_opens_no_stream(gateway: Running) -> None:
    answer = gateway.caller("read").head("/v1/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    poll(lambda: gateway.gateway.hub.listeners == 0)


def test_streams_end_when_the_gateway_stops(start: Start) -> None:
    gateway = start(watch__enabled=False)
    with listening(gateway.caller("read")) as events:
        events.next()
        gateway.server.stop()
        with pytest.raises(EOFError):
            events.until("no such kind")


def test_the_number_of_streams_is_limited(start: Start) -> None:
    gateway = start(watch__enabled=False, gateway__limits__event_clients=1)
    with listening(gateway.caller("read")):
        full = gateway.caller("read").get("/v1/events")
        assert (full.status_code, full.json()) == (
            503,
            {"error": "Too many event streams are open. Try again later.", "code": "too_many_streams"},
        )


def test_one_caller_can_open_at_most_half_of_the_streams(start: Start) -> None:
    gateway = start(watch__enabled=False, gateway__limits__event_clients=4)
    greedy, other = gateway.caller("read"), gateway.caller("read")
    with listening(greedy), listening(greedy):
        more = greedy.get("/v1/events")
        assert (more.status_code, more.json()) == (
            429,
            {"error": "This caller has too many event streams open.", "code": "too_many_streams"},
        )
        with listening(other) as events:
            assert events.next()["event"] == "hello"


def test_event_ids_reveal_nothing_about_other_agents(start: Start, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    gateway = start(watch__enabled=False, gateway__agents={"work": tmp_path / "work"})
    hub, caller = gateway.gateway.hub, gateway.caller("read", agents=("work",))
    ids = []
    with listening(caller, "work") as events:
        for number in range(3):
            hub.publish("work", "notes", number=number)
            for _ in range(7):
                hub.publish("main", "notes", number=number)
            ids.append(events.until("notes")["id"].partition("-"))
    numbers = [int(number) for _, _, number in ids]
    assert all(
        0 < after - before < 7 for before, after in itertools.pairwise(numbers)
    )  # only its own events are counted
    with listening(gateway.caller("read"), "main", Last_Event_ID="-".join(ids[0][::2])) as events:
        assert events.next()["data"]["resumed"] is False  # the id of another agent's event is not valid


def test_only_the_listener_that_falls_behind_is_disconnected() -> None:
    async def scene() -> tuple[int, list[int]]:
        hub = Hub(10)
        slow, _, _ = hub.join("main")
        quick, _, _ = hub.join("main")
        numbers = []
        for number in range(2 * MAX_PENDING_EVENTS):
            await asyncio.to_thread(hub.publish, "main", "notes", number=number)
            event = await quick.next(120)
            assert event is not None
            numbers.append(event.data["number"])
        waiting = 0
        while await slow.next(120) is not None:
            waiting += 1
        return waiting, numbers

    waiting, numbers = asyncio.run(scene())
    assert waiting < MAX_PENDING_EVENTS
    assert numbers == list(range(2 * MAX_PENDING_EVENTS))


def test_a_closed_hub_refuses_listeners_and_ignores_events() -> None:
    hub = Hub(10)
    hub.close()
    hub.publish("main", "notes")

    async def join() -> None:
        hub.join("main")

    with pytest.raises(Refused):
        asyncio.run(join())


def test_events_from_many_threads_keep_their_order() -> None:
    async def scene() -> list[int]:
        hub = Hub(10)
        listener, _, _ = hub.join("main")
        threads = [
            threading.Thread(target=lambda: [hub.publish("main", "notes") for _ in range(10)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        numbers = []
        for _ in range(80):
            event = await listener.next(120)
            assert event is not None
            numbers.append(event.number)
        for thread in threads:
            thread.join()
        return numbers

    assert asyncio.run(scene()) == list(range(1, 81))
