"""Operations on the notes and transcripts themselves: which there are, their text, and how they were cut."""

from __future__ import annotations

from dataclasses import asdict

from memoriter.tools import results
from memoriter.tools.tool import Call, Param, Result, Tool, camel

MOST_FILES = 5_000
MOST_CHUNKS = 2_000
LINES = 400  #: read unless another number is asked for
MOST_CHARS = 200_000  #: and never more than this at once

_PATH = Param("path", "string", "The file, as `notes.tree` or a hit names it.", required=True, longest=4_096)


def _tree(call: Call) -> Result:
    files, total = call.memory.notes.tree(MOST_FILES)
    names = ("path", "source", "size", "mtime", "chunks", "trust")
    shown = [{name: getattr(one, name) for name in names} for one in files]
    return {"files": shown, "total": total, "truncated": total > len(files)}


def _get(call: Call) -> Result:
    start = call["from"] or 1
    excerpt = call.memory.read(call["path"], start, call["lines"] or LINES)
    file = None if excerpt.path.startswith("entries/") else call.memory.notes.file(excerpt.path)
    shown, used = list[str](), 0
    for line in excerpt.text.split("\n") if excerpt.end_line >= start else ():
        used += len(line) + 1
        if used > MOST_CHARS and shown:
            break
        shown.append(line[:MOST_CHARS])
    following = start + len(shown)
    return {
        "path": excerpt.path,
        "text": "\n".join(shown),
        "from": start,
        "totalLines": excerpt.total_lines,
        "nextFrom": following if shown and following <= excerpt.total_lines else None,
        "source": file.source if file else "entries",
        "mtime": file.mtime if file else None,
        "trust": file.trust if file else call.memory.trust_of(excerpt.path),
    }


def _chunks(call: Call) -> Result:
    found = call.memory.notes.chunks(call["path"])
    shown = [{**camel(asdict(one)), "headings": list(one.headings)} for one in found[:MOST_CHUNKS]]
    return {"chunks": shown, "total": len(found), "truncated": len(found) > len(shown)}


NOTES = (
    Tool(
        "notes.tree",
        f"The files that are memories: notes first, then transcripts, by path; at most {MOST_FILES}.",
        (),
        _tree,
        {},
        empty={"files": [], "total": 0, "truncated": False},
        returns={
            "files": results.many(
                results.shape(
                    path=results.TEXT,
                    source=results.SOURCE,
                    size=results.COUNT,
                    mtime=results.NUMBER,
                    chunks=results.COUNT,
                    trust=results.TRUST,
                )
            ),
            "total": results.COUNT,
            "truncated": results.BOOLEAN,
        },
    ),
    Tool(
        "notes.get",
        "Some lines of one note or transcript.",
        (
            _PATH,
            Param("from", "integer", "The first line, counted from 1.", minimum=1, maximum=1_000_000_000),
            Param("lines", "integer", f"How many lines; {LINES} if not given.", minimum=1, maximum=5_000),
        ),
        _get,
        {},
        empty={
            "path": "",
            "text": "",
            "from": 1,
            "totalLines": 0,
            "nextFrom": None,
            "source": "memory",
            "mtime": None,
            "trust": None,
        },
        returns={
            "path": results.TEXT,
            "text": results.TEXT,
            "from": results.COUNT,
            "totalLines": results.COUNT,
            "nextFrom": results.MAYBE_COUNT,
            "source": results.SOURCE,
            "mtime": results.MAYBE_NUMBER,
            "trust": results.maybe(results.TRUST),
        },
    ),
    Tool(
        "notes.chunks",
        "How one note or transcript was cut into the pieces that are found, without their text.",
        (_PATH,),
        _chunks,
        {},
        empty={"chunks": [], "total": 0, "truncated": False},
        returns={
            "chunks": results.many(
                results.shape(
                    id=results.TEXT,
                    startLine=results.COUNT,
                    endLine=results.COUNT,
                    headings=results.many(results.TEXT),
                    date=results.MAYBE_TEXT,
                    trust=results.TRUST,
                    tokens=results.COUNT,
                    embedded=results.BOOLEAN,
                )
            ),
            "total": results.COUNT,
            "truncated": results.BOOLEAN,
        },
    ),
)
