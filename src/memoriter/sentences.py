"""Sentences with a code: notes, reasons and errors that the web page shows in the reader's language.

`sentence` makes one. It is an ordinary string, in English, that also carries its code and its arguments. Tools return
both, so a client can translate by code instead of reading English. `pack` and `unpack` store a sentence in a database
without losing the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

SENTENCES: Mapping[str, str] = {
    # Why something was added to a prompt, or left out.
    "recall.fits": "relevant, score {score}",
    "recall.weak": "not relevant enough: confidence {confidence} is below {threshold}",
    "recall.past_plan": "a plan for {days}, which have passed",
    "recall.enough": "enough of this kind was added already",
    "recall.no_room": "no room was left",
    "recall.duplicate": "another line says the same",
    "recall.markup": "contains only markup",
    "recall.untrusted_text": "untrusted text is never added to a prompt automatically",
    "recall.untrusted_memory": "untrusted entries are never added to a prompt automatically",
    # What forgetting erases, and what it cannot reach.
    "note.pending": "The note waits for the owner's approval and does not enter a prompt until then.",
    "forget.entry": "the entry and the versions merged with it",
    "forget.history": "its history",
    "forget.keywords": "keywords",
    "forget.vectors": "vectors, the embedding cache, and older versions of both",
    "forget.logs": "the logs of both databases",
    "forget.ledger": "queries and reasons in the recall ledger",
    "forget.hidden": "search, recall and lists: they no longer show it, and it is not captured again",
    "forget.kept": "the database, for {days} days, so that it can be undone; then it is erased",
    "forget.replaced": "files of a restore, which may contain it: {paths}. Delete them with `{command}`",
    "forget.backups": "backups and exports made before",
    "forget.prompts": "prompts that already contained it, and the transcripts of those sessions",
    "forget.notes": "notes that people or agents wrote in files",
    "forget.busy_logs": "the databases' logs, which another process is reading; they are erased when it ends",
    "forget.dead_rows": "dead rows of the database on the server",
    "forget.busy_rows": "dead rows on the server, which an open transaction may still read; the server "
    "removes them later",
    "forget.server_logs": "the write-ahead log of the server and free space in its files, until it uses them "
    "again",
    "forget.replicas": "replicas that lag behind, archived logs and backups of the server",
    "forget.index_pending": "keywords and vectors in the index: {why}. They are deleted at the next start",
    "forget.remote": "copies that {store} keeps after deletion, in its backups and until it compacts the index",
    "forget.remote_pending": "vectors in {store}, not deleted yet: {why}. They are deleted at the next start",
    "forget.remote_unused": "vectors in {store}, which is no longer the vector engine: delete them there",
    "forget.proposed": "entries of the owner, which only the owner may erase. They are hidden and wait for the owner's "
    "decision (`memoriter staged`): {ids}",
    "forget.owner_logs": "daily logs of the owner that say it, which only the owner may change: {files}",
    "forget.workspaces": "notes of other workspaces, and their indexes: {names}. Forget it there too",
    "forget.unreadable_logs": "daily logs that could not be read or written and may contain it: {files}",
    # What is missing from an answer.
    "search.off": "Search is switched off (search_enabled).",
    "search.keywords_only": "Keyword search only: {why}",
    "search.not_reranked": "Without the reranker: {why}",
    "search.no_reader": "Changes are recognised by exact denials only: {why}",
    "search.no_entries": "Without entries: {why}",
    "search.compared_here": "{why}. {store} was not used: vectors were compared on this machine.",
    "search.nothing": "Nothing relevant found.",
    "search.nothing_relevant": "Nothing relevant found. Nearest lines:",
    "search.unknown": "The memory does not contain {names}.",
    "entries.keywords_only": "Keyword search only for new entries: {why}",
    "items.keywords_only": "Keyword search only for new items: {why}",
    "vectors.background": "{missing} of {total} chunks have no vector yet, so only keywords find them. They are "
    "embedded in the background.",
    "vectors.continue": "{missing} of {total} chunks have no vector yet, so only keywords find them. Each search "
    "embeds some of them, and `memoriter index` embeds all.",
    "vectors.failed": "{missing} of {total} chunks have no vector, so only keywords find them: {why}",
    "entries.missing": "{missing} of {total} entries have no vector yet, so only keywords find them. They are embedded "
    "in the background and by the next searches.",
    "items.missing": "{missing} of {total} items have no vector yet, so only keywords find them. They are embedded in "
    "the background and by the next searches.",
    "index.never": "Nothing is indexed yet. Files that wait for the first search or for `memoriter index`: {waiting}.",
    "index.background": "{waiting} of {total} files are not indexed yet. They are indexed in the background.",
    "index.continue": "{waiting} of {total} files are not indexed yet. The next search continues, and "
    "`memoriter index` indexes all.",
    "index.locked": "Another process is indexing. This answer uses what it has written so far.",
    "index.unwritable": "Files that changed recently are not indexed: {why}",
    # Which embedder answers, and why.
    "embedder.bundled": "the model that comes with memoriter",
    "embedder.folder": "the model in {path}, as configured",
    "embedder.file": "the model {path}, as configured",
    "embedder.chosen": "{name}, as configured",
    "embedder.caller": "passed by the caller",
    "embedder.none": "keyword search only, as configured",
    "embedder.missing": "keyword search only: {why}",
    "embedder.fallback": "the fallback, because {name} is not available: {why}",
    # Findings of `doctor` and `health.get`, and how to fix them.
    "check.settings": "valid; home {home}",
    "check.fix_setting": "Fix the setting, then run this again.",
    "check.switch_on": "Set it to `memory-core` to switch memory on.",
    "check.rebuild": "Run `memoriter index --force`.",
    "check.index": "Run `memoriter index`.",
    "check.rebuilds": "Run `memoriter index`. It rebuilds the index from the files.",
    "check.rebuilt": "Nothing to do: it was built again.",
    "check.indexed": "Files: {files}, chunks: {chunks}",
    "check.stale": "{n} files differ from the index",
    "check.stale.one": "1 file differs from the index",
    "check.no_vectors": "{missing} of {total} chunks have no vector, so only keywords find them",
    "check.items": "items in {n} namespaces",
    "check.items.one": "items in 1 namespace",
    "check.restore": "Restore the file from a backup, or move it away.",
    "check.entries": "{n} entries",
    "check.entries.one": "1 entry",
    "check.restore_entries": "Restore the file from a backup, or move it away and `memoriter import` an export.",
    "clock.ahead": "The clock is {days} days ahead of the last time that memoriter ran. Expired entries are hidden. "
    "Nothing is erased until memoriter has run for the retention time.",
    "clock.back": "The clock was set back by {days} days. Entries that had expired too early are in force again.",
    "check.fix_clock": "Check the date of this machine.",
    "check.python": "Python {python}, SQLite {sqlite}",
    "check.workspace": "{path}",
    "check.no_workspace": "{path} is not a folder",
    "check.set_workspace": "Run `memoriter init`, or pass --workspace.",
    "check.no_notes": "{path} has no notes yet",
    "check.write_notes": "Run `memoriter init`, then write some notes.",
    "check.readable": "other users can read {path}",
    "check.chmod": "chmod 700 {path}",
    "check.disk": "only {megabytes} MB are free in {path}",
    "check.free_disk": "Free some disk space.",
    "check.backend": "Fix the problem, or set `memory.backend: builtin`.",
    "check.retried": "It is retried automatically.",
    "check.fix_files": "Fix or move these files, then run `memoriter index`.",
    "check.no_key": "embedding.provider is `{provider}`, but it has no API key.",
    "check.reinstall": "Install the package again.",
    "check.set_key": "Run `memoriter config set {key} -`, or choose another `embedding.provider`.",
    "check.no_model": "extraction.auto_extract is on, but no language model is configured.",
    "check.set_model": "Set `llm.provider` and `llm.model`, or set `extraction.auto_extract: false`.",
    "check.read_only": "{path} is read-only. Search works, but nothing new is indexed or remembered.",
    "check.make_writable": "Make {path} writable, or choose another folder with --home.",
    # Why the history of an entry changed.
    "history.merged": "merged by the owner",
    "history.replaced": "replaced by the owner",
    "import.refused": "{n} entries were not imported: their texts were forgotten before.",
    "import.refused.one": "1 entry was not imported: its text was forgotten before.",
    "history.proposed": "an agent asked to forget it",
    "history.relayed": "the agent had read text from outside",
    "history.repeated": "stated before",
    "history.trusted": "the same from a more trusted source",
    "history.no_longer": "no longer true, according to a newer statement",
    "history.undo": "undoes change {seq} ({kind})",
    "history.equal": "equal except for case, spacing and punctuation",
    "history.out_of_date": "a model judged that it is out of date",
    "history.negation": "one statement denies the other",
    "history.slot": "both state {name}",
    "history.comparison": "the opposite comparison",
    "history.same_words": "the same words",
    "history.ended": "names the old value as ended",
    "history.value": "the same with another value",
    "history.change": "describes a change of the same thing",
    "history.number": "the same with another number or date",
    "history.more": "says the same and more",
    "history.part": "repeats a part of it",
    # The outcome for a statement.
    "entry.on_branch": "it was learned on the branch {branch} and waits until that is merged",
    "entry.staged": "it waits for the owner's approval",
    "entry.rejected": "the owner has rejected this",
    "entry.forgotten_by_owner": "the owner has forgotten this. Only the owner can add it again",
    "entry.forgotten": "this was forgotten on request and is not captured again automatically",
    # Errors of operations on entries, recalls and notes.
    "entry.not_found": "There is no entry {id!r}.",
    "entry.ambiguous": "More than one entry starts with {id!r}: {candidates}. Give more of its id.",
    "entry.changed": "The entry {id} was changed in the meantime. Look at it again.",
    "entry.conflict": "Something was changed in the meantime. Look at it again.",
    "entry.duplicate": "The entry {id} says exactly this. Merge the two instead.",
    "entry.undo_newer": "The entry {id} has changed again since. Undo that change first, by its id.",
    "entry.undo_forget": "This entry was erased. Erased entries cannot be restored.",
    "entry.uncompared": "Not compared with older entries that are not indexed yet: {count}.",
    "entry.redacted": "Secrets or private parts were removed before it was stored.",
    "entry.undo_nothing": "There is nothing to undo.",
    "entry.redo_nothing": "There is nothing to redo: the newest change is not an undo.",
    "entry.not_staged": "The entry {id} is {state}: only staged entries can be approved or rejected.",
    "entry.not_active": "The entry {id} is {state}: only active entries can be replaced.",
    "entry.same": "The entry already says this.",
    "entry.empty": "There is nothing to remember: the text contains no word.",
    "entry.too_long": "An entry has at most {limit} characters. This text has {length}.",
    "entry.too_many_tags": "An entry has at most {limit} tags.",
    "forget.how": "Name what to forget in exactly one way: an id, a query, a session, a source or a time.",
    "recall.not_found": "There is no recall {id!r}.",
    "recall.ambiguous": "More than one recall starts with {id!r}: {candidates} and so on. Give more of its id.",
    "recall.none": "Nothing has been recalled yet.",
    "recall.none_of_entry": "The entry {id} has not entered a prompt yet.",
    "note.not_found": "{path!r} does not exist.",
    "collection.unknown": "There is no collection {name!r}. Collections: {known}.",
    "collection.none": "There is no collection {name!r}. Add one with `memoriter collection add`.",
    "collection.missing": "The folder of the collection {name}, {path}, does not exist.",
    "collection.notes": "A collection contains notes only, so `source` cannot be `{source}`.",
    "note.changed": "{path!r} was changed in the meantime. It was not overwritten.",
    "note.removed": "{path!r} was removed in the meantime.",
    "note.exists": "{path!r} already exists. Choose another name.",
    "note.other": "{path!r} does not exist. Did you mean {name!r}?",
    "note.too_long": "A note has at most {limit} characters. It was not changed.",
    "note.hidden": "{path!r} is refused. Names of notes do not start with a dot.",
    "note.name": "{path!r} is refused. A name has no invisible characters, and is in at most {limit} folders.",
    "note.not_pending": "{path!r} is not a note that waits for approval.",
    "path.relative": "{path!r} is refused. Use a path relative to the workspace, without '..'.",
    "path.outside": "{path!r} is refused. Only notes of the workspace and of the configured folders can be read.",
    "path.link": "The symbolic link leads out of the workspace or to another file type.",
    "file.not_written": "{path} could not be written ({why}). It is unchanged.",
    "file.not_changed": "{path} could not be changed ({why}).",
    "file.locked": "{path} was not changed. {why}",
    "file.busy": "{path} is being changed by another program. Try again later.",
    "os.no_space": "No space left on device",
    "os.denied": "Permission denied",
    "os.read_only": "Read-only file system",
    "entry.merge_count": "name between 2 and {limit} entries to merge",
    "import.nothing": "Nothing was imported: the data contains no entries and no conversations.",
    "import.line": "Nothing was imported. Line {number}: {why}.",
    "import.entry": "Nothing was imported. Entry {number}: {why}.",
    "import.line.left": "Line {number} is left out: {why}.",
    "import.entry.left": "Entry {number} is left out: {why}.",
    "import.not_json": "not valid JSON",
    "import.missing": "{name} is missing",
    "import.unreadable": "cannot be read",
}
"""The English text of every code. The page has the same codes in `words.js`."""


class Sentence(str):
    """A string with the code and the arguments it was made from."""

    code: str
    details: Mapping[str, Any]

    def __new__(cls, text: str, code: str = "", details: Mapping[str, Any] | None = None) -> Sentence:
        """Make a sentence; use `sentence` unless the text is not in the table."""
        made = super().__new__(cls, text)
        made.code = code
        made.details = details or {}
        return made


def sentence(code: str, **details: object) -> Sentence:
    """Return the sentence with this code. An argument may itself be a sentence, or an error.

    If ``n`` is 1, the sentence is in the singular, where the table has one:

    >>> sentence("check.entries", n=1), sentence("check.entries", n=2)
    ('1 entry', '2 entries')
    """
    plain = {name: _plain(value) for name, value in details.items()}
    shown = {name: value["text"] if isinstance(value, dict) else value for name, value in plain.items()}
    text = SENTENCES.get(f"{code}.one", SENTENCES[code]) if details.get("n") == 1 else SENTENCES[code]
    return Sentence(text.format(**shown), code, plain)


def _plain(value: object) -> Any:
    """Return an argument as JSON data."""
    if isinstance(value, Sentence):
        return {"text": str(value), "code": value.code, "details": dict(value.details)}
    if isinstance(value, Exception):
        inner = value.args[0] if value.args else ""
        return _plain(inner) if isinstance(inner, Sentence) else str(value)
    return value if isinstance(value, int | float | dict) else str(value)


def join(*parts: str | None) -> str | None:
    """Join sentences into one string that still knows the code of each; None if there are none."""
    texts = [part for part in parts if part]
    if len(texts) < 2:
        return texts[0] if texts else None
    return Sentence(" ".join(texts), "all", {"parts": [_plain(part) for part in texts]})


def pack(text: str) -> str:
    """Return a sentence as one string for a database column."""
    if not isinstance(text, Sentence) or text.code not in SENTENCES:
        return str(text)
    return json.dumps({"code": text.code, "details": dict(text.details)}, ensure_ascii=False)


def unpack(text: str) -> str:
    """Return the sentence that `pack` made a string of; other text is returned as it is."""
    if not text.startswith('{"code": '):
        return text
    stored = json.loads(text)
    return sentence(stored["code"], **stored["details"])


def codes(data: object) -> dict[str, dict[str, Any]]:
    """Return the code and the arguments of every sentence in a result, by its text."""
    return {
        str(found): {"code": found.code, "details": dict(found.details)}
        for found in _sentences(data)
        if found.code
    }


def _sentences(data: object) -> Iterator[Sentence]:
    if isinstance(data, Sentence):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _sentences(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _sentences(value)
