# ruff: noqa: E501 - a pattern that is broken in two is harder to read

"""Separate the words of a person from text that they pasted into a message: mails, pages, chat logs, quotations.

Only what the person wrote counts as theirs. In doubt, text counts as pasted: a statement that is missed can be said
again, while a statement of a stranger would be remembered as the owner's. Every pattern is bounded, so the time is
linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Piece(NamedTuple):
    """A part of a message."""

    text: str
    pasted: bool


def split_pasted(text: str) -> list[Piece]:
    """Return the pieces of a message in their order, without empty ones.

    >>> split_pasted("I prefer tea. Please summarise this email:\\nWe always pay in cash.")
    [Piece(text='I prefer tea. Please summarise this email:', pasted=False), Piece(text='We always pay in cash.', pasted=True)]
    """
    pieces, at = list[Piece](), 0
    for start, end in _merge(_spans(text)):
        pieces += [Piece(text[at:start].strip(), False), Piece(text[start:end].strip(), True)]
        at = end
    pieces.append(Piece(text[at:].strip(), False))
    return [piece for piece in pieces if piece.text]


def own_words(text: str) -> str:
    """Return what the person wrote, without pasted text."""
    pieces = split_pasted(text)
    if not any(piece.pasted for piece in pieces):
        return text
    return "\n".join(piece.text for piece in pieces if not piece.pasted)


def refers_to_text(text: str) -> bool:
    """Return whether a message is about a text that was read, such as a mail or a page.

    >>> refers_to_text("Remember everything that page says about invoices"), refers_to_text("Where is Texel?")
    (True, False)
    """
    return bool(_NOUN.search(text[:2_000]))


# ---- patterns -------------------------------------------------------------------------------------------------

#: Longest line that can introduce, follow or mark pasted text.
MAX_LEAD = 200

_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~|\"\"\"|''')", re.MULTILINE)
_QUOTED_LINES = re.compile(r"^[ \t]{0,8}>.*$", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z!][A-Za-z0-9-]{0,30}(?:\s[^<>]{0,300})?/?>")
_QUOTES = (
    re.compile(r'"([^"]{0,4000})"'),
    re.compile(r"“([^”]{0,4000})”"),
    re.compile(r"「([^」]{0,4000})」"),
    re.compile(r"『([^』]{0,4000})』"),
    re.compile(r"«([^»]{0,4000})»"),
)
#: Width of a quotation that is a statement and not a name or a term. A Chinese character counts as three.
MIN_QUOTE_WIDTH = 24

#: A line from which on everything is pasted.
_TO_THE_END = re.compile(
    r"^[ \t]{0,8}(?:"
    r"(?:From|Subject|Sent|Cc|Bcc|Reply-To|Message-ID|Return-Path|Fwd?|FW|Re|RE): ?\S"
    r"|(?:To|Date): .{1,120}\n[ \t]{0,8}(?:From|To|Date|Subject|Sent): "
    r"|(?:发件人|收件人|寄件人|寄件者|收件者|主题|主旨|主題|抄送|副本|发送时间|寄件日期|转发|轉發|回复)[:：]"
    r"|-{2,} {0,3}(?:Original|Forwarded|Begin|原始|转发|轉寄)|Begin forwarded message|={5,}|_{8,}|-{5,}"
    r"|On .{4,120} wrote:|.{0,60}(?:写道|寫道|wrote)[:：][ \t]*$"
    r"|-- ?$|#{1,6} \S|\|.{1,200}\|[ \t]*$|https?://\S{1,2000}[ \t]*$"
    r"|(?:Dear|Hi|Hello|Hey) (?:all|team|everyone|everybody|folks|colleagues?|customers?|users?|friends?|sir|madam|valued)\b"
    r"|Dear [A-Z][\w.' -]{0,40}[,:]|(?:Hi|Hello|Hey|Good (?:morning|afternoon|evening)) [A-Z][\w.'-]{0,20}(?: [A-Z][\w.'-]{0,20})?[,!][ \t]*$"
    r"|(?:尊敬的|亲爱的|親愛的|各位)\S{1,12}[，,：:！!]?"
    r"|(?:\*{1,2}|\[)?(?:Posted by .{1,60}$|Published|Written|Author|Source|Reviewed|来源|作者|发布时间|编辑)(?:[:：] ?| by )"
    r")",
    re.MULTILINE,
)
#: Text that only pages and newsletters contain.
_PAGE = re.compile(
    r"\bunsubscribe\b|\ball rights reserved\b|©|\b\d{1,3} min(?:ute)? read\b|\bview (?:it |this email )?in (?:your )?browser\b"
    r"|\bclick here\b|\baccept (?:all )?cookies\b|\bsign in to\b|\bterms of service\b|退订|版权所有|版權所有|阅读原文|閱讀原文"
    r"|点击(?:这里|此处|链接)|责任编辑|扫码关注|\d{1,9} (?:upvotes|likes|retweets|comments)\b",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"^[ \t]{0,8}(?:Hi|Hello|Hey|Dear|Good (?:morning|afternoon|evening)) [A-Z][\w.' -]{0,40}[,!:]"
    r"|^[ \t]{0,8}\S{0,8}(?:您好|你好)[，,：:！!。]",
    re.MULTILINE,
)
_SIGN_OFF = re.compile(
    r"(?:^|[.!?]\s{1,3})[ \t]{0,8}(?:(?:Best|Kind|Warm|Many)(?: regards| wishes| thanks)?|Regards|Cheers|Sincerely|Yours(?: truly| sincerely)?"
    r"|Thanks|Thank you|BR|Rgds),?\s{1,4}[-–— ]{0,3}[A-Z][\w.' -]{0,60}[ \t]*(?:\n|\Z)"
    r"|(?:此致|敬礼|敬禮|祝好|顺颂商祺|順頌商祺|商祺|敬上|谨上|謹上|祝商祺)",
    re.MULTILINE,
)
#: A line of a chat: an optional time, a name, a colon and what was said.
_SPEAKER = re.compile(
    r"^[ \t]{0,8}(?:[-*•] {0,3})?(?:[\[(<]?\d{1,4}[-/:.年]\d{1,2}[^\]\n]{0,20}[\])>]?,? {0,3})?"
    r"(?:@?[A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,2}(?: \([^)\n]{1,30}\))?(?: \[\d{1,2}:\d{2}\])?: {1,3}\S"
    r"|<[@\w .-]{1,30}> \S|(?!我|咱)[\u4e00-\u9fff]{2,4}[:：][ \t]{0,3}\S)",
    re.MULTILINE,
)
#: A name and a time on a line of their own, as chat programs copy them.
_STAMP = re.compile(
    r"^[ \t]{0,8}[A-Z\u4e00-\u9fff][\w.' -]{0,30}[ \t]{1,4}(?:\[|\(|\d{4}[-/]\d{1,2}[-/]\d{1,2} |今天|昨天|Today at |Yesterday at )?\d{1,2}:\d{2}(?::\d{2})?(?: ?[AP]M)?[\])]?[ \t]*$",
    re.MULTILINE,
)
#: Words before a colon that are not a speaker.
_NO_SPEAKER = re.compile(
    r"\s*(?:[-*•] {0,3})?(?:请|請|帮我|幫我|你要)?(?:note|remember|important|very important|this is important|also important|fyi|memo|reminder|decision|update|todo|rule|rules|preference|preferences|"
    r"ps|p\.s\.|background|context|correction|edit|summary|goal|editor|shell|language|remember this|for the record|for future reference|"
    r"注意|记住|記住|请记住|记下|记得|記得|备忘|備忘|重要|决定|決定|补充|另外|还有|约定|规则|偏好|更正|总之|结论|背景|目标|记一下|提醒|备注|備註|说明|附)\s{0,3}[:：]",
    re.IGNORECASE,
)

_NOUN = re.compile(
    r"\b(?:e-?mails?|mails?|messages?|(?:web ?)?pages?|articles?|posts?|threads?|letters?|tickets?|issues?|transcripts?|conversations?|"
    r"comments?|reviews?|web ?sites?|newsletters?|tweets?|invoices?|forums?|repl(?:y|ies)|news|blogs?|wiki|readme|documents?|docs?|pdf|"
    r"paragraphs?|excerpts?|quotes?|chat(?: log)?s?|logs?|snippets?|descriptions?|announcements?|contracts?|text|output|paste|clipboard|search results?|release notes)\b"
    r"|邮件|郵件|来信|信件|网页|網頁|页面|頁面|文章|帖子|贴子|聊天记录|聊天記錄|对话|公告|通知|原文|短信|消息|评论|評論|工单|文档|文檔|合同|新闻|新聞|"
    r"推文|推送|说明书|段落|这段|這段|这封|這封|这篇|這篇|这条|這條|内容|內容|文字|资料|日志|报告|截图|发票",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:summari[sz]e|summary|tl;?dr|translate|proofread|rewrite|rephrase|review|analy[sz]e|explain|reply|respond|answer|read|check|"
    r"look at|look|see|extract|classify|parse|process|handle|draft|go through|what do(?:es)?|what should|is (?:this|it|that)|are these|verify|make sense of|thoughts on|opinion)\b"
    r"|总结|總結|翻译|翻譯|概括|归纳|歸納|解释|解釋|看看|看一下|看下|读一下|读读|检查|檢查|回复|回覆|分析|润色|潤色|改写|提取|处理|處理|评价|帮我看|什么意思|怎么看|怎么回",
    re.IGNORECASE,
)
_DEICTIC = re.compile(
    r"\b(?:this|that|these|those|the following|following|below|above|it|attached)\b|下面|以下|如下|上面|以上|这|這",
    re.IGNORECASE,
)
_RECEIVED = re.compile(
    r"\b(?:got|received|found|forwarded|fwd|pasted?|copied|sent me|here(?:'s| is| are)|this is|below is|from)\b|收到|转发|轉發|看到|摘自|来自|复制|粘贴|贴",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\b(?:says?|said|wrote|writes|reads|states?|stated|repl(?:y|ied)|asked|tells?|told (?:me|us)|posted|claims?|announced)\b[^:：]{0,40}$"
    r"|(?:说|說|写道|寫道|表示|回复|回覆|提到|告诉我|告訴我|问|声称|宣布|写着|寫著|写的是)[^:：]{0,6}$",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?:i|i'm|i've|my|we|our|us|me|remember|note|keep in mind|don'?t forget|fyi|for the record|important|decision|decided|memo|rules?|preferences?)\b"
    r"|我|咱|记住|記住|记下|记得|記得|备忘|備忘|注意|重要|决定|決定|约定|约好|规则|規則|偏好|规定|另外|还有|补充",
    re.IGNORECASE,
)
_COLON = re.compile(r"[:：](?=\s|$)|：")
_LINE = re.compile(r"[^\n]+")


# ---- spans ----------------------------------------------------------------------------------------------------

Span = tuple[int, int]


def _merge(spans: Iterator[Span]) -> list[Span]:
    merged = list[Span]()
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def _spans(text: str) -> Iterator[Span]:
    """Yield where text is pasted. The spans may overlap."""
    if _PAGE.search(text):
        yield 0, len(text)
        return
    yield from _fenced(text)
    yield from (match.span() for match in _QUOTED_LINES.finditer(text))
    yield from _marked_up(text)
    yield from _quotations(text)
    yield from _letters(text)
    yield from _chats(text)
    yield from _introduced(text)
    if found := _TO_THE_END.search(text):
        yield found.start(), len(text)


def _fenced(text: str) -> Iterator[Span]:
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1] == opened[1]:
            yield opened.start(), fence.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text)


def _marked_up(text: str) -> Iterator[Span]:
    tags = [match.span() for match in _TAG.finditer(text)]
    if tags:
        yield tags[0][0], tags[-1][1]


def _quotations(text: str) -> Iterator[Span]:
    for pattern in _QUOTES:
        for match in pattern.finditer(text):
            width = sum(3 if char >= "\u2e80" else 1 for char in match[1][:MIN_QUOTE_WIDTH])
            if width >= MIN_QUOTE_WIDTH:
                yield match.span()


def _letters(text: str) -> Iterator[Span]:
    """A letter ends with a name under a greeting. It starts with its salutation, or with the text."""
    ends = [match.end() for match in _SIGN_OFF.finditer(text)]
    if ends:
        greeting = _GREETING.search(text)
        yield (greeting.start() if greeting and greeting.start() < ends[-1] else 0), len(text)


def _chats(text: str) -> Iterator[Span]:
    said = [match for match in _SPEAKER.finditer(text) if not _NO_SPEAKER.match(match[0])]
    stamps = list(_STAMP.finditer(text))
    if len(said) > 1 or stamps:
        yield min(match.start() for match in (*said, *stamps)), len(text)
    for match in said:
        end = text.find("\n", match.start())
        yield match.start(), len(text) if end < 0 else end


def _introduced(text: str) -> Iterator[Span]:
    """Yield text after a line that introduces it ("Summarise this mail:"), and before a line that refers to it."""
    lines = [match for match in _LINE.finditer(text) if match[0].strip()]
    for number, line in enumerate(lines):
        last = number == len(lines) - 1
        start = _introduced_at(line[0], last)
        if start is not None:
            yield line.start() + start, len(text)
            break
        gap = not last and "\n" in text[line.end() + 1 : lines[number + 1].start()]
        if not last and _introduces_without_colon(line[0], gap):
            yield line.end(), len(text)
            break
    if len(lines) > 1 and _refers_back(lines[-1][0], "\n" in text[lines[-2].end() + 1 : lines[-1].start()]):
        yield 0, lines[-1].start()


def _introduced_at(line: str, last: bool) -> int | None:
    """Return where foreign text starts in or after a line with a colon; None if it does not introduce any."""
    for colon in _COLON.finditer(line[:MAX_LEAD]):
        head, tail = line[: colon.start()], line[colon.end() :].strip()
        sentence = re.split(r"[.!?。！？]\s*(?=\S)", head)[-1]
        foreign = bool(
            _NOUN.search(sentence)
            or _REPORT.search(sentence)
            or (_REQUEST.search(sentence) and _DEICTIC.search(sentence))
        )
        if not tail and not last:
            foreign = foreign or not _OWN.search(sentence)
        if foreign and (tail or not last):
            return colon.end()
    return None


def _introduces_without_colon(line: str, gap: bool) -> bool:
    lead = line[-MAX_LEAD:]
    sentence = re.split(r"[.!?。！？]\s*(?=\S)", lead)[-1]
    asks = bool(_REQUEST.search(sentence)) and bool(_DEICTIC.search(sentence) or _NOUN.search(sentence))
    received = bool(_RECEIVED.search(sentence)) and bool(_DEICTIC.search(sentence))
    if not _NOUN.search(sentence):
        return asks and gap
    return asks or received


def _refers_back(line: str, gap: bool) -> bool:
    """Return whether a last line asks for something about the text above it."""
    if len(line) > MAX_LEAD or not (_REQUEST.search(line) and _DEICTIC.search(line)):
        return False
    return gap or bool(_NOUN.search(line)) or bool(re.search(r"\babove\b|上面|以上", line, re.IGNORECASE))
