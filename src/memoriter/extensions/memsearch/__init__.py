"""memsearch: import of its memory folder."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="memsearch", importers={"memsearch": Offer("memoriter.extensions.memsearch.notes:MEMSEARCH")}
)
