"""The statements in the exports of mem0. Its records have the field `memory`, which an import of entries knows."""

from __future__ import annotations

import json
from collections.abc import Iterator

from memoriter.entries.exchange import LISTS
from memoriter.extensions.importing import Source, import_statements, report_of
from memoriter.extensions.passport.formats import lines_of_mem0
from memoriter.hosts import ImportReport
from memoriter.memory import Memory

#: Characters in which the first record must be.
START_CHARS = 100_000


class Mem0Importer:
    """Imports statements as entries."""

    program = "mem0"

    def recognises(self, source: Source) -> bool:
        """Return whether the records have mem0's field, and are not conversations."""
        if source.is_folder or source.lists_with("mapping") or source.lists_with("chat_messages"):
            return False
        starts = [text[:START_CHARS] for text in source.texts]
        return any('"memory"' in start and '"isLatest"' not in start for start in starts)  # of supermemory

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import the statements. What memoriter had exported for mem0 becomes what it was."""
        lines = [line for records in source.records for line in lines_of_mem0(records)]
        texts = ["\n".join(lines)] if lines else self._named(source)
        entries = import_statements(memory, source, dry_run=dry_run, texts=texts)
        return report_of(memory, self.program, source, (), entries, dry_run=dry_run)

    def _named(self, source: Source) -> Iterator[str]:
        """Yield the texts of the source, with the name of the program in each record."""
        for record in source.members(*LISTS):
            if isinstance(record, dict) and "memory" in record:
                record["source"] = record.get("source") or self.program
        for text, found in zip(source.texts, source.records, strict=True):
            yield text if found is None else json.dumps(found)


MEM0 = Mem0Importer()
