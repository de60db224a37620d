"""Blocks that memories and harnesses put around what somebody said, and a text without them.

What is in them was not said by anybody, so it is neither learned nor looked for.
"""

from __future__ import annotations

import re

#: What we or another memory put before a prompt: learning it again would make it true by repetition.
_INJECTED = "relevant[-_]memories|recalled-memories|memory-context|supermemory-context|hindsight_memories"
_HARNESS = (
    "system-reminder|local-command-(?:stdout|stderr|caveat)|command-(?:name|message|args|contents)"
    "|bash-(?:input|stdout|stderr)|task-notification|ide_[a-z_]+|user-prompt-submit-hook|environment_context"
)
_TAG = re.compile(
    rf"<(/?)((?:{_INJECTED})(?:-[\w-]{{1,40}})?|{_HARNESS})(?:\s[^<>]{{0,400}})?>", re.IGNORECASE
)


def without_blocks(text: str) -> str:
    """The text without blocks that memories and harnesses put around it.

    A block that is never closed is cut to the end when it is a memory's; otherwise it is just text about a tag.
    """
    tags = list(_TAG.finditer(text))
    last_closing = {tag.group(2).lower(): tag.start() for tag in tags if tag.group(1)}
    kept, at, inside = list[str](), 0, ""
    for tag in tags:
        closing, name = bool(tag.group(1)), tag.group(2).lower()
        if inside and closing and name == inside:
            at, inside = tag.end(), ""
        elif not inside and not closing:
            if last_closing.get(name, -1) > tag.start():
                inside = name
            elif re.match(_INJECTED, name):
                return "".join([*kept, text[at : tag.start()]])
            else:
                continue
            kept.append(text[at : tag.start()])
    return "".join([*kept, text[at:]])


#: What OpenClaw notes at the end of a line, for itself, and what we tell whoever opens a file that we made. All other
#: comments are somebody's words and are found like the rest.
_ANNOTATION = re.compile(r"<!--[ \t]*(?:(?:trigger|importance|project|memoriter):|openclaw[:-])[^\n]*-->")
_MOST = 8  #: annotations of one line


def without_annotations(text: str) -> str:
    """The text without marks for programs at its lines' ends; every line stays where it is."""
    if "-->" not in text:
        return text
    return "".join(map(_without_annotations, text.splitlines(keepends=True)))


def _without_annotations(line: str) -> str:
    kept = line.rstrip()
    for _ in range(_MOST):
        start = kept.rfind("<!--") if kept.endswith("-->") else -1
        if start < 0 or not _ANNOTATION.fullmatch(kept, start):
            break
        kept = kept[:start].rstrip(" \t")
    tail = line[len(line.rstrip()) :]
    return line if len(kept) + len(tail) == len(line) else kept + tail.lstrip(" \t")
