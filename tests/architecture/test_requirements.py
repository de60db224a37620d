"""Every requirement is shown by a test: `pytest -m requirement` runs these tests.

A test names the requirements that it shows: `@pytest.mark.requirement("A5")`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

REQUIREMENTS = {
    # Engines and tools
    "A1": "the backend and the settings of qmd, under OpenClaw's names",
    "A2": "engines are cached; a failed creation gives the builtin engine or an error, never an exception",
    "A3": "the primary engine until it fails, then builtin; a cooldown, then the primary again",
    "A4": "engines search, read, sync, report their status and probe",
    "A5": "memory_search: scope, pending changes, search, citations, limit of characters",
    "A6": "memory_get reads some lines, not the whole file",
    "A7": "citations on, off or by the kind of chat",
    "A8": "engines are warmed up at the start, and a failure is reported",
    "A9": "embedding in batches with a cache and bounded retries",
    "A10": "memory enters a prompt by tools and by injection",
    "A11": "the eight questions about engines and tools",
    # Notes and conversations
    "B1": "notes, extra paths and transcripts are sources, and hits name theirs",
    "B2": "the tables of the index",
    "B3": "chunks of whole lines with overlap; Chinese has its own weight",
    "B4": "embedders by name or by key, with a fallback",
    "B5": "vectors are cleaned and normalised; a zero vector is never a hit",
    "B6": "keywords and vectors in one score, with weights and a threshold",
    "B7": "a sync reads what changed and purges what was removed",
    "B8": "what triggers a sync",
    "B9": "exactly one plugin fills the slot `memory`",
    "B10": "an entry has a category and an importance",
    "B11": "memory_recall, memory_store and memory_forget",
    "B12": "memories are recalled before the agent starts",
    "B13": "statements are captured by rules after the agent ends",
    "B14": "the system prompt says when to search",
    # Data flow
    "C1": "the watcher indexes what a person edits",
    "C2": "a session becomes a dated note",
    "C3": "a flush before compaction",
    "C4": "batch jobs of three providers",
    "C5": "paths outside the workspace are refused",
    "C6": "settings are checked and resolved once",
    "C7": "status, index and search on the command line",
    "C8": "every operation can be called by name",
    "C9": "tools as functions and schemas at run time",
    "C10": "one logger for the package",
    "C11": "four embedding requests at a time; the first error stops the others",
    "C12": "time limits of programs, embedders and jobs",
    "C13": "settings under the names of other programs",
    # Entries
    "D1": "the fields of an entry",
    "D2": "extraction by a language model, with gates and tolerant parsing",
    "D3": "a refinement is merged, and the history is kept",
    "D4": "entries expire by type unless they matter most",
    "D5": "add, search, change, export, import all or nothing; vectors in LanceDB",
    "D6": "similarity and importance make the score of an entry",
    "D7": "retrieval by meaning, by keyword or by both",
    "D8": "injection as a first system message, within a budget",
    "D9": "the tool memory and its actions",
    "D10": "settings of extraction, retrieval and cleanup",
    "D11": "commands with tables of types and stars",
    "D12": "lists name the conversation of an entry",
    "D13": "importance decides how long an entry without a type lives",
    "D14": "vector engines behind one interface",
    "D15": "settings of the storage, filters of exports",
    # Service and files
    "E1": "the service: start, search, inject, flush, save, stop",
    "E1b": "search and saving can be switched off",
    "E2": "the watcher waits for a quiet moment and ignores hidden files",
    "E3": "memory_save, memory_search and memory_stats",
    "E4": "core facts, daily logs and notes by category",
    "E5": "sync, reindex, stats and search on the command line",
    "E6": "folders and servers from environment variables",
    "E7": "an agent has a flush, tools and a page",
    # Beyond
    "X1": "Chinese, Japanese and Korean keywords",
    "X2": "no threshold and no age hides an exact hit",
    "X3": "works offline and without a key",
    "X4": "answers say what is missing, and the primary is retried",
    "X5": "hits and injections can be explained",
    "X6": "untrusted text is found but never injected",
    "X7": "statements supersede others, with history and undo",
    "X8": "erasure leaves no byte",
    "X9": "MCP, HTTP, Claude Code, OpenClaw and the frameworks",
    "X10": "machines share a memory on Postgres",
    "X11": "secrets are redacted",
    "X12": "imports from other programs",
    "X13": "plugins for OpenClaw and Claude Code",
    "X14": "any folder of Markdown; several workspaces in one home",
    "X15": "nothing is injected when nothing relevant is known",
    "X16": "text from outside never gains trust",
    "X17": "a change of mind replaces the old statement",
    "X22": "a package adds parts and settings by an entry point",
}


def marked() -> Iterator[str]:
    """Yield the ids that tests name."""
    for folder in (ROOT / "tests", ROOT / "lab/tests"):
        for file in folder.rglob("test_*.py"):
            text = file.read_text("utf-8")
            if "mark.requirement" in text:
                for node in ast.walk(ast.parse(text)):
                    if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                        yield from (ast.literal_eval(argument) for argument in node.args)


def test_every_requirement_is_shown_by_a_test() -> None:
    assert set(marked()) == set(REQUIREMENTS)
