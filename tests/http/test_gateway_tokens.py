"""Tokens, links and browser sessions, and their files."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import httpx
import pytest
from gateways import Running, ask
from typer.testing import CliRunner

from memoriter.cli.app import app
from memoriter.errors import MemoriterError, NotFound
from memoriter.files import platform
from memoriter.server.http.auth import (
    BROWSER_SESSION_S,
    MAX_BROWSER_SESSIONS,
    TICKET_LIFETIME_S,
    BrowserSessions,
    Tickets,
    Tokens,
)


def test_the_first_token_is_an_admin_token_and_is_shown_once(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    secret = tokens.create_first()
    assert secret is not None
    assert tokens.create_first() is None
    caller = tokens.caller(secret)
    assert caller is not None
    assert (caller.access, caller.agents) == ("admin", None)


def test_the_token_file_contains_only_digests_and_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        tokens = Tokens(tmp_path / "home")
        _, secret = tokens.create("write", agents=("work",), name="laptop")
        Tickets(tmp_path / "home").issue()
    finally:
        os.umask(before)
    assert secret not in tokens.file.read_text()
    if sys.platform == "win32":
        assert platform.is_private(tokens.file.parent)
        return
    modes = {
        path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.rglob("*")
    }
    assert {mode for path, mode in modes.items() if (tmp_path / path).is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if (tmp_path / path).is_file()} == {0o600}


def test_a_revoked_token_is_rejected_at_the_next_call(gateway: Running) -> None:
    tokens = Tokens(gateway.gateway.tokens.file.parent.parent)  # like another process
    token, secret = tokens.create("read")
    caller = gateway.client(secret)
    assert ask(caller, "memory.stats")["disabled"] is False
    tokens.revoke(token.id)
    assert caller.post("/v1/agents/main/memory.stats").status_code == 401
    with pytest.raises(NotFound):
        tokens.revoke(token.id)


def test_a_caller_may_act_with_less_access_but_never_with_more(gateway: Running) -> None:
    def store(client: httpx.Client, access: str, text: str) -> httpx.Response:
        headers = {"X-Memoriter-Access": access}
        return client.post("/v1/agents/main/memory_store", json={"text": text}, headers=headers)

    with gateway.caller("admin") as owner, gateway.caller("write") as agent:
        refused = store(owner, "read", "Ada likes tea.").json()
        message = "memory_store requires write access. This caller has read access."
        assert (refused["code"], refused["error"]) == ("forbidden", message)
        assert store(owner, "root", "Ada likes tea.").status_code == 400
        assert store(owner, "write", "The server is called kestrel.").status_code == 200
        assert store(agent, "admin", "The printer is called heron.").status_code == 200
        entries = owner.post("/v1/agents/main/entries.list", json={}).json()["entries"]
        assert {entry["trust"] for entry in entries} == {"agent"}


def test_the_lowered_access_holds_for_mounts_and_lists(gateway: Running) -> None:
    body = {"messages": [{"role": "user", "content": "Ada likes tea."}], "user_id": "ada", "infer": False}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "memory_store", "arguments": {"text": "Ada likes rum."}},
    }
    accept = {"Accept": "application/json, text/event-stream"}
    with gateway.caller("admin") as owner:
        owner.headers["X-Memoriter-Access"] = "read"
        assert owner.post("/mem0/v3/memories/add/", json=body).status_code == 403
        assert "error" in owner.post("/mcp", json=call, headers=accept).text
        assert ask(owner, "entries.list")["entries"] == []
        assert "workspace" not in owner.get("/v1/agents").json()[0]
        owner.headers["X-Memoriter-Access"] = "root"
        for path in ("/mem0/v1/ping/", "/v1/agents", "/mcp"):
            assert owner.request("POST" if path == "/mcp" else "GET", path).status_code == 400


def test_a_broken_token_file_rejects_all_requests(gateway: Running) -> None:
    caller = gateway.caller("admin")
    file = gateway.gateway.tokens.file
    whole = json.loads(file.read_text())
    rows = whole["tokens"]
    for broken in (
        "",
        "{",
        "[]",
        '{"tokens": [{}]}',
        json.dumps({"tokens": [{**rows[0], "access": "root"}]}),
    ):
        file.write_text(broken)
        assert caller.get("/v1/agents").status_code == 401
        with pytest.raises(MemoriterError, match="Cannot read the tokens"):
            gateway.gateway.tokens.create("admin")
    file.write_text(json.dumps(whole))
    assert caller.get("/v1/agents").status_code == 200


def test_listing_a_broken_token_file_is_an_error(tmp_path: Path) -> None:
    file = Tokens(tmp_path).file
    listing = ["--home", str(tmp_path), "--workspace", str(tmp_path), "token", "list"]
    assert CliRunner().invoke(app, listing).exit_code == 0  # the file does not exist yet
    Tokens(tmp_path).create("read")
    file.write_text("{")
    result = CliRunner().invoke(app, listing)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"Cannot read the tokens in {file}" in str(result.exception)


@pytest.mark.posix("modes of files")
def test_a_token_file_that_others_may_write_rejects_requests_and_a_readable_one_is_made_private(
    gateway: Running,
) -> None:
    caller, file = gateway.caller("admin"), gateway.gateway.tokens.file
    file.chmod(0o644)
    assert caller.get("/v1/agents").status_code == 200
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o666)
    assert caller.get("/v1/agents").status_code == 401
    with pytest.raises(MemoriterError, match=r"Other users may write .*tokens\.json"):
        gateway.gateway.tokens.create("admin")
    file.chmod(0o600)
    assert caller.get("/v1/agents").status_code == 200


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not synced there")
def test_a_revocation_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(tmp_path)
    token, _ = tokens.create("read")
    synced: list[tuple[bool, bool]] = []
    really = os.fsync

    def fsync(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append((folder, token.id in tokens.file.read_text()))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    tokens.revoke(token.id)
    assert synced == [
        (False, True),
        (True, False),
    ]  # the new file before the rename, its folder after it


def test_a_ticket_works_once_and_expires(tmp_path: Path) -> None:
    now = [1000.0]
    tickets = Tickets(tmp_path, clock=lambda: now[0])
    first, second, third = tickets.issue(), tickets.issue(), tickets.issue()
    assert [tickets.use(first), tickets.use(first), tickets.use("../../etc/passwd"), tickets.use("")] == [
        True,
        False,
        False,
        False,
    ]
    now[0] += TICKET_LIFETIME_S - 1
    assert tickets.use(second)
    now[0] += 2
    assert not tickets.use(third)


def test_browser_sessions_last_twelve_hours_and_their_number_is_limited(tmp_path: Path) -> None:
    now = [1000.0]
    browsers = BrowserSessions(tmp_path, 8377, clock=lambda: now[0])
    cookies = []
    for _ in range(MAX_BROWSER_SESSIONS + 1):
        now[0] += 1
        cookies.append(browsers.sign_in(browsers.tickets.issue()))
    callers = [browsers.caller(cookie or "") for cookie in cookies]
    assert callers[0] is None
    assert all(caller and caller.access == "admin" and browsers.is_valid(caller) for caller in callers[1:])
    assert BROWSER_SESSION_S == 12 * 3600
    restarted = BrowserSessions(tmp_path, 8377, clock=lambda: now[0])
    assert [restarted.caller(cookie or "") for cookie in cookies] == callers
    now[0] += BROWSER_SESSION_S
    assert [browsers.caller(cookie or "") for cookie in cookies] == [None] * len(cookies)


@pytest.mark.requirement("E7")
def test_only_a_link_opens_the_page(gateway: Running) -> None:
    browser = gateway.client()
    closed = browser.get("/")
    assert closed.status_code == 401
    assert "memoriter open" in closed.text
    ticket = gateway.gateway.browsers.tickets.issue()
    opened = browser.get("/open", params={"ticket": ticket})
    # Not a redirect: after a redirect from another site, a browser would not send a strict cookie.
    assert (opened.status_code, opened.headers["cache-control"]) == (200, "no-store")
    assert opened.headers["content-type"] == "text/html; charset=utf-8"
    assert '<meta http-equiv="refresh" content="0; url=/">' in opened.text
    assert '<a href="/">' in opened.text
    assert ticket not in opened.text
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    page = browser.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["cache-control"] == "no-store"
    again = gateway.client().get("/open", params={"ticket": ticket})
    assert (again.status_code, again.json()) == (
        403,
        {
            "error": "This link has expired or was already used. Run `memoriter open` for a new one.",
            "code": "link_expired",
        },
    )


def test_checking_a_link_does_not_use_it_up(gateway: Running) -> None:
    link = {"ticket": gateway.gateway.browsers.tickets.issue()}
    checked = gateway.client().head("/open", params=link)
    assert (checked.status_code, checked.headers["allow"]) == (405, "GET")
    assert gateway.client().get("/open", params=link).status_code == 200


def test_a_cookie_can_only_change_data_from_the_gateways_page(gateway: Running) -> None:
    page = gateway.page()
    assert ask(page, "memory.stats")["disabled"] is False
    del page.headers["Origin"]
    refused = page.post("/v1/agents/main/memory.stats")
    assert (refused.status_code, refused.json()) == (
        403,
        {
            "error": "Requests authenticated by cookie must send an Origin header.",
            "code": "origin_required",
        },
    )
    assert page.get("/v1/agents").status_code == 200
    assert page.get("/v1/agents", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_malformed_cookies_of_other_programs_do_not_hide_the_gateways_cookie(gateway: Running) -> None:
    name = gateway.gateway.browsers.cookie
    value = gateway.page().cookies[name]
    for shown in (
        f'prefs={{"x":1}}; {name}={value}',
        f"{name}={value}; a b c=[1,2]; =; lone",
        f'one="open; {name}={value}',
        f"x{name}=other;{name}={value};  {name}=later",
    ):
        answer = gateway.client().get("/v1/agents", headers={"Cookie": shown})
        assert answer.status_code == 200, shown
    for shown in (f"{name}=", f"x{name}={value}", f"{name} ={value}", f"{name}=other; {name}={value}", ";;"):
        assert gateway.client().get("/v1/agents", headers={"Cookie": shown}).status_code == 401, shown


def test_files_of_the_page_have_media_types_and_etags(gateway: Running) -> None:
    page = gateway.page()
    script = page.get("/static/app.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    known = page.get("/static/app.js", headers={"If-None-Match": script.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")
    assert page.head("/static/app.js").content == b""
    for path in (
        "/static/../index.html",
        "/static/%2e%2e/%2e%2e/tools.py",
        "/static//etc/passwd",
        "/static/",
    ):
        answer = page.send(
            httpx.Request("GET", gateway.address + path, headers=page.headers, cookies=page.cookies)
        )
        assert answer.status_code == 404, path


def test_creating_a_token_for_an_unknown_agent_prints_a_warning(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"gateway:\n  agents:\n    work: {tmp_path}\n")
    wanted = ["--home", str(tmp_path), "--workspace", str(tmp_path), "token", "create", "--agent", "work"]
    known = CliRunner().invoke(app, [*wanted, "--agent", "main"])
    assert (known.exit_code, "Warning" in known.stderr) == (0, False)
    typo = CliRunner().invoke(app, [*wanted, "--agent", "wrok"])
    assert (typo.exit_code, typo.stdout.startswith("mmr_")) == (0, True)
    assert "the settings have no agent 'wrok' yet" in typo.stderr
