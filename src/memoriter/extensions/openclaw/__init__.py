"""OpenClaw: its memory slot, and import of its notes, sessions and entries."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="openclaw",
    hosts={"openclaw": Offer("memoriter.extensions.openclaw.install:OPENCLAW")},
    importers={"openclaw": Offer("memoriter.extensions.openclaw.importing:OPENCLAW")},
    transcripts={"openclaw": Offer("memoriter.extensions.openclaw.records:message_of")},
)
