"""Records of OpenClaw's transcripts: ``{"type": "message", "message": …}``. Its plugin sends the message alone."""

from __future__ import annotations

from collections.abc import Mapping


def message_of(record: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the message of a record."""
    inner = record.get("message")
    found = inner if record.get("type") == "message" and isinstance(inner, dict) else record
    provenance, details = found.get("provenance"), found.get("details")
    if isinstance(provenance, dict) and provenance.get("kind") in ("internal_system", "inter_session"):
        return {**found, "role": ""}  # such as a heartbeat or a recalled memory
    if str(found.get("customType")).startswith("openclaw.nested-tool") and isinstance(details, dict):
        # The agent calls most tools through a wrapper tool. Only the details name the inner tool.
        return {**found, **{key: details.get(key) for key in ("toolName", "toolCallId")}}
    return None if found is record else found
