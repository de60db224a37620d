"""Search for a text in every file below a folder, in every encoding that a file may use."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import apsw


def forms(text: str) -> list[bytes]:
    """Return the text raw, in UTF-16, escaped as JSON, and in the three alignments of base64."""
    raw = text.encode()
    shifted = [base64.b64encode(b"\0" * shift + raw)[4 if shift else 0 : -4] for shift in range(3)]
    escaped = json.dumps(text)[1:-1].encode()
    return [raw, text.encode("utf-16-le"), text.encode("utf-16-be"), escaped, *shifted]


def holders(folder: Path, *texts: str, blobs: Sequence[bytes] = ()) -> list[str]:
    """Return the names of the files that contain any of the texts in any form, or any of the byte strings."""
    needles = [needle for text in texts for needle in forms(text)] + list(blobs)
    return sorted(
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and any(needle in file.read_bytes() for needle in needles)
    )


def tables(database: Path, text: str) -> list[str]:
    """Return the tables of a database, with their columns, that contain a text. Bytes may also be in free space."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        names = [
            str(name) for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")
        ]
        return [found for name in names for found in _columns(connection, name, text)]
    except apsw.Error as error:
        return [str(error)]
    finally:
        connection.close()


def _columns(connection: apsw.Connection, table: str, text: str) -> list[str]:
    columns = [str(row[1]) for row in connection.execute(f'pragma table_info("{table}")')]
    query = 'select count(*) from "{}" where instr(cast("{}" as text), ?)'
    counts = {
        column: connection.execute(query.format(table, column), (text,)).fetchall()[0][0]
        for column in columns
    }
    return [f"{table}.{column}" for column, count in counts.items() if count]
