"""Tables of the extra ``lancedb``.

LanceDB does not sync its files, so the version and the number of rows are compared with the pointer. Each write creates
a version and three files, so a table is compacted after many writes.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from memoriter.errors import StoreError
from memoriter.extensions.external_tables import ExternalIndex
from memoriter.extensions.external_tables.tables import FolderStore, VectorTable
from memoriter.store.connection import make_private_folder
from memoriter.store.vectors import VectorEngine

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector

#: A table with more versions than this is compacted.
MAX_VERSIONS = 50
#: Older versions stay this long for readers that have them open.
KEEP_VERSIONS = timedelta(hours=1)


class LanceStore(FolderStore):
    """The LanceDB database in one folder."""

    label = "LanceDB"
    key = "lance"

    def create(self, prefix: str, dimensions: int) -> LanceTable:
        """Create an empty table."""
        import pyarrow as pa

        make_private_folder(self._folder)
        fields = [("rowid", pa.int64()), ("vector", pa.list_(pa.float32(), dimensions))]
        name = f"{prefix}-{secrets.token_hex(4)}"
        return LanceTable(name, self._connect().create_table(name, schema=pa.schema(fields)))

    def open(self, name: str, state: Mapping[str, Any]) -> LanceTable:
        """Open a table that has the recorded version and number of rows."""
        table = LanceTable(name, self._connect().open_table(name))
        if (found := table.state()) != state:
            raise StoreError(f"The table has {found} instead of {dict(state)}.")
        return table

    def drop_others(self, name: str) -> None:
        """Delete the folders of all other tables."""
        for folder in self._folder.glob("*.lance"):
            if folder.name != f"{name}.lance":
                shutil.rmtree(folder, ignore_errors=True)

    def _connect(self) -> Any:
        os.environ.setdefault("LANCE_LOG", "error")  # otherwise it warns on stderr about every new table
        import lancedb

        return lancedb.connect(str(self._folder))


class LanceTable(VectorTable):
    """One table of row numbers and vectors."""

    def __init__(self, name: str, table: Any) -> None:
        self.name = name
        self._table = table

    def state(self) -> dict[str, Any]:
        """Return the version and the number of rows."""
        return {"version": self._table.version, "rows": self._table.count_rows()}

    def add(self, ids: Rows, matrix: Vector) -> None:
        import pyarrow as pa

        flat = pa.array(matrix.reshape(-1), type=pa.float32())
        vectors = pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])
        self._table.add(pa.table({"rowid": pa.array(ids), "vector": vectors}))

    def delete(self, ids: Rows) -> None:
        """Delete vectors. Their bytes stay in older versions."""
        self._table.delete(f"rowid in ({', '.join(str(int(row)) for row in ids)})")

    def nearest(self, query: Vector, limit: int) -> tuple[Rows, Vector]:
        asked = self._table.search(query, vector_column_name="vector").distance_type("cosine").limit(limit)
        answer = asked.select(["rowid", "_distance"]).to_arrow()
        return answer["rowid"].to_numpy(), 1.0 - answer["_distance"].to_numpy()

    def tidy(self) -> None:
        """Compact a table with many versions."""
        if self._table.version > MAX_VERSIONS:
            self._table.optimize(cleanup_older_than=KEEP_VERSIONS)


engine = VectorEngine(
    open=lambda context: ExternalIndex(context, LanceStore(context.folder, context.missing)),
    label=LanceStore.label,
    folder="lance",
)
