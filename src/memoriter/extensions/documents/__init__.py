"""Text of PDF and Word files. They are indexed beside the notes if the packages of the extra are installed."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="documents",
    readers={
        ".pdf": Offer("memoriter.extensions.documents.pdf:read", extra="documents", package="pypdf"),
        ".docx": Offer("memoriter.extensions.documents.word:read", extra="documents", package="docx"),
    },
)

#: The words of a document are rarely the owner's. Searches find them, and recalls do not add them to a prompt.
FRONT_MATTER = "---\ntrust: untrusted\n---\n"
#: Characters of text that are indexed of one document.
MAX_CHARS = 4_000_000
