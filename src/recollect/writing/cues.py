"""The words by which a sentence shows that it decides, asks to be done, tells a fact or says nothing; two languages."""

from __future__ import annotations

import re


def _any(*alternatives: str, start: bool = False) -> re.Pattern[str]:
    return re.compile(("^" if start else "") + f"(?:{'|'.join(alternatives)})", re.IGNORECASE)


DECISION = _any(
    r"\bdecid|\bagree[ds]?\b|\bchose\b|\bwe(?:'ll| will)\b|\bwill (?:use|go|keep|move|run|be)\b",
    r"\blet's (?:use|go|keep|make|take|do)\b|\bgo(?:ing)? with\b|\bfrom now on\b|\bit is(?:,|\.|$)|\bsettled?\b",
    r"\bswitch(?:ed|ing)? to\b|\bmoved? to\b|\binstead of\b|\bfinal(?:ly|ised|ized)\b",
    "决定|定下来|就定|确定|敲定|改为|改成|改到|改用|采用|选用|统一用|以后都|今后|约定|结论|最终|就用|決定",
)

TASK = _any(
    r"\bto-?do\b|\bnext step|\bneeds? to\b|\bha(?:ve|s) to\b|\bremember to\b|\bdon't forget|\bremind\b",
    r"\bfollow[- ]up\b|\bstill (?:open|missing)\b|\b(?:tell|ask) (?-i:[A-Z])",
    r"\b(?:before|by|until) (?:tomorrow|next|mon|tue|wed|thu|fri|sat|sun)",
    "待办|下一步|记得|别忘|还要|还没|尚未|提醒|跟进|待定|(?:需要|得|要)(?:先|再|把|去|在)|(?:明天|下周|周[一二三四五六日])前",
)

FACT = _any(
    r"\bprefer|\bmy \w+ is\b|\bi(?:'m| am) (?:a|an|the|in|at|from)\b|\bwe use\b|\bour \w+ (?:is|are|runs?)\b",
    r"\balways\b|\bnever\b|\bbecause\b|\bthe reason",
    "喜欢|偏好|讨厌|总是|从不|我的[^，。]{1,12}是|我们用|我们的[^，。]{1,12}是|习惯|希望|因为|原因",
)

#: Names, numbers, code: what a person looks for later.
NAMED = re.compile(
    r"(?<=[a-z,;:] )[A-Z][a-z]+|\b[A-Z]{2,}\b|\d|`[^`]+`|[\w-]+\.[a-z]{2,4}\b|[A-Za-z]+(?=[\u4e00-\u9fff])"
)

#: How a sentence begins that says nothing, unless it is long.
EMPTY = _any(
    "ok(?:ay)?|sure|thanks?(?: you)?|great|got it|hello|hi|hey|yes|no|good (?:morning|evening|night)|sorry|certainly",
    "of course|absolutely|you(?:'re| are) welcome|done|let me|anything else|happy to",
    "here(?:'s| is| are) (?:the|what|a|my|some)",
    "i(?:'ll| will| am going to|'m going to) (?:now |first )?(?:check|look|take|read|search|open|start|run)",
    "好的?|嗯+|行|谢谢|多谢|感谢|不客气|不用谢|收到|明白|没问题|你好|您好|是的|对|让我|我来|我先|稍等|可以吗|还有什么",
    start=True,
)

#: How an agent says that it heard, kept or found something: its own work, or once more what is known already.
ECHO = _any(
    r"i(?:'ve| have)? (?:wrote|written|noted|saved|stored|recorded|remembered) (?:that|this|it|them)\b",
    r"as (?:far as )?i (?:can )?(?:remember|recall)\b|i (?:have )?looked (?:it|that|this) up\b",
    r"i(?:'ll| will) remember\b|(?:understood|noted)\b[^,:;]{0,20}$",
    "我?(?:已经?|会)(?:帮[你您]|为[你您])?(?:把[^，。]{1,8})?(?:记下|记住|记录|保存|写下)|(?:据我所?记|我记得|我查到)",
    start=True,
)

#: What only takes up the other's word.
OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|sure|great|yes|well|so|and|good|right|alright|thanks|hi|hello|hey|done)(?: there)?[,.!:—-]+\s*"
    r"|(?:好的?|嗯+|行|是的|对|那么|你好|您好|谢谢)[，。！、,!]\s*)+",
    re.IGNORECASE,
)

#: How a request begins before it comes to its matter.
POLITE = _any(
    "(?:can|could|would|will) you (?:please )?(?:help me (?:to )?)?|please (?:help me (?:to )?)?|help me (?:to )?",
    "i(?:'d| would) like (?:you )?to |i want (?:you )?to |(?:请问|请|麻烦你?|帮我|我想要?|能不能|可以|看看|看一下)+",
    start=True,
)

#: With what a title does not end.
LOOSE_END = re.compile(
    r"(?:\s+(?:of|the|a|an|to|in|on|at|for|and|or|with|from|by|our|my|your|is|are|that))+$", re.IGNORECASE
)
