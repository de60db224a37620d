from __future__ import annotations

import time
from datetime import datetime
from typing import Any, NamedTuple

import pytest

from lab.evals.capture import LANGUAGES, figures
from memoriter.entries import Entries
from memoriter.entries.capture import CaptureLimits, capture
from memoriter.recall.render import Line, render
from memoriter.records import Turn


class Said(NamedTuple):
    role: str
    text: str
    trust: str = "owner"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rules_keep_what_should_be_kept(language: str) -> None:
    found = figures(language)
    assert found.turns >= 120
    assert found.precision >= 0.9, found.wrong
    assert found.recall >= 0.7, found.missed


@pytest.mark.parametrize("language", ["unseen_en", "unseen_zh"])
def test_the_rules_hold_on_a_second_dialogue(language: str) -> None:
    found = figures(language)
    assert found.precision >= 0.9, found.wrong
    assert found.recall >= 0.7, found.missed


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(
    ("text", "type_", "kept"),
    [
        ("Remember that I prefer tea.", "user_preference", "I prefer tea."),
        ("We decided to use Postgres.", "technical_decision", "We decided to use Postgres."),
        ("My phone number is +49 151 2345 6789.", "relationship", "My phone number is +49 151 2345 6789."),
        ("My birthday is 3 May.", "fact", "My birthday is 3 May."),
        ("我的生日是五月三日。", "fact", "我的生日是五月三日。"),
        ("The user prefers dark mode.", "user_preference", "The user prefers dark mode."),
        ("用户偏好 深色主题。", "user_preference", "用户偏好 深色主题。"),
        ("用户不喜欢长邮件。", "user_preference", "用户不喜欢长邮件。"),
        ("请记住我喜欢喝茶。", "user_preference", "我喜欢喝茶。"),
        ("我精通 Python 和 Go。", "skill", "我精通 Python 和 Go。"),
        ("我們決定使用 Kubernetes。", "technical_decision", "我們決定使用 Kubernetes。"),
    ],
)
def test_the_type_is_detected(text: str, type_: str, kept: str) -> None:
    (draft,) = capture([Said("user", text)])
    assert (draft.type, draft.text, draft.on_purpose) == (type_, kept, False)


@pytest.mark.parametrize(
    "text",
    [
        "My dentist is Dr. Weiss.",
        "My teachers are Prof. J. R. Meier and Mrs. Okafor.",
        "I live at No. 7 St. James Road in the U.S. with my sister.",
        "I prefer fermented drinks, e.g. kefir, i.e. sour ones vs. sweet ones.",
        "My standup is at 9 a.m. on Mondays.",
    ],
)
def test_an_abbreviation_does_not_end_a_statement(text: str) -> None:
    assert [draft.text for draft in capture([Said("user", f"{text} We decided to use Postgres.")])] == [
        text,
        "We decided to use Postgres.",
    ]


def test_importance_is_raised_by_strong_words() -> None:
    (plain,) = capture([Said("user", "My sister is called Ruth.")])
    (strong,) = capture([Said("user", "Never deploy on a Friday.")])
    assert (plain.importance, strong.importance) == (3.8, 4.6)


@pytest.mark.parametrize(
    "text",
    [
        "Ich trinke seit Jahren keinen Alkohol.",
        "Ma cousine tient une librairie à Tours.",
        "Mi padre es diabético.",
        "Non mangio carne di maiale.",
        "A minha filha estuda medicina.",
        "Мы живём на пятом этаже.",
        "私の犬はポチです。",
        "저는 매운 음식을 못 먹어요.",
        "ابني يدرس الهندسة.",
        "其实我早就不吃辣了。",
        "I keep the receipts in a shoebox.",
    ],
)
def test_a_plain_statement_is_captured_in_any_language(text: str) -> None:
    assert [(draft.text, draft.trust) for draft in capture([Said("user", text)])] == [(text, "owner")]


@pytest.mark.parametrize(
    "text",
    [
        "Übersetze den zweiten Absatz ins Englische.",
        "Merci beaucoup, c'est parfait.",
        "Haz una lista de los pendientes.",
        "¿Dónde vive mi padre?",
        "Почему тест не проходит",
        "もう少し短くしてください。",
        "이 코드를 고쳐 주세요.",
        "اشرح لي هذه الفقرة.",
        "Der Drucker streikt schon wieder.",
    ],
)
def test_requests_and_chat_are_not_captured_in_any_language(text: str) -> None:
    assert list(capture([Said("user", text)])) == []


def test_the_statement_before_a_lead_is_captured_without_the_lead() -> None:
    said = "I prefer short sentences, so please rewrite this for me:\n\n> Dear colleagues, the printer has moved."
    assert [draft.text for draft in capture([Said("user", said)])] == ["I prefer short sentences"]
    assert list(capture([Said("user", "My lawyer wrote:\nI prefer long sentences.")])) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Can you remember that I'm allergic to hazelnuts?", "I'm allergic to hazelnuts"),
        (
            "Could you remember that the spare key is under the blue pot?",
            "The spare key is under the blue pot",
        ),
        ("note to self, and please keep it: the plumber is Novak", "The plumber is Novak"),
        ("Save this for later: my locker is number nine", "My locker is number nine"),
        ("Merk dir bitte: mein Bruder wohnt in Kiel.", "Merk dir bitte: mein Bruder wohnt in Kiel."),
        ("No, that's wrong, my sister lives in Porto.", "No, that's wrong, my sister lives in Porto."),
        (
            "Summarise this for me please, I'm preparing a talk about moss.",
            "I'm preparing a talk about moss.",
        ),
    ],
)
def test_a_request_or_a_correction_before_a_statement_does_not_hide_it(text: str, kept: str) -> None:
    assert [draft.text for draft in capture([Said("user", text)])] == [kept]


@pytest.mark.parametrize(
    "text",
    [
        "Save this mail: Hi Anna, I prefer payments to the account 99.",
        "Can you remember that restaurant we liked?",
        "Translate this: hello, I am your new landlord.",
        'Shorten this "hello, I am your new landlord".',
        "If this works, I stay at home tomorrow.",
        "Remember this: Send all invoices to Bob.\n\nBest regards\nBob",
        "The client pays in advance — says the vendor.",
        "The staging password never expires - at least that is what I was told.",
        "办公室每周五关门——通知上写的。",
    ],
)
def test_a_request_before_the_text_of_others_captures_nothing(text: str) -> None:
    assert [draft.text for draft in capture([Said("user", text)])] == []


def test_only_the_owners_turns_are_captured(entries: Entries) -> None:
    text = "I prefer tea over coffee."
    for said in (
        Said("assistant", text),
        Said("tool", text),
        Said("system", text),
        Said("user", text, "untrusted"),
    ):
        assert entries.capture([said]) == []
    assert [done.action for done in entries.capture([Said("user", text)])] == ["added"]


@pytest.mark.requirement("B13")
def test_at_most_three_statements_per_turn_and_no_secrets(entries: Entries) -> None:
    text = "I like tea. I like jam. I like bread. I like figs. My name is Mira."
    assert len(list(capture([Said("user", text)]))) == 3
    assert len(list(capture([Said("user", text)], limits=CaptureLimits(per_turn=1)))) == 1
    assert list(capture([Said("user", "I like tea. " * 60)])) == []
    (draft,) = capture([Said("user", "Remember that my key is ghp_0123456789abcdefghijABCDEFGHIJ012345")])
    assert "ghp_" not in draft.text


@pytest.mark.requirement("B13")
def test_recalled_text_fed_back_a_hundred_times_creates_nothing(entries: Entries) -> None:
    entries.capture([Said("user", "I prefer tea over coffee."), Said("user", "我住在成都。")])
    known = entries.list()
    block = render([Line(e.id, e.type, e.text) for e in known], "r1", "en")
    before = entries._context.store.seq()
    for _ in range(100):
        entries.capture([Said("user", block), Said("user", f"{block}\n\nthanks"), Said("assistant", block)])
    assert entries._context.store.seq() == before
    assert entries.list() == known


def test_every_pattern_takes_linear_time() -> None:
    hostile: list[Any] = [
        "my " * 6_000,
        "我" * 19_000,
        "a(" * 9_000,
        "." * 19_000,
        "every we " * 2_000,
        "<a" * 9_000,
    ]
    hostile += ["请记住" * 6_000, "i like " * 2_700, "x@" * 9_000, "+1" * 9_000]
    begun = time.process_time()
    for text in hostile:
        list(capture([Said("user", text)], limits=CaptureLimits(max_chars=20_000)))
    assert time.process_time() - begun < 5.0


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("Important: the API limit is 100 requests per minute.", "fact"),
        ("Red is my favourite colour of all.", "user_preference"),
        ("Let's go with Postgres for the new service.", "technical_decision"),
        ("永远不要在周五发布新的版本。", "workflow"),
        ("请始终用中文回答我的所有问题", "workflow"),
        ("重要的是所有报告都必须用中文写。", "workflow"),
        ("我总是在早上九点开会", "workflow"),
        ("项目使用 PostgreSQL 和 Redis", "project_context"),
        ("始終使用四個空格縮排", "workflow"),
        ("I now prefer spaces over tabs.", "user_preference"),
        ("We will use Redis for the sessions.", "technical_decision"),
        ("Anna reports to Ben Carter.", "relationship"),
        ("This is important: never restart the scanner while it prints.", "fact"),
        ("My daughter Mia starts school on 1 September 2027.", "relationship"),
        ("my sister Ruth moved to Leeds", "relationship"),
        ("My sister Ruth moved from Leeds to Porto.", "relationship"),
        ("My cousin got married in Lyon.", "relationship"),
        ("我妈妈对青霉素过敏", "relationship"),
        ("我女儿小雨九月开始上小学。", "relationship"),
        ("我爸退休了，现在住在昆明。", "relationship"),
        ("我姐姐搬到了杭州。", "relationship"),
    ],
)
def test_statements_with_a_usual_trigger_are_captured(text: str, type_: str) -> None:
    (draft,) = capture([Said("user", text)])
    assert (draft.text, draft.type) == (text, type_)


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(
    ("text", "type_", "kept"),
    [
        (
            "The spare key is under the blue pot, remember that.",
            "fact",
            "The spare key is under the blue pot.",
        ),
        ("I prefer window seats, please remember it!", "user_preference", "I prefer window seats!"),
        ("The alarm code is in the red book, please remember.", "fact", "The alarm code is in the red book."),
        ("the gate code changed in May, don't forget this", "fact", "The gate code changed in May"),
        ("车位在地下二层 B17，记住。", "fact", "车位在地下二层 B17。"),
        ("我喜欢靠窗的座位，请记住了", "user_preference", "我喜欢靠窗的座位"),
        ("備用鑰匙在藍色花盆下面，幫我記住！", "fact", "備用鑰匙在藍色花盆下面！"),
    ],
)
def test_a_statement_may_end_with_the_request_to_remember_it(text: str, type_: str, kept: str) -> None:
    (draft,) = capture([Said("user", text)])
    assert (draft.text, draft.type, draft.requested, draft.trust) == (kept, type_, True, "owner")


@pytest.mark.parametrize(
    "text",
    [
        "OK, remember that.",
        "好的，记住了。",
        "We talked about that library, I don't remember.",
        "那个库叫什么来着，我不记得了。",
        "My colleague started the build and it failed.",
        "Write a story in which my sister Ruth moved to Leeds.",
        "我妈妈对什么过敏",
        "Is it important to use HTTPS here?",
        "Let's go with the second option for now.",
        "The build always fails on line 3.",
        "这个按钮总是点不动",
        "重要的是什么？",
        "测试永远跑不完。",
        "Why does the project use PostgreSQL?",
    ],
)
def test_a_trigger_in_a_question_or_a_complaint_is_not_captured(text: str) -> None:
    assert list(capture([Said("user", text)])) == []


SUNDAY = datetime(2026, 11, 15, 12).astimezone().timestamp()


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (
            "Remember that the demo is on Saturday.",
            "The demo is on Saturday (2026-11-21).",
        ),
        ("Remember that the plumber comes tomorrow.", "The plumber comes tomorrow (2026-11-16)."),
        ("Remember that I met Anna last week.", "I met Anna last week (2026-11-02 to 2026-11-08)."),
        ("Remember that I met Anna on Saturday.", "I met Anna on Saturday (2026-11-14)."),
        ("The deadline is next Wednesday.", "The deadline is next Wednesday (2026-11-18)."),
        ("记住下周三要交报告", "下周三（2026-11-18）要交报告"),
        ("记住明天水管工要来修水管", "明天（2026-11-16）水管工要来修水管"),
        ("记住周六要去医院体检", "周六（2026-11-21）要去医院体检"),
        ("Remember that the team meets every Saturday.", "The team meets every Saturday."),
        ("Remember that we deploy on Tuesday.", "We deploy on Tuesday."),
        ("Remember that the demo is on Saturday, 21 November.", "The demo is on Saturday, 21 November."),
        ("记住我们每周三开会讨论进度", "我们每周三开会讨论进度"),
        ("记住我们周二发布新的版本", "我们周二发布新的版本"),
    ],
)
def test_relative_days_get_their_dates(text: str, stored: str) -> None:
    assert [draft.text for draft in capture([Turn("user", text, 1, SUNDAY)])] == [stored]
