"""Feed mutated inputs to everything that parses text of others. A parser may refuse an input, but only as documented.

The inputs start from samples and are changed at random: bytes flipped, parts removed, repeated, spliced, and tokens of
the formats inserted. One input may take `MAX_S` of CPU time, so an endless loop is found, too.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from lab.soak.forking import in_fork, load_everything
from lab.soak.part import Part, Round, Task
from lab.soak.writers import Home, McpClient

#: Seconds of one round, and inputs in one process.
DURATION_S, INPUTS = 300.0, 4_000
MAX_S = 20
MAX_BYTES = 20_000
SAMPLES = (
    b'{"type": "user", "timestamp": "2026-02-08T12:00:00Z", "message": {"role": "user", "content": "I like tea"}}',
    b'{"role": "assistant", "content": [{"type": "text", "text": "ok"}, {"type": "tool_use", "name": "Bash"}]}',
    b'{"type": "message", "message": {"role": "toolResult", "content": [{"type": "text", "text": "<a>"}]}}',
    b"---\ntitle: A note\ntags: [a, b]\ndate: 2026-02-08\ntrust: agent\n---\n# Heading\n\n- item\n\n```py\nx\n```\n",
    "上周三数据库备份失败了,2026年2月8日下午3点重试。二〇二六年二月初八".encode(),
    b"last Friday, in 3 days, 2026-02-30, 99/99/9999, Feb 31st, 24:61, the day before yesterday, Q5 2026",
    b"password: hunter2 AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghijABCDEFGHIJ0123 <private>x</private> -----BEGIN",
    b'{"memory": "I prefer tea", "id": "1f0c2a9e", "state": "active", "trust": "owner", "createdAt": 1e308}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_search", "arguments": {}}}',
    b'{"query": "tea", "maxResults": 6, "minScore": 0.1, "path": "memory/a.md", "from": 1, "lines": 9}',
    b'{"session_id": "s", "transcript_path": "/tmp/x.jsonl", "cwd": "/", "hook_event_name": "Stop", "prompt": "?"}',
)
TOKENS = (
    *(
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b"\\ud800",
        b"\\u0000",
        b"null",
        b"-1",
        b"1e999",
        b"NaN",
        b"true",
        b"\n",
        b"\r\n",
    ),
    *(
        b"---\n",
        b"```",
        b"<private>",
        b"</private>",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"../",
    ),
    *(
        "年".encode(),
        "\u202e".encode(),
        "\u200b".encode(),
        "İ".encode(),
        "𝟚".encode(),
        b"<memory-context>",
        b" is ",
    ),
    *(
        b"password",
        b"= ",
        b"Bearer ",
        b"key-",
        b"entry:",
        b"#L1-L9",
        b"a" * 300,
        b"[" * 200,
        b"99999999999999999999",
    ),
)
Target = Callable[[bytes], object]


def mutate(chooser: random.Random) -> bytes:
    """Return a sample with some random changes."""
    data = bytearray(chooser.choice(SAMPLES))
    for _ in range(chooser.choice((1, 2, 4, 8, 16))):
        at, to = sorted((chooser.randrange(len(data) + 1), chooser.randrange(len(data) + 1)))
        match chooser.randrange(6):
            case 0 if data:
                data[chooser.randrange(len(data))] = chooser.randrange(256)
            case 1:
                del data[at : min(to, at + 40)]
            case 2:
                data[at:at] = data[at:to]
            case 3:
                other = chooser.choice(SAMPLES)
                data[at:at] = other[chooser.randrange(len(other)) :]
            case _:
                data[at:at] = chooser.choice(TOKENS)
    return bytes(data[:MAX_BYTES])


# ---- targets --------------------------------------------------------------------------------------------------


def _objects(data: bytes) -> list[dict[str, object]]:
    with suppress(ValueError, RecursionError):
        value = json.loads(data)
        return [value] if isinstance(value, dict) else []
    return [{"role": "user", "content": data.decode("utf-8", "replace")}]


def targets(folder: Path) -> dict[str, Target]:
    """Return every parser, by name. Documented refusals are caught here."""
    from memoriter.entries import exchange
    from memoriter.entries.capture import capture
    from memoriter.errors import BadArgument, MemoriterError
    from memoriter.extensions.hooks.hook_input import HookEvent
    from memoriter.extensions.hooks.host import HookHost
    from memoriter.notes.chunking import chunk_markdown
    from memoriter.records import Document
    from memoriter.search import when
    from memoriter.sessions.messages import DamagedLine, parse, turns_of_messages
    from memoriter.sessions.tail import read_new_turns
    from memoriter.text import dates, encoding, markdown, redaction, snippet, tokens

    transcript = folder / "session.jsonl"

    def text(data: bytes) -> str:
        with suppress(MemoriterError):  # a file that is not text
            return encoding.decode(data).text
        return data.decode("utf-8", "replace")

    def line(data: bytes) -> None:
        with suppress(DamagedLine):
            parse(data)

    def file(data: bytes) -> None:
        transcript.write_bytes(data + b"\n" + data)
        with suppress(MemoriterError):
            read_new_turns(transcript)

    def note(data: bytes) -> None:
        lines = text(data).split("\n")
        markdown.read_front_matter(lines)
        chunk_markdown(Document("memory/a.md", "memory", text(data), "0" * 64, 0, len(data)))

    def times(data: bytes) -> None:
        list(dates.find_dates(text(data)))
        when.named_days(text(data), date(2026, 2, 8))
        when.add_dates(text(data), date(2026, 2, 8))

    def secrets(data: bytes) -> None:
        clean = redaction.redact(text(data))
        redaction.redact(clean)
        redaction.without_private(text(data))

    def words(data: bytes) -> None:
        tokens.tokenize(text(data))
        snippet(text(data), tokens.query_terms(text(data))[:5], 200)

    def import_(data: bytes) -> None:
        with suppress(MemoriterError):
            list(exchange.read(text(data), at=0.0))

    def hook(data: bytes) -> None:
        with suppress(ValueError):
            HookEvent.read(data, "Stop", HookHost())

    def turns(data: bytes) -> None:
        with suppress(BadArgument):  # objects that are not messages
            capture(turns_of_messages(_objects(data)))

    return {
        "transcript line": line,
        "transcript file": file,
        "note": note,
        "dates": times,
        "redaction": secrets,
        "words": words,
        "import": import_,
        "hook event": hook,
        "capture": turns,
        "tool arguments": _tools(folder),
    }


def _tools(folder: Path) -> Target:
    """Return a target that calls every tool with the input as arguments."""
    from memoriter.tools.table import OPERATIONS
    from memoriter.tools.toolbox import Toolbox

    memory = Home(folder).create().open()
    toolbox = Toolbox(memory, tools=OPERATIONS, access="write")
    names = [name for name, tool in OPERATIONS.items() if tool.access != "admin"]

    def call(data: bytes) -> None:
        given = data.decode("utf-8", "replace")
        outcome, result = toolbox.outcome(names[len(data) % len(names)], given)
        if outcome == "broken" or result.get("code") == "internal_error":
            raise RuntimeError(f"{names[len(data) % len(names)]}: {result}")

    return call


def careless(_: Path) -> dict[str, Target]:
    """Return a parser that expects valid input: the control."""
    return {"careless": lambda data: json.loads(data)["message"]["content"]}


# ---- rounds ---------------------------------------------------------------------------------------------------


def feed(make: Callable[[Path], dict[str, Target]], folder: str, seed: int, inputs: int) -> list[Any]:
    """Feed inputs to every target; return their number and the crashes."""
    signal.signal(signal.SIGPROF, _too_slow)
    chooser, crashes, known = random.Random(seed), list[str](), make(Path(folder))
    for number in range(inputs):
        data = mutate(chooser)
        name = chooser.choice(list(known))
        signal.setitimer(signal.ITIMER_PROF, MAX_S)
        try:
            known[name](data)
        except Exception as error:  # noqa: BLE001  this is what the part looks for
            crashes.append(f"{name} (seed {seed}, input {number}): {type(error).__name__}: {error}: {data!r}")
        signal.setitimer(signal.ITIMER_PROF, 0)
    return [inputs, crashes]


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"an input took more than {MAX_S} s of CPU time")


def frames(home: Home, seed: int, number: int) -> list[Any]:
    """Send mutated lines to an MCP server, and check after each ten that it still answers."""
    chooser = random.Random(seed)
    with McpClient(home) as client:
        for sent in range(number):
            line = mutate(chooser).replace(b"\n", b" ").replace(b"\r", b" ")
            client.send_line(line)
            if sent % 10 == 9:
                client.call("ping")
    return [number, []]


def run(task: Task) -> Round:
    """Feed inputs for some minutes."""
    load_everything()
    done, until = Round(), time.monotonic() + (5.0 if task.short else DURATION_S)
    while time.monotonic() < until or not done.counts:
        inputs = 1_500 if task.short else INPUTS
        seed = task.random.randrange(1 << 31)
        fed, crashes = in_fork(feed, targets, str(task.folder), seed, inputs, timeout_s=1200)
        done.count("inputs", fed)
        for crash in crashes:
            done.fail(crash)
        try:
            sent, _ = in_fork(frames, Home(task.folder).create(), seed, 100, timeout_s=300)
            done.count("MCP frames", sent)
        except Exception as error:  # noqa: BLE001  a server that does not answer
            done.fail(f"MCP frames (seed {seed}): {error}")
    return done


def control(task: Task) -> Round:
    """Feed a parser that expects valid input."""
    fed, crashes = in_fork(feed, careless, str(task.folder), 1, 200)
    return Round({"inputs": fed}, crashes)


PART = Part(
    "fuzzing",
    "Mutated transcripts, notes, dates, secrets, imports, hook events, tool arguments and MCP frames",
    {"seconds": 3600},
    run,
    control,
    "a parser that expects valid input",
)
