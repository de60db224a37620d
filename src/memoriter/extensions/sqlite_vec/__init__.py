"""The vector engine `sqlite-vec`: vectors in a table of the index's own database."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="sqlite_vec",
    vector_engines={
        "sqlite-vec": Offer(
            "memoriter.extensions.sqlite_vec.table:engine",
            extra="sqlite-vec",
            package="sqlite_vec",
            summary="A table of sqlite-vec in the database of the index.",
        )
    },
)
