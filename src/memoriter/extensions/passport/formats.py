"""The formats of an export. Each is readable by its own programs, and carries the whole line of our own format.

So an export that comes back loses nothing: ids, times, trust and history. A concept of another program becomes a note,
because it is a document. `digest` compares two memories by what they
contain, without the numbers that each database assigns.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from memoriter.extensions.importing import Source, iso_time, report_of
from memoriter.extensions.importing.writing import copy_notes
from memoriter.hosts import ImportReport
from memoriter.memory import Memory
from memoriter.records import Imported

#: The member of another format that holds our own line.
OURS = "memoriter"
TITLE_CHARS = 80
_COMMENT = re.compile(r"^<!-- memoriter (\{.*\}) -->$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
#: Members of our lines that a database assigns.
_NUMBERS = ("seq", "change")


def entries_of(lines: Iterable[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each entry of an export in our own format, with its line."""
    for line in lines:
        record = json.loads(line)
        if "entry" in record:
            yield record["entry"], line


def digest(lines: Iterable[str]) -> str:
    """Return a digest of the entries and their history, whatever their order."""
    known = sorted(
        json.dumps(_without_numbers(json.loads(line)), sort_keys=True) for _, line in entries_of(lines)
    )
    return hashlib.sha256("\n".join(known).encode()).hexdigest()


def _without_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_numbers(one) for name, one in value.items() if name not in _NUMBERS}
    return [_without_numbers(one) for one in value] if isinstance(value, list) else value


# ---- mem0 -------------------------------------------------------------------------------------------------------


def to_mem0(lines: Iterable[str]) -> str:
    """Return the entries as mem0 exports its memories."""
    return json.dumps({"results": list(map(_mem0, entries_of(lines)))}, ensure_ascii=False, indent=1)


def _mem0(found: tuple[Mapping[str, Any], str]) -> dict[str, Any]:
    entry, line = found
    return {
        "id": entry["id"],
        "memory": entry["text"],
        "hash": hashlib.md5(entry["text"].encode(), usedforsecurity=False).hexdigest(),
        "categories": [entry["category"] or entry["type"]],
        "metadata": {"importance": entry["importance"], "tags": list(entry["tags"]), OURS: line},
        "created_at": iso_time(entry["created_at"]),
        "updated_at": iso_time(entry["updated_at"]),
    }


def lines_of_mem0(records: Any) -> list[str]:
    """Return our own lines in an export of mem0, or nothing if a memory has none."""
    memories = records.get("results", []) if isinstance(records, Mapping) else records
    found = [
        memory["metadata"].get(OURS) if isinstance(memory.get("metadata"), Mapping) else None
        for memory in (memories if isinstance(memories, list) else [])
        if isinstance(memory, Mapping)
    ]
    return [line for line in found if isinstance(line, str)] if all(found) else []


# ---- Markdown ---------------------------------------------------------------------------------------------------


def to_markdown(lines: Iterable[str]) -> str:
    """Return the entries as one page for people, by type. A comment after each is for the way back."""
    types = dict[str, list[str]]()
    for entry, line in entries_of(lines):
        day = iso_time(entry["created_at"])[:10]
        text = " ".join(entry["text"].split())
        shown = f"- {text} ({day})\n<!-- {OURS} {_safe(line)} -->"
        types.setdefault(entry["type"], []).append(shown)
    parts = [
        f"## {name.replace('_', ' ').capitalize()}\n\n" + "\n".join(found) for name, found in types.items()
    ]
    return "# Memories\n\n" + "\n\n".join(parts) + "\n"


def lines_of_markdown(text: str) -> list[str]:
    """Return our own lines in a page of Markdown."""
    return _COMMENT.findall(text)


def _safe(line: str) -> str:
    """Return JSON that cannot end a comment."""
    return line.replace("--", "-\\u002d")


# ---- Open Knowledge Format --------------------------------------------------------------------------------------


def to_okf(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of a bundle: one concept for each entry, and an index for each folder."""
    folders = dict[str, list[str]]()
    for entry, line in entries_of(lines):
        title = " ".join(entry["text"].split())[:TITLE_CHARS]
        head = {
            "type": entry["type"],
            "title": title,
            "description": title,
            "tags": list(entry["tags"]),
            "timestamp": iso_time(entry["updated_at"]),
            "status": entry["state"],
            "trust": entry["trust"],
            OURS: line,
        }
        if entry["expires_at"]:
            head["stale_after"] = iso_time(entry["expires_at"])[:10]
        front = yaml.safe_dump(head, allow_unicode=True, sort_keys=False, width=2**31)
        yield f"{entry['type']}/{entry['id']}.md", f"---\n{front}---\n\n{entry['text']}\n"
        folders.setdefault(entry["type"], []).append(f"* [{_link(title)}]({entry['id']}.md)")
    for name, links in folders.items():
        yield f"{name}/index.md", f"# {name}\n\n" + "\n".join(links) + "\n"
    links = [f"* [{name}]({name}/index.md)" for name in folders]
    yield "index.md", "# Memories\n\n" + "\n".join(links) + "\n"


def concept(text: str) -> tuple[Mapping[str, Any], str] | None:
    """Return the front matter and the body of a concept, or None for any other file."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return None
    try:
        head = yaml.safe_load(found[1])
    except yaml.YAMLError:
        return None
    return (head, text[found.end() :].strip()) if isinstance(head, Mapping) and head.get("type") else None


def _link(title: str) -> str:
    return re.sub(r"([\[\]])", r"\\\1", title)


# ---- import -----------------------------------------------------------------------------------------------------

#: Files of a bundle that are not concepts.
RESERVED = ("index.md", "log.md")


class OkfImporter:
    """Imports bundles and pages."""

    program = "okf"

    def recognises(self, source: Source) -> bool:
        """Return whether each Markdown file of a folder is a concept, or a file is a page with our comments."""
        if source.is_folder:
            found = [text for file, text in source.notes.items() if file.name not in RESERVED]
            return bool(found) and all(map(concept, found))
        return any(lines_of_markdown(text) for text in source.texts)

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import entries of ours, and copy other concepts as notes."""
        lines, others = list[str](), list[Path]()
        for file, text in source.notes.items():
            found = concept(text)
            if found and isinstance(line := found[0].get(OURS), str):
                lines.append(line)
            elif found:
                others.append(file)
        steps = copy_notes(memory, self.program, source, others, written_by_model=False, dry_run=dry_run)
        if not source.is_folder:
            lines = [line for text in source.texts for line in lines_of_markdown(text)]
        entries = memory.entries.import_("\n".join(lines), dry_run=dry_run) if lines else Imported(0, 0)
        return report_of(memory, self.program, source, steps, entries, dry_run=dry_run)


OKF = OkfImporter()
