"""mem0's API at the gateway, as its clients call it."""

from __future__ import annotations

from typing import Any

import httpx
from gateways import Start


def client_of(start: Start, access: str = "admin") -> httpx.Client:
    running = start()
    token = running.gateway.tokens.create(access)[1]  # type: ignore[arg-type]
    return httpx.Client(
        base_url=f"{running.address}/mem0", headers={"Authorization": f"Token {token}"}, timeout=60
    )


def add(client: httpx.Client, text: str, **fields: Any) -> list[dict[str, Any]]:
    body = {"messages": [{"role": "user", "content": text}], "infer": False, **fields}
    answer = client.post("/v3/memories/add/", json=body)
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def test_a_memory_is_added_found_read_changed_and_deleted(start: Start) -> None:
    with client_of(start) as client:
        assert client.get("/v1/ping/").json()["status"] == "ok"
        metadata = {"topic": "travel", "days": [1, 2], "note": "Ä" * 100}
        (one,) = add(client, "I fly to Lisbon in May.", user_id="ada", metadata=metadata)
        assert (one["memory"], one["event"], one["user_id"]) == ("I fly to Lisbon in May.", "ADD", "ada")
        address = f"/v1/memories/{one['id']}/"
        assert client.get(address).json()["metadata"] == metadata
        asked = {"query": "Where do I fly?", "filters": {"user_id": "ada"}, "top_k": 5}
        found = client.post("/v3/memories/search/", json=asked).json()["results"]
        assert [hit["id"] for hit in found] == [one["id"]]
        assert 0 < found[0]["score"] <= 1
        changed = client.put(address, json={"text": "I fly to Porto in May."}).json()
        assert changed["memory"] == "I fly to Porto in May."
        history = client.get(f"{address}history/").json()
        assert [(event["event"], event["old_memory"], event["new_memory"]) for event in history] == [
            ("ADD", None, "I fly to Lisbon in May."),
            ("UPDATE", "I fly to Lisbon in May.", "I fly to Porto in May."),
        ]
        assert client.delete(address).status_code == 200
        gone = client.get(address)
        assert (gone.status_code, sorted(gone.json())) == (404, ["detail", "error"])


def test_what_two_users_say_never_meets(start: Start) -> None:
    with client_of(start) as client:
        add(client, "I live in Berlin.", user_id="ada")
        add(client, "I live in Munich.", user_id="Zoë M.")
        both = {"filters": {"OR": [{"user_id": "ada"}, {"user_id": "Zoë M."}]}}
        listed = client.post("/v3/memories/", json=both).json()
        assert sorted((one["user_id"], one["memory"]) for one in listed["results"]) == [
            ("Zoë M.", "I live in Munich."),
            ("ada", "I live in Berlin."),
        ]
        entities = client.get("/v1/entities/").json()["results"]
        assert {one["name"]: one["total_memories"] for one in entities} == {"ada": 1, "Zoë M.": 1}
        assert client.delete("/v2/entities/user/ada/").status_code == 200
        left = client.post("/v3/memories/", json=both).json()
        assert [one["memory"] for one in left["results"]] == ["I live in Munich."]


def test_filters_compare_metadata_and_runs(start: Start) -> None:
    with client_of(start) as client:
        add(client, "The rent is 900 euros.", user_id="ada", run_id="r1", metadata={"price": 900})
        add(client, "The bicycle cost 400 euros.", user_id="ada", run_id="r2", metadata={"price": 400})

        def texts(filters: dict[str, Any]) -> list[str]:
            body = {"filters": {"AND": [{"user_id": "ada"}, filters]}}
            return [one["memory"] for one in client.post("/v2/memories/", json=body).json()["results"]]

        assert texts({"price": {"gt": 500}}) == ["The rent is 900 euros."]
        assert texts({"run_id": "r2"}) == ["The bicycle cost 400 euros."]
        assert texts({"NOT": [{"metadata": {"price": 400}}]}) == ["The rent is 900 euros."]
        wrong = client.post("/v2/memories/", json={"filters": {"user_id": "ada", "price": {"near": 1}}})
        assert (wrong.status_code, wrong.json()["detail"][:23]) == (422, "Unknown operator 'near'")


def test_messages_are_captured_and_stay_findable_as_a_conversation(start: Start) -> None:
    with client_of(start) as client:
        messages = [
            {"role": "user", "content": "Remember that my sister Ruth lives in Porto."},
            {"role": "assistant", "content": "Noted. The tram number 18 stops near her house."},
        ]
        added = client.post("/v3/memories/add/", json={"messages": messages, "user_id": "ada"}).json()
        assert [one["memory"] for one in added["results"]] == ["My sister Ruth lives in Porto."]
        assert client.get(f"/v1/event/{added['event_id']}/").json()["status"] == "SUCCEEDED"
        asked = {"query": "tram number 18", "filters": {"user_id": "ada"}}
        passages = client.post("/v3/memories/search/", json=asked).json()["results"]
        assert "tram number 18" in passages[0]["memory"]
        again = client.get(f"/v1/memories/{passages[0]['id'].replace('#', '%23')}/")
        assert "tram number 18" in again.json()["memory"]
        client.delete("/v1/memories", params={"user_id": "ada"})
        assert client.post("/v3/memories/search/", json=asked).json() == {"results": []}


def test_a_key_that_may_only_read_adds_nothing_and_a_missing_entity_is_named(start: Start) -> None:
    with client_of(start, "read") as client:
        body = {"messages": "I like tea.", "user_id": "ada"}
        assert client.post("/v3/memories/add/", json=body).status_code == 403
        nameless = client.post("/v3/memories/search/", json={"query": "tea", "filters": {}})
        assert nameless.status_code == 422
        assert "user_id" in nameless.json()["detail"]


def test_names_of_any_length_are_kept_apart_listed_and_deleted(start: Start) -> None:
    names = ["customer-7f3b1c1e-9d0a-4a57-8a41-1f6f0b6f0a11", "Ünal Öz, Straße 12, 10115 Berlin " * 5]
    with client_of(start) as client:
        for number, name in enumerate(names):
            (one,) = add(client, f"I live in house {number}.", user_id=name)
            assert client.get(f"/v1/memories/{one['id']}/").json()["user_id"] == name
            asked = {"query": "Which house do I live in?", "filters": {"user_id": name}}
            found = client.post("/v3/memories/search/", json=asked).json()["results"]
            assert [(hit["memory"], hit["user_id"]) for hit in found] == [
                (f"I live in house {number}.", name)
            ]
        listed = client.get("/v1/entities/").json()["results"]
        assert sorted(one["name"] for one in listed) == sorted(names)
        assert client.delete("/v1/memories/", params={"user_id": "*"}).status_code == 200
        assert client.post("/v3/memories/", json={"filters": {"user_id": names[0]}}).json()["count"] == 0


def test_several_memories_are_changed_and_deleted_together(start: Start) -> None:
    with client_of(start) as client:
        ids = [add(client, f"I own boat {number}.", user_id="ada")[0]["id"] for number in range(3)]
        new = [{"memory_id": one, "text": f"I sold {one[-4:]}."} for one in ids[:2]]
        assert client.put("/v1/batch/", json={"memories": new}).status_code == 200
        assert client.get(f"/v1/memories/{ids[0]}/").json()["memory"] == new[0]["text"]
        gone = {"memories": [{"memory_id": one} for one in ids[:2]]}
        assert client.request("DELETE", "/v1/batch/", json=gone).status_code == 200
        left = client.post("/v3/memories/", json={"filters": {"user_id": "ada"}}).json()["results"]
        assert [one["id"] for one in left] == [ids[2]]
        wrong = client.put("/v1/batch/", json={"memories": [{"memory_id": ids[2]}, "x"]})
        assert wrong.status_code == 422


def test_an_id_of_another_form_is_invalid_and_an_unknown_one_is_not_found(start: Start) -> None:
    with client_of(start) as client:
        assert client.get("/v1/memories/nonexistent-12345/").status_code == 422
        assert client.get("/v1/memories/00000000-0000-0000-0000-000000000000/").status_code == 404
