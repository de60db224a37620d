"""Days that a query names relative to today."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.engines.builtin import BuiltinEngine
from memoriter.records import Query
from memoriter.search import Searcher
from memoriter.search.rank import NamedDays, date_leg
from memoriter.search.when import add_dates, date_tokens_of, named_days, past_plan, past_question, planned_for

TODAY = date(2026, 3, 5)  # a Thursday


def meant(text: str) -> list[str]:
    """Return the days, each as "first..last" or as one day."""
    return [f"{first}..{last}" if first != last else f"{first}" for first, last in named_days(text, TODAY)]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("What did Mia say yesterday?", "2026-03-04"),
        ("the  Day Before\nYesterday", "2026-03-03"),
        ("day before yesterday", "2026-03-03"),
        ("day after tomorrow", "2026-03-07"),
        ("last night's deploy", "2026-03-04"),
        ("last week", "2026-02-23..2026-03-01"),
        ("this week", "2026-03-02..2026-03-08"),
        ("last Wednesday", "2026-03-04"),
        ("last Thursday", "2026-02-26"),
        ("next Friday", "2026-03-13"),
        ("last weekend", "2026-02-28..2026-03-01"),
        ("last month", "2026-02-01..2026-02-28"),
        ("last year", "2025-01-01..2025-12-31"),
        ("last October", "2025-10-01..2025-10-31"),
        ("last February", "2026-02-01..2026-02-28"),
        ("last March", "2025-03-01..2025-03-31"),
        ("next May", "2026-05-01..2026-05-31"),
        ("what is planned for this May?", "2026-05-01..2026-05-31"),
        ("three days ago", "2026-03-02"),
        ("2 weeks ago", "2026-02-16..2026-02-22"),
        ("a month ago", "2026-02-01..2026-02-28"),
        ("in the past 3 days", "2026-03-02..2026-03-05"),
        ("前天做了什么", "2026-03-03"),
        ("大前天", "2026-03-02"),
        ("昨晚的会", "2026-03-04"),
        ("上周", "2026-02-23..2026-03-01"),
        ("上周三", "2026-02-25"),
        ("上个星期天", "2026-03-01"),
        ("上禮拜五", "2026-02-27"),
        ("上上周一", "2026-02-16"),
        ("这周末", "2026-03-07..2026-03-08"),
        ("上个月", "2026-02-01..2026-02-28"),
        ("上月五号", "2026-02-05"),
        ("上個月二十五號", "2026-02-25"),
        ("去年", "2025-01-01..2025-12-31"),
        ("去年十月", "2025-10-01..2025-10-31"),
        ("去年10月3号", "2025-10-03"),
        ("今年三月份", "2026-03-01..2026-03-31"),
        ("前年", "2024-01-01..2024-12-31"),
        ("三天前", "2026-03-02"),
        ("两个月前", "2026-01-01..2026-01-31"),
        ("二十三天以前", "2026-02-10"),
        ("最近两周", "2026-02-19..2026-03-05"),
        ("近三天", "2026-03-02..2026-03-05"),
        ("去年两月", "2025-02-01..2025-02-28"),
        ("上周日志", "2026-02-23..2026-03-01"),
        ("上周一起吃饭", "2026-02-23..2026-03-01"),
        ("上周三次会议", "2026-02-23..2026-03-01"),
        ("上周期末考试", "2026-02-23..2026-03-01"),
        ("加上上周", "2026-02-23..2026-03-01"),
    ],
)
def test_days_are_counted_from_today(text: str, days: str) -> None:
    assert meant(text) == [days]


@pytest.mark.parametrize(
    "text",
    [
        "the last word of this thread",
        "yesterdays",
        "why this may fail",
        "does the battery last a week",
        "it should last two days",
        "twenty-two days ago",
        "twenty two days ago",
        "2.5 years ago",
        "1,000 days ago",
        "half a year ago",
        "on Wednesday",
        "2026-03-05",
        "以后天天如此",
        "早上月亮很圆",
        "日本周边",
        "这周围",
        "去年二月三十日",
        "说明日志的格式",
        "说明天气",
        "说明早期版本",
        "说明年份",
        "当前日期",
        "目前天气",
        "当前年份",
        "以前天天如此",
        "如今天下",
        "雨后天晴",
        "后天性免疫",
        "线上周报",
        "以上周期",
        "马上周末了",
        "说一下周五的会议",
        "整理一下周报",
        "成本月报",
        "版本周期",
        "附近一日游",
        "将近三年",
        "2024年前",
        "2026年以前",
        "5月之前",
        "3月15日前提交",
        "1000天前",
        "一百二十天前",
        "两三天前",
        "最近五六年",
        "9年9",
        "",
    ],
)
def test_other_words_do_not_name_a_day(text: str) -> None:
    assert meant(text) == []


def test_every_named_day_counts() -> None:
    assert meant("昨天和上周三") == ["2026-03-04", "2026-02-25"]


def test_only_the_first_days_of_a_long_text_are_read() -> None:
    assert meant("yesterday " * 700) == ["2026-03-04"]
    assert len(meant(" ".join(f"{number} days ago" for number in range(1, 400)))) == 8


@given(
    st.text(st.sampled_from("上下大前后个月周去今年十三两二一天日号末ago last past week years 9 0")),
    st.dates(),
)
def test_any_text_on_any_day_gives_ordered_days(text: str, today: date) -> None:
    for first, last in named_days(text, today):
        assert first <= last
        assert 0 < len(date_tokens_of((first, last))) <= 64 or (last - first).days > 64 * 365


@pytest.mark.parametrize(
    ("span", "tokens"),
    [
        ((TODAY, TODAY), ["@2026-03-05"]),
        ((date(2026, 2, 27), date(2026, 3, 1)), ["@2026-02-27", "@2026-02-28", "@2026-03-01"]),
        ((date(2026, 2, 1), date(2026, 2, 28)), ["@2026-02"]),
        ((date(2026, 2, 2), date(2026, 3, 5)), ["@2026-02", "@2026-03"]),
        ((date(2025, 1, 1), date(2025, 12, 31)), ["@2025"]),
        ((date(1026, 7, 3), date(1901, 3, 5)), ["@1900", "@1901"]),
        ((date(1026, 1, 1), date(1026, 12, 31)), ["@1026"]),
    ],
)
def test_days_have_the_date_tokens_of_the_index(span: tuple[date, date], tokens: list[str]) -> None:
    assert date_tokens_of(span) == tokens


def test_the_date_leg_counts_notes_of_the_days_and_undated_notes_that_name_them() -> None:
    october = (date(2025, 10, 1), date(2025, 10, 31))
    dates = {1: "2025-10-03", 2: "2024-10-03", 3: "2025-11-01"}
    assert date_leg(["@10"], dates, [NamedDays(october, {3, 4})]) == {1: 1.0, 2: 0.5, 4: 0.5}
    assert date_leg([], dates, [NamedDays(october)]) == {1: 1.0}


@pytest.mark.parametrize("provider", ["none", "hash"])
@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("what happened yesterday?", "memory/2026-03-04.md"),
        ("前天发生了什么", "memory/2026-03-03.md"),
        ("去年十月", "memory/2025-10-03.md"),
        ("二〇二五年十月三日", "memory/2025-10-03.md"),
        ("三月三号", "memory/2026-03-03.md"),
    ],
)
def test_a_note_is_found_by_every_way_to_name_its_day(
    query: str, path: str, provider: str, open_memory: Callable[..., Memory], note: Callable[[str, str], Path]
) -> None:
    for day in ("2026-03-04", "2026-03-03", "2026-02-26", "2025-10-03", "2024-10-03"):
        note(f"memory/{day}.md", f"The heron was seen {len(day)} times.\n")
    note("memory/herons.md", "Herons are birds of the shore.\n")
    memory = open_memory(embedding__provider="none") if provider == "none" else open_memory()
    memory.sync()
    assert isinstance(memory._parts.engine, BuiltinEngine)
    searcher = Searcher(
        memory._parts.engine.index, memory._parts.engine.searcher.embedder, today=lambda: TODAY
    )
    found = searcher.search(Query(query, max_results=6)).hits
    assert found[0].path == path
    assert "date" in [part.name for part in found[0].explain.parts]


SAID = date(2026, 5, 2)  # a Saturday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("I am going to Singapore in July", "2026-07-01..2026-07-31"),
        ("I will be in Porto in July and August", "2026-08-01..2026-08-31"),
        ("I fly to Oslo next Friday", "2026-05-08..2026-05-08"),
        ("The demo is on Saturday (2026-05-09)", "2026-05-09..2026-05-09"),
        ("I'm on leave until September", "2026-09-01..2026-09-30"),
        ("This year I focus on Rust", "2026-01-01..2026-12-31"),
        ("七月我要去新加坡", "2026-07-01..2026-07-31"),
        ("我计划明年春天去日本", "2027-03-01..2027-05-31"),
        ("合同到2026年12月31日截止", "2026-12-31..2026-12-31"),
        ("I went to Singapore in July", ""),
        ("We decided this month to use Postgres", ""),
        ("We use Postgres starting 2026-08-01", ""),
        ("From July 2026 on we use Postgres", ""),
        ("I will call the bank on Tuesday", "2026-05-05..2026-05-05"),
        ("Biscuit is going to the vet on Tuesday", "2026-05-05..2026-05-05"),
        ("下午开会，周二要交报告", "2026-05-05..2026-05-05"),
        ("we had to let Biscuit go on Tuesday", ""),
        ("bumped max_connections to 350 after the pool starvation on friday", ""),
        ("ran 49:58 on Sunday, finally under 50!", ""),
        ("Yoga with Delphine on Monday nights", ""),
        ("周一素食日取消了，孩子不干", ""),
        ("周三是无会议日", ""),
        ("从7月起我们用 Postgres", ""),
        ("Mia's birthday is July 5", ""),
        ("我生日是7月5日", ""),
        ("The gateway listens on port 2049", ""),
        ("I prefer tabs", ""),
    ],
)
def test_a_plan_is_a_statement_that_looks_ahead_to_days(text: str, days: str) -> None:
    found = planned_for(text, SAID)
    assert (f"{found[0]}..{found[1]}" if found else "") == days


def test_a_plan_is_past_when_its_last_day_is_over() -> None:
    plan = "I am going to Singapore in July"
    assert past_plan(plan, SAID, date(2026, 7, 31)) is None
    assert past_plan(plan, SAID, date(2026, 8, 1)) == "2026-07"
    assert past_plan(f"# Travel\n- {plan}\n- I prefer window seats", SAID, date(2026, 8, 1)) is None
    assert past_plan(plan, None, date(2026, 8, 1)) is None


@pytest.mark.parametrize(
    ("query", "day", "rest"),
    [
        ("What was my stack last spring?", "2025-05-31", "What was my stack ?"),
        ("Which editor did I use last winter?", "2026-02-28", "Which editor did I use ?"),
        ("去年春天我用什么编辑器？", "2025-05-31", "我用什么编辑器？"),
        ("what was my stack in 2024?", "2024-12-31", "what was my stack ?"),
        ("2024年我住在哪里", "2024-12-31", "我住在哪里"),
        ("where did I work in February 2026", "2026-02-28", "where did I work "),
        ("where did I work in October?", "2025-10-31", "where did I work ?"),
        ("十月我在哪里上班？", "2025-10-31", "我在哪里上班？"),
        ("are we going to Lisbon in October?", "", ""),
        ("do I have a dentist appointment in October?", "", ""),
        ("十月我们要去里斯本吗？", "", ""),
        ("what's the rent in October?", "", ""),
        ("五月的校外教學還去動物園嗎？", "", ""),
        ("what did Mia say yesterday?", "", ""),
        ("what is planned for next spring?", "", ""),
        ("last summer or last spring?", "", ""),
        ("which service uses port 2024?", "", ""),
    ],
)
def test_a_question_names_the_past_month_season_or_year_that_it_is_about(
    query: str, day: str, rest: str
) -> None:
    found = past_question(query, TODAY)
    assert (found.day.isoformat(), found.text) == (day, rest) if found else not day


@given(st.text(), st.dates(date(1900, 1, 1), date(2100, 1, 1)))
def test_any_text_can_be_read_as_a_plan_or_a_question(text: str, day: date) -> None:
    plan, asked = planned_for(text, day), past_question(text, day)
    assert plan is None or plan[1] > day
    assert asked is None or asked.day < day


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("Mia ran 10 km on Friday", "Mia ran 10 km on Friday (2026-05-01)"),
        ("I need the report by Friday", "I need the report by Friday (2026-05-08)"),
        ("My flight is on Friday evening.", "My flight is on Friday evening (2026-05-08)."),
        ("I fly tomorrow morning.", "I fly tomorrow morning (2026-05-03)."),
        ("我周五晚上要去里昂", "我周五晚上（2026-05-08）要去里昂"),
        ("我明天下午要去里昂", "我明天下午（2026-05-03）要去里昂"),
    ],
)
def test_the_tense_says_which_weekday_is_meant(text: str, dated: str) -> None:
    assert add_dates(text, SAID) == dated
