"""Remove blocks that memory systems and hosts add to messages, and annotations that programs add to notes.

No person wrote them, so they are neither stored nor searched.
"""

from __future__ import annotations

import re

#: Blocks that this or another memory adds to a prompt. Storing them again would confirm them by repetition.
_INJECTED = "relevant[-_]memories|recalled-memories|memory-context|supermemory-context|hindsight_memories"
_HARNESS = (
    "system-reminder|local-command-(?:stdout|stderr|caveat)|command-(?:name|message|args|contents)"
    "|bash-(?:input|stdout|stderr)|task-notification|ide_[a-z_]+|user-prompt-submit-hook|environment_context|hook_context"
)
_TAG = re.compile(
    rf"<(/?)((?:{_INJECTED})(?:-[\w-]{{1,40}})?|{_HARNESS})(?:\s[^<>]{{0,400}})?>", re.IGNORECASE
)


def without_blocks(text: str) -> str:
    """Remove blocks that memory systems and hosts add.

    An unclosed block of a memory reaches to the end. Any other unclosed tag is treated as text.
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


#: Annotations of programs at the end of a line, and memoriter's comments in files that it creates. Other comments are
#: text of people and stay.
_ANNOTATION = re.compile(r"<!--[ \t]*(?:(?:trigger|importance|project|memoriter):|openclaw[:-])[^\n]*-->")
#: Annotations that are removed from one line.
_MAX_ANNOTATIONS = 8


def without_annotations(text: str) -> str:
    """Remove annotations for programs from the ends of lines. The number of lines does not change."""
    if "-->" not in text:
        return text
    return "".join(map(_without_annotations, text.splitlines(keepends=True)))


def _without_annotations(line: str) -> str:
    kept = line.rstrip()
    for _ in range(_MAX_ANNOTATIONS):
        start = kept.rfind("<!--") if kept.endswith("-->") else -1
        if start < 0 or not _ANNOTATION.fullmatch(kept, start):
            break
        kept = kept[:start].rstrip(" \t")
    tail = line[len(line.rstrip()) :]
    return line if len(kept) + len(tail) == len(line) else kept + tail.lstrip(" \t")
