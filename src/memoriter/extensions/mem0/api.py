"""The HTTP API of mem0: add, search, get, list, update, delete, history, entities, events.

A client of mem0 works with `host="http://127.0.0.1:8377/mem0"` and a token of the gateway as its key. `add` records the
messages as a conversation and captures statements from them, by rules or by the configured model; with `infer=False` it
stores each message as it is. All work is done when `add` returns, so every event has succeeded.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from memoriter.entries.drafts import Draft
from memoriter.errors import BadArgument, MemoriterError, NotFound
from memoriter.extensions.importing import iso_time
from memoriter.extensions.mem0 import spaces
from memoriter.extensions.mem0.filters import admits, named_entities
from memoriter.extensions.mem0.spaces import KINDS, Entity, Spaces, agent_name, entity_in, entity_of, split_id
from memoriter.memory import Memory
from memoriter.records import Entry, Selection, Trust
from memoriter.server.http.app import STATUS
from memoriter.server.http.gateway import Gateway, Mount
from memoriter.server.http.limits import parse_arguments
from memoriter.server.http.responses import json_response
from memoriter.tools.tool import Access, grants
from memoriter.tools.toolbox import hide_folders, outcome_of

Result = dict[str, Any]
#: The session of messages that name no run.
SESSION = "conversation"
MAX_RESULTS = 1_000
EVENTS = {"add": "ADD", "forget": "DELETE", "expire": "DELETE"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the fields of its body, and of its address."""

    fields: Mapping[str, Any]
    path: Mapping[str, str]
    trust: Trust

    @property
    def filters(self) -> Mapping[str, Any]:
        """Return the filter. Older clients send the ids of entities beside it."""
        given = self.fields.get("filters") or {}
        if not isinstance(given, Mapping):
            raise BadArgument("`filters` must be an object.", "filters")
        return {**{kind: self.fields[kind] for kind in KINDS if self.fields.get(kind)}, **given}

    def number(self, name: str, default: int) -> int:
        """Return a whole number of the request."""
        try:
            return max(1, min(MAX_RESULTS, int(self.fields.get(name) or default)))
        except (TypeError, ValueError):
            raise BadArgument(f"`{name}` must be a number.", name) from None


class Mem0Api:
    """The requests of mem0's clients, answered from one memory for each entity."""

    def __init__(self, memories: Spaces) -> None:
        self.spaces = memories

    def ping(self, _: Asked) -> Result:
        """Answer a client that starts."""
        return {"status": "ok", "org_id": "memoriter", "project_id": "memoriter", "user_email": None}

    def event(self, asked: Asked) -> Result:
        """Return the state of the work for an earlier `add`: it was done before its response."""
        return {"id": asked.path["id"], "status": "SUCCEEDED"}

    def add(self, asked: Asked) -> Result:
        """Record messages, and capture or store what they say."""
        entity = _owner(asked.fields)
        messages = asked.fields.get("messages")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
            raise BadArgument("`messages` must be a list of messages with `role` and `content`.", "messages")
        metadata = asked.fields.get("metadata") or {}
        kept = {**{kind: asked.fields.get(kind) for kind in KINDS}, "metadata": metadata}
        session = str(asked.fields.get("run_id") or SESSION)
        with self.spaces.use(agent_name(entity)) as memory:
            spaces.keep_name(memory, entity)
            spaces.keep_session(memory, session)
            if asked.fields.get("infer", True):
                done = memory.capture_messages(
                    messages, session=session, trust=asked.trust, record=True, wait=True
                )
            else:
                done = [memory.entries.add_draft(draft) for draft in _drafts(messages, session, asked.trust)]
            results = []
            for one in done:
                if one.entry is None:
                    continue
                spaces.keep_details(memory, one.entry.id, kept)
                event = "ADD" if one.action in ("added", "staged") else "UPDATE"
                results.append({**self._memory(memory, one.entry), "event": event})
        return {"results": results, "event_id": str(uuid.uuid4()), "status": "SUCCEEDED"}

    def search(self, asked: Asked) -> Result:
        """Return what answers a query: statements, and passages of recorded conversations."""
        query, found = str(asked.fields.get("query") or ""), list[Result]()
        if not query.strip():
            raise BadArgument("`query` is empty.", "query")
        limit, filters = asked.number("top_k", asked.number("limit", 10)), asked.filters
        threshold = asked.fields.get("threshold")
        for memory in self._named(filters):
            answer = memory.search(
                query,
                max_results=limit,
                min_score=float(threshold) if threshold is not None else None,
                masked=asked.trust != "owner",
            )
            for hit in answer.hits:
                shown = (
                    self._memory(memory, hit.entry.entry)
                    if hit.entry is not None
                    else self._passage(memory, hit.citation or hit.path, hit.snippet, hit.date)
                )
                found.append({**shown, "score": round(hit.score, 6)})
        best = sorted((one for one in found if admits(filters, one)), key=lambda one: -float(one["score"]))
        return {"results": best[:limit]}

    def get_all(self, asked: Asked) -> Result:
        """Return one page of the statements that pass a filter, newest first."""
        filters, number = asked.filters, asked.number("page", 1)
        size = asked.number("page_size", 100)
        found = [
            shown
            for memory in self._named(filters)
            for entry in memory.entries.list()
            if admits(filters, shown := self._memory(memory, entry))
        ]
        start = (number - 1) * size
        following = str(number + 1) if start + size < len(found) else None
        before = str(number - 1) if number > 1 else None
        page = found[start : start + size]
        return {"count": len(found), "next": following, "previous": before, "results": page}

    def get(self, asked: Asked) -> Result:
        """Return one statement, or a passage that a search had found."""
        with self._memory_of(asked) as (memory, place):
            if "#" in place or "/" in place:
                return self._passage(
                    memory, place, memory.read(place, masked=asked.trust != "owner").text, None
                )
            return self._memory(memory, memory.entries.get(place))

    def update(self, asked: Asked) -> Result:
        """Change the text of a statement, or its metadata."""
        text = asked.fields.get("text") or asked.fields.get("data")
        with self._memory_of(asked) as (memory, place):
            entry = memory.entries.get(place)
            if text is not None:
                entry = memory.entries.update(place, text=str(text), actor=asked.trust)
            if (metadata := asked.fields.get("metadata")) is not None:
                spaces.keep_details(memory, place, {**spaces.details(memory, place), "metadata": metadata})
            return self._memory(memory, entry)

    def delete(self, asked: Asked) -> Result:
        """Erase one statement."""
        with self._memory_of(asked) as (memory, place):
            memory.entries.get(place)
            memory.erase(place, trust=asked.trust)
            spaces.keep_details(memory, place, None)
        return {"message": "Memory deleted successfully!"}

    def history(self, asked: Asked) -> list[Result]:
        """Return the changes of a statement, oldest first."""
        with self._memory_of(asked) as (memory, place):
            return [
                {
                    "id": f"{place}-{event.seq}",
                    "memory_id": asked.path["id"],
                    "old_memory": event.before.text if event.before else None,
                    "new_memory": event.after.text if event.after else None,
                    "event": EVENTS.get(event.kind, "UPDATE"),
                    "created_at": iso_time(event.at),
                    "updated_at": iso_time(event.at),
                }
                for event in memory.entries.history(place)
            ]

    def delete_all(self, asked: Asked) -> Result:
        """Erase the statements that pass a filter; those of a whole entity together with its conversations."""
        filters = asked.filters
        if filters and all(wanted == "*" and kind in KINDS for kind, wanted in filters.items()):
            for one in self.entities(asked)["results"]:
                if (kind := f"{one['type']}_id") in filters:
                    self.delete_all(Asked({kind: one["name"]}, {}, asked.trust))
            return {"message": "Memories deleted successfully!"}
        for memory in self._named(filters):
            for entry in memory.entries.list(states=()):
                if admits(filters, self._memory(memory, entry)):
                    memory.erase(Selection(id=entry.id), trust=asked.trust)
                    spaces.keep_details(memory, entry.id, None)
            named = filters.get("run_id")
            whole = set(filters) <= {entity_of(memory.settings.agent)[0]}  # type: ignore[index]
            for session in spaces.sessions(memory):
                if whole or session == named:
                    memory.transcript_writer(session).clear()
            memory.mark_changed()
        return {"message": "Memories deleted successfully!"}

    def entities(self, _: Asked) -> Result:
        """List the entities."""
        results = []
        for agent in self.spaces.agents():
            with self.spaces.use(agent) as memory:
                kind, name = entity_in(memory)
                total = len(memory.entries.list()) if memory.has_entries else 0
            results.append(
                {"id": name, "name": name, "type": kind.removesuffix("_id"), "total_memories": total}
            )
        return {"count": len(results), "next": None, "previous": None, "results": results}

    def delete_entity(self, asked: Asked) -> Result:
        """Erase everything of one entity."""
        kind = f"{asked.path['kind']}_id"
        self.delete_all(Asked({kind: asked.path["id"]}, {}, asked.trust))
        return {"message": "Entity deleted successfully."}

    def batch(self, asked: Asked, do: Callable[[Asked], Result]) -> Result:
        """Change or erase several statements."""
        given = asked.fields.get("memories")
        if not isinstance(given, list) or not all(
            isinstance(one, Mapping) and "memory_id" in one for one in given
        ):
            raise BadArgument("`memories` must be a list of objects with `memory_id`.", "memories")
        for one in given:
            do(Asked(one, {"id": str(one["memory_id"])}, asked.trust))
        return {"message": f"{len(given)} memories changed successfully!"}

    # ---- memories ---------------------------------------------------------------------------------------------

    def _named(self, filters: Mapping[str, Any]) -> Iterator[Memory]:
        entities = named_entities(filters)
        if not entities:
            raise BadArgument(f"`filters` must name an entity by {', '.join(KINDS)}.", "filters")
        for entity in entities:
            name = agent_name(entity)
            if self.spaces.exists(name):
                with self.spaces.use(name) as memory:
                    yield memory

    @contextmanager
    def _memory_of(self, asked: Asked) -> Iterator[tuple[Memory, str]]:
        agent, place = split_id(asked.path["id"])
        if not self.spaces.exists(agent):
            raise NotFound(f"Memory {asked.path['id'][:100]!r} not found.")
        with self.spaces.use(agent) as memory:
            yield memory, place

    @staticmethod
    def _memory(memory: Memory, entry: Entry) -> Result:
        kept = spaces.details(memory, entry.id)
        kind, name = entity_in(memory)
        ids = {one: kept.get(one) for one in KINDS}
        return {
            "id": f"{memory.settings.agent}:{entry.id}",
            "memory": entry.text,
            **ids,
            kind: name,
            "metadata": kept.get("metadata") or {},
            "categories": [entry.category or entry.type],
            "created_at": iso_time(entry.created_at),
            "updated_at": iso_time(entry.updated_at),
        }

    @staticmethod
    def _passage(memory: Memory, citation: str, text: str, day: str | None) -> Result:
        kind, name = entity_in(memory)
        run = next(
            (one for one in spaces.sessions(memory) if memory.transcript_writer(one).path.name in citation),
            None,
        )
        ids = {**dict.fromkeys(KINDS), "run_id": run if run != SESSION else None, kind: name}
        shown = f"{memory.settings.agent}:{citation}"
        return {"id": shown, "memory": text, **ids, "metadata": {}, "created_at": day, "updated_at": day}


def _owner(fields: Mapping[str, Any]) -> Entity:
    for kind in KINDS:
        if fields.get(kind):
            return kind, str(fields[kind])
    raise BadArgument(f"Name an entity by {', '.join(KINDS)}.", "user_id")


def _drafts(messages: list[Mapping[str, Any]], session: str, trust: Trust) -> Iterator[Draft]:
    for message in messages:
        content = message.get("content")
        text = (
            content
            if isinstance(content, str)
            else " ".join(str(part.get("text", "")) for part in content or () if isinstance(part, Mapping))
        )
        speaker: Trust = trust if message.get("role", "user") == "user" else "agent"
        yield Draft(text, trust=speaker, session=session, source="mem0")


# ---- routes -----------------------------------------------------------------------------------------------------


class Mem0Mount(Mount):
    """The ASGI application below `/mem0`."""

    has_paths = True

    def __init__(self, gateway: Gateway) -> None:
        self._api = Mem0Api(Spaces(gateway.load))
        self._router = Router(_routes(gateway, self._api), redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._router(scope, receive, send)

    async def close(self) -> None:
        """Close the memories."""
        await asyncio.to_thread(self._api.spaces.close)


def _routes(gateway: Gateway, api: Mem0Api) -> list[Route]:
    """Return the routes. Each answers with and without the slash at its end, as clients differ."""
    table: list[tuple[str, str, Access, Callable[[Asked], Any]]] = [
        ("GET", "/v1/ping", "read", api.ping),
        ("GET", "/v1/event/{id}", "read", api.event),
        ("GET", "/v1/entities", "read", api.entities),
        ("DELETE", "/v2/entities/{kind}/{id:path}", "write", api.delete_entity),
        *(("POST", f"/{version}/memories/search", "read", api.search) for version in ("v1", "v2", "v3")),
        ("POST", "/v3/memories/add", "write", api.add),
        ("POST", "/v1/memories", "write", api.add),
        *(("POST", f"/{version}/memories", "read", api.get_all) for version in ("v2", "v3")),
        ("GET", "/v1/memories", "read", api.get_all),
        ("PUT", "/v1/batch", "write", lambda asked: api.batch(asked, api.update)),
        ("DELETE", "/v1/batch", "write", lambda asked: api.batch(asked, api.delete)),
        ("DELETE", "/v1/memories", "write", api.delete_all),
        ("GET", "/v1/memories/{id:path}/history", "read", api.history),
        ("GET", "/v1/memories/{id:path}", "read", api.get),
        ("PUT", "/v1/memories/{id:path}", "write", api.update),
        ("DELETE", "/v1/memories/{id:path}", "write", api.delete),
    ]
    return [
        Route(f"{path}{end}", _endpoint(gateway, access, answer), methods=[method])
        for method, path, access, answer in table
        for end in ("/", "")
    ]


def _endpoint(
    gateway: Gateway, access: Access, answer: Callable[[Asked], Any]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        caller = request.state.record.caller
        if caller.agents is not None or not grants(caller.access, access):
            return _refusal(403, "This key may not do that. It needs a token of the gateway for all agents.")
        body = parse_arguments(await request.body()) if request.method != "GET" else {}
        fields = {**dict(request.query_params), **body}
        trust: Trust = "owner" if grants(caller.access, "admin") else "agent"
        asked = Asked(fields, request.path_params, trust)
        try:
            return json_response(await gateway.workers.run(lambda: answer(asked)))
        except MemoriterError as error:
            return _refusal(STATUS.get(outcome_of(error), 400), hide_folders(str(error)))

    return endpoint


def _refusal(status: int, message: str) -> Response:
    """Return an error as mem0's clients read it."""
    return json_response({"detail": message, "error": message}, status)
