"""Two gateway processes on one Postgres server: what is written through one is read through the other."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from gateways import TIMEOUT_S, ask, listening
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from memoriter import Memory
from memoriter.extensions.langgraph.items import Put, items_of

if TYPE_CHECKING:
    from postgres_cluster import PostgresCluster

pytestmark = pytest.mark.integration

QUICK = {"MEMORITER_EMBEDDING__PROVIDER": "none", "MEMORITER_WATCH__DEBOUNCE_S": "0.1"}


@contextmanager
def serving(home: Path, url: str, tenant: str) -> Iterator[dict[str, Any]]:
    """Run `memoriter serve` until the end of the block. Yield what it prints."""
    home.mkdir(parents=True)
    arguments = [sys.executable, "-m", "memoriter", "--home", str(home), "--store", url, "serve", "--json"]
    with (home / "log").open("w+") as log:
        process = subprocess.Popen(
            [*arguments, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **QUICK, "MEMORITER_STORE__TENANT": tenant},
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (home / "log").read_text()
            yield json.loads(line)
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_S) == 0, (home / "log").read_text()
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def client_of(address: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT_S)


async def call_tool(address: str, token: str, name: str, arguments: dict[str, Any]) -> Any:
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
    ):
        return (await client.call_tool(name, arguments)).structured_content


def test_each_gateway_reads_what_the_other_wrote(postgres: PostgresCluster, tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(serving(tmp_path / "one", postgres.url, "gateways"))
        second = stack.enter_context(serving(tmp_path / "two", postgres.url, "gateways"))
        assert "token" not in second  # the first gateway created it for both
        token = first["token"]
        one = stack.enter_context(client_of(first["address"], token))
        two = stack.enter_context(client_of(second["address"], token))
        events = stack.enter_context(listening(two))
        events.until("hello")

        note = ask(one, "memory_save", content="The zebra crossing is repainted in May.")
        assert "zebra crossing" in ask(two, "memory_get", path=note["path"])["text"]
        assert ask(two, "memory_search", query="zebra crossing")["results"][0]["path"] == note["path"]
        assert events.until("sync")

        message = {"role": "user", "content": "I prefer oolong over every other tea."}
        ask(two, "capture", messages=[message], session="tea", record=True)
        listed = ask(one, "entries.list")["entries"]
        assert [entry["text"] for entry in listed] == ["I prefer oolong over every other tea."]
        transcript = [file["path"] for file in ask(one, "notes.tree")["files"] if "sessions/" in file["path"]]
        assert "oolong" in ask(one, "memory_get", path=transcript[0])["text"]
        ask(one, "memory_store", text="The boiler is serviced in October.")
        while not any("boiler" in entry["text"] for entry in ask(two, "entries.list")["entries"]):
            assert events.until("entries")

        saved = asyncio.run(
            call_tool(first["address"], token, "memory_save", {"content": "Herons nest in the marsh."})
        )
        found = asyncio.run(call_tool(second["address"], token, "memory_search", {"query": "herons marsh"}))
        assert [saved["path"]] == [hit["path"] for hit in found["results"]][:1]

        # A gateway keeps nothing on its disk that it would miss.
        for copy in (tmp_path / "two" / "stores").glob("*/agents"):
            shutil.rmtree(copy)
        assert "zebra crossing" in ask(two, "memory_get", path=note["path"])["text"]

        revoked = subprocess.run(
            [
                *(sys.executable, "-m", "memoriter", "--home", str(tmp_path / "three")),
                *("--store", postgres.url, "token", "list", "--json"),
            ],
            env={**os.environ, "MEMORITER_STORE__TENANT": "gateways"},
            capture_output=True,
            text=True,
            check=True,
        )
        (known,) = json.loads(revoked.stdout)["tokens"]
        subprocess.run(
            [
                *(sys.executable, "-m", "memoriter", "--home", str(tmp_path / "three")),
                *("--store", postgres.url, "token", "revoke", known["id"]),
            ],
            env={**os.environ, "MEMORITER_STORE__TENANT": "gateways"},
            capture_output=True,
            check=True,
        )
        assert [
            client.post("/v1/agents/main/memory_stats", json={}).status_code for client in (one, two)
        ] == [
            401,
            401,
        ]


def test_items_of_one_machine_are_found_on_another(postgres: PostgresCluster, tmp_path: Path) -> None:
    settings = {"store.url": postgres.url, "store.tenant": "items", "embedding.provider": "none"}
    with (
        Memory.open(home=tmp_path / "one", overrides=settings) as one,
        Memory.open(home=tmp_path / "two", overrides=settings) as two,
    ):
        items_of(one).put([Put(("users", "ada"), "tea", {"kind": "oolong"})])
        found = items_of(two).get(("users", "ada"), "tea")
    assert found is not None
    assert found.value == {"kind": "oolong"}
