"""Of two statements about the same thing, the newer one comes first and the older one is marked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.entries.relation import contradicts
from memoriter.entries.search import FoundEntries, judge_together
from memoriter.records import Answer, Explanation, Hit, Part
from memoriter.search.changes import reader
from memoriter.search.freshness import Lookup, asks_about_the_past, refresh

OpenMemory = Callable[..., Memory]
Note = Callable[[str, str], Path]


def hit(text: str, date: str | None = None, path: str = "memory/a.md", line: int = 1) -> Hit:
    citation = f"{path}#L{line}-L{line}"
    explain = Explanation("weighted", ())
    return Hit(path, line, line, 0.5, text, "memory", citation, explain, date=date, confidence=0.5)


def texts(query: str, *hits: Hit) -> list[tuple[str, bool]]:
    return [(one.snippet, bool(one.superseded_by)) for one in refresh(query, hits, Lookup(contradicts))]


PAIRS = [
    ("where do I live?", "I live in Leipzig", "I moved to Munich"),
    ("who is my manager?", "My manager is Torsten Beck", "My manager is now Priya Raman"),
    (
        "Which database does the shop use?",
        "The shop uses MySQL",
        "The shop now uses Postgres instead of MySQL",
    ),
    ("小区大门密码是多少？", "小区大门的密码是 4482", "小区大门的密码改成了 9035"),
]


@pytest.mark.parametrize(("query", "old", "new"), PAIRS)
def test_the_newer_statement_comes_first(query: str, old: str, new: str) -> None:
    assert texts(query, hit(old, "2026-03-01"), hit(new, "2026-07-01", "memory/b.md")) == [
        (new, False),
        (old, True),
    ]
    assert texts(query, hit(new, "2026-07-01"), hit(old, "2026-03-01", "memory/b.md")) == [
        (new, False),
        (old, True),
    ]


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        ("where did I live before?", "I live in Leipzig", "I moved to Munich"),
        ("小区大门以前的密码是什么？", "小区大门的密码是 4482", "小区大门的密码改成了 9035"),
    ],
)
def test_a_question_about_the_past_gets_the_older_statement_first(query: str, old: str, new: str) -> None:
    assert texts(query, hit(new, "2026-07-01"), hit(old, "2026-03-01", "memory/b.md")) == [
        (old, True),
        (new, False),
    ]


def test_without_dates_the_statement_that_announces_a_change_is_newer(
    open_memory: OpenMemory, note: Note
) -> None:
    note("memory/commits.md", "- 150 commits are merged into the main branch\n")
    note("memory/news.md", "- The commits in the main branch have now reached 165\n")
    memory = open_memory(embedding__provider="local", search__rerank=True)
    found = memory.search("How many commits are merged into the main branch?").hits
    assert [hit.path for hit in found] == ["memory/news.md", "memory/commits.md"]


def test_later_lines_of_a_daily_log_are_newer() -> None:
    query, path = "who is my manager?", "memory/2026-03-01.md"
    old = hit("- 09:00 My manager is Torsten Beck", "2026-03-01", path, 3)
    new = hit("- 17:00 My manager is Priya Raman", "2026-03-01", path, 9)
    assert [one.start_line for one in refresh(query, (old, new), Lookup(contradicts))] == [9, 3]


@pytest.mark.requirement("X17")
@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        ("What is Larkspur?", "Larkspur is an app for plants", "The launch of Larkspur moved to 24 November"),
        ("What do I eat?", "I eat rice for lunch", "I eat bread for breakfast"),
        ("我家有什么宠物？", "家里的橘猫叫豆包", "新养的柯基叫芝麻"),
    ],
)
def test_statements_about_different_things_stay_as_they_are(query: str, one: str, other: str) -> None:
    hits = (hit(one, "2026-03-01"), hit(other, "2026-07-01", "memory/b.md"))
    assert refresh(query, hits, Lookup(contradicts)) == hits


@given(
    st.text(max_size=40),
    st.lists(
        st.tuples(st.text(max_size=60), st.sampled_from([None, "2026-01-01", "2026-02-02"])), max_size=12
    ),
)
def test_no_hit_is_lost_or_added(query: str, drawn: list[tuple[str, str | None]]) -> None:
    hits = tuple(hit(text, day, f"memory/{number}.md") for number, (text, day) in enumerate(drawn))
    found = refresh(query, hits, Lookup(contradicts))
    assert sorted(one.path for one in found) == sorted(one.path for one in hits)
    assert {one.superseded_by for one in found} - {None} <= {one.citation for one in hits}


def test_questions_about_the_past_are_recognised() -> None:
    asked = (
        "Who was my previous manager?",
        "what did I use to drink",
        "我之前的医生是谁",
        "Which plumber worked for us before?",
        "who is my manager?",
        "what do hotfixes need before they go out?",
    )
    assert [asks_about_the_past(query) for query in asked] == [True, False, True, True, False, False]


@pytest.mark.requirement("X17")
def test_a_search_marks_the_older_note_and_recall_leaves_it_out(open_memory: OpenMemory, note: Note) -> None:
    note("memory/2026-03-01.md", "My manager is Torsten Beck.\n")
    note("memory/2026-07-01.md", "My manager is now Priya Raman.\n")
    memory = open_memory(retrieval__min_confidence=0.01)
    found = memory.search("who is my manager?")
    assert [(one.path, one.superseded_by) for one in found.hits] == [
        ("memory/2026-07-01.md", None),
        ("memory/2026-03-01.md", "memory/2026-07-01.md#L1-L1"),
    ]
    assert [line.text for line in memory.recall("who is my manager?").lines] == [
        "My manager is now Priya Raman."
    ]
    past = memory.recall("who was my manager before?").lines
    assert "My manager is Torsten Beck." in [line.text for line in past]


def test_text_from_outside_never_replaces_the_owners() -> None:
    old = hit("My manager is Torsten Beck", "2026-03-01")
    new = hit("My manager is now Priya Raman", "2026-07-01", "memory/b.md")
    outside = replace(new, trust="untrusted")
    assert refresh("who is my manager?", (old, outside), Lookup(contradicts)) == (old, outside)
    assert texts("who is my manager?", old, new) == [(new.snippet, False), (old.snippet, True)]


@pytest.mark.parametrize(
    ("query", "old", "new", "others"),
    [
        (
            "Where do I work?",
            "I work as a cook at the Harbour Inn",
            "I left the Harbour Inn and cook at Café Linde from Monday on",
            ["The inn by the lake has a new terrace", "Harbour tour booked for Saturday"],
        ),
        (
            "上班坐哪趟车？",
            "上班坐 12 路公交",
            "12 路停了，以后上班坐地铁 3 号线",
            ["公交卡在门口的抽屉里", "周末去爬山"],
        ),
    ],
)
def test_a_change_is_found_although_it_shares_no_word_with_the_question(
    query: str, old: str, new: str, others: list[str], open_memory: OpenMemory, note: Note
) -> None:
    for day, text in enumerate([old, *others, new], 1):
        note(f"memory/2026-03-{day:02}.md", f"- {text}\n")
    memory = open_memory(embedding__provider="local", search__rerank=True)
    first, second = memory.search(query).hits[:2]
    assert [(one.snippet, one.date) for one in (first, second)] == [
        (f"- {new}", "2026-03-04"),
        (f"- {old}", "2026-03-01"),
    ]
    assert sum(part.contribution for part in first.explain.parts) == pytest.approx(first.score)
    recalled = memory.recall(query).lines
    assert recalled[0].text == f"- {new}"
    assert len(recalled) == 1 or [line.date for line in recalled] == ["2026-03-04", "2026-03-01"]


def test_a_newer_statement_about_another_person_replaces_nothing(open_memory: OpenMemory, note: Note) -> None:
    note("memory/2026-03-01.md", "- My shoe size is 42\n")
    note("memory/2026-04-01.md", "- My son's shoe size is 31\n")
    note("memory/2026-05-01.md", "- Picked up the repaired bicycle\n")
    memory = open_memory(embedding__provider="local", search__rerank=True)
    found = memory.search("which shoe size do I have?")
    assert [(one.snippet, one.superseded_by) for one in found.hits][:1] == [("- My shoe size is 42", None)]


def test_a_recall_leaves_out_only_the_replaced_notes_of_an_external_engine() -> None:
    """Such hits have no chunk and no confidence of their own."""
    other = hit("The shop is closed on Mondays", "2026-05-01", "memory/c.md")
    found = (
        hit("I moved to Munich", "2026-07-01", "memory/b.md"),
        other,
        hit("I live in Leipzig", "2026-03-01"),
    )
    notes = judge_together(
        "where do I live?", Answer(found, "qmd", ""), FoundEntries(()), Lookup(contradicts)
    )
    assert [note.confidence for note in notes] == [None, None, 0.0]


JUDGE = reader()


@dataclass
class Certain:
    """A judge that says the same of every pair."""

    chance: float

    def out_of_date(self, earlier: str, later: str) -> float:
        return self.chance

    def problem(self) -> None:
        return None


def near(one: Hit, cosine: float) -> Hit:
    """Return a hit as a search for similar lines finds it."""
    return replace(one, explain=Explanation("similar", (Part("vector", cosine, 1.0, cosine),)))


def test_a_newer_line_of_an_agent_comes_along_behind_the_owners() -> None:
    old = hit("I take the tram to work", "2026-03-01")
    told = hit("I no longer take the tram to work, I cycle", "2026-07-01", "memory/b.md")
    for trust, order in (("owner", [told, old]), ("agent", [old, told]), ("untrusted", [old])):
        newer = replace(told, trust=trust, confidence=None)
        lookup = Lookup(contradicts, lambda _line, _hit, newer=newer: [near(newer, 0.8)], JUDGE)
        found = refresh("how do I get to work?", (old,), lookup)
        assert [one.snippet for one in found] == [one.snippet for one in order]
        assert found[-1].superseded_by is None or trust == "owner"


def test_newer_lines_are_looked_for_near_every_hit_that_may_be_recalled() -> None:
    hits = [
        replace(
            hit(f"Note {number} about lunch", f"2026-03-0{number}", f"memory/{number}.md"), confidence=sure
        )
        for number, sure in enumerate((0.9, 0.5, 0.1, 0.8), 1)
    ]
    asked = list[str]()

    def find_similar(line: str, _hit: Hit) -> list[Hit]:
        asked.append(line)
        return []

    refresh("what is for lunch?", hits, Lookup(contradicts, find_similar, JUDGE))
    assert asked == ["Note 1 about lunch", "Note 2 about lunch", "Note 4 about lunch"]
    asked.clear()
    refresh("thanks", [replace(hits[0], confidence=0.01)], Lookup(contradicts, find_similar, JUDGE))
    assert asked == []


def test_a_recall_finds_newer_entries_that_were_added_after_its_first(open_memory: OpenMemory) -> None:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    assert memory.recall("how do I get to work?").lines == ()
    memory.remember("I take the tram to work")
    memory.remember("The tram pass is cancelled, since June it is the bicycle", trust="agent")
    recalled = [line.text for line in memory.recall("how do I get to work?").lines]
    assert recalled == [
        "I take the tram to work",
        "The tram pass is cancelled, since June it is the bicycle",
    ]


def test_beside_a_line_that_surely_answers_others_must_be_likelier_too(
    open_memory: OpenMemory, note: Note
) -> None:
    note("memory/tea.md", "- I drink green tea every morning\n")
    note("memory/milk.md", "- The milk tea shop opens at nine in the morning\n")
    memory = open_memory(embedding__provider="local", search__rerank=True)
    found = {hit.path: hit.confidence or 0.0 for hit in memory.search("what do I drink every morning?").hits}
    lines = [line.text for line in memory.recall("what do I drink every morning?").lines]
    assert found["memory/tea.md"] > 0.6
    assert lines == ["- I drink green tea every morning"]


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        (
            "what's the frame number of my bike?",
            "My bike is a dark green Canyon Grail with the frame number WTC117K",
            "Changed the brake pads of the bike.",
        ),
        (
            "What's the phone number of my dentist?",
            "Dentist: Dr. Aydin, Sonnenstraße 12, phone 089 555 0142",
            "换了家庭医生，新医生是施密特大夫，诊所在玫瑰海默广场旁边。",
        ),
    ],
)
def test_a_newer_line_that_is_not_near_and_does_not_answer_stays_out(
    query: str, old: str, new: str, open_memory: OpenMemory, note: Note
) -> None:
    note("memory/2026-03-01.md", f"- {old}\n")
    note("memory/2026-07-01.md", f"- {new}\n")
    memory = open_memory(embedding__provider="local", search__rerank=True)
    assert [line.text for line in memory.recall(query).lines] == [f"- {old}"]


def test_a_newer_line_that_is_not_near_comes_along_if_it_answers() -> None:
    old = hit("Season ticket: we get the company discount, 30 % off", "2026-03-01")
    told = hit("The company stopped paying for our train tickets", "2026-07-01", "memory/b.md")
    found = [
        refresh(
            "do we get a discount on the season ticket?",
            (old,),
            Lookup(
                contradicts,
                lambda _line, _hit: [near(told, 0.4)],
                Certain(0.95),
                lambda _q, _l, sure=sure: sure,
            ),
        )
        for sure in (-4.0, -2.0)
    ]
    assert [len(hits) for hits in found] == [1, 2]


def test_the_newest_of_three_lines_that_replace_each_other_comes_first() -> None:
    first = hit("I take the tram to work", "2026-03-01")
    second = hit("I no longer take the tram to work, I cycle", "2026-05-01", "memory/b.md")
    third = hit("I stopped cycling to work, I walk now", "2026-07-01", "memory/c.md")
    newer = {first.snippet: second, second.snippet: third}

    def find_similar(line: str, _hit: Hit) -> list[Hit]:
        return [near(newer[line], 0.8)] if line in newer else []

    found = refresh("how do I get to work?", (first,), Lookup(contradicts, find_similar, Certain(0.99)))
    assert [one.snippet for one in found] == [third.snippet, second.snippet, first.snippet]
    assert {one.confidence for one in found} == {0.5}


def test_a_newer_line_enters_a_prompt_with_the_older_one_even_if_only_one_may(
    open_memory: OpenMemory,
) -> None:
    memory = open_memory(embedding__provider="local", search__rerank=True)
    memory.remember("I take the tram to work")
    memory.remember("The tram pass is cancelled, since June it is the bicycle", trust="agent")
    recalled = memory.recall("how do I get to work?", entries=1).lines
    assert [(line.text, bool(line.date)) for line in recalled] == [
        ("I take the tram to work", True),
        ("The tram pass is cancelled, since June it is the bicycle", True),
    ]


def test_a_newer_line_in_another_language_needs_no_words_in_common() -> None:
    old = hit("Season ticket: we get the company discount, 30 % off", "2026-03-01")
    told = hit("公司不再给年票打折了", "2026-07-01", "memory/b.md")
    other = hit("Season tickets are checked on every train", "2026-05-01", "memory/c.md")
    lookup = Lookup(contradicts, lambda _line, _hit: [near(other, 0.5), near(told, 0.41)], JUDGE)
    found = refresh("do we get a discount on the season ticket?", (old,), lookup)
    assert [one.snippet for one in found] == [told.snippet, old.snippet]


@pytest.mark.parametrize(
    ("change", "leads", "trails"), [(0.05, 5.0, 3.0), (0.5, -4.0, -8.0), (0.9, -13.0, -18.0)]
)
def test_the_surer_the_change_the_better_the_older_line_must_answer_to_stay_first(
    change: float, leads: float, trails: float
) -> None:
    old = hit("Theo painted the boat", "2026-03-01")
    told = hit("The boat lies in Kappeln", "2026-07-01", "memory/b.md")
    newer = replace(
        told,
        explain=Explanation("similar", (Part("vector", 0.6, 1.0, 0.6), Part("keyword", 0.1, 1.0, 0.1))),
    )

    def first(lead: float) -> str:
        logits = {old.snippet: 0.0, told.snippet: lead}
        lookup = Lookup(
            contradicts, lambda _line, _hit: [newer], Certain(change), lambda _query, line: logits[line]
        )
        return refresh("who painted the boat?", (old, told), lookup)[0].snippet

    assert (first(leads), first(trails)) == (told.snippet, old.snippet)


def test_a_newer_line_that_only_comes_along_pushes_no_sure_hit_down() -> None:
    old = replace(hit("I take the tram to work", "2026-03-01"), confidence=0.6)
    sure = replace(hit("My tram ticket is valid in all zones", "2026-03-02", "memory/c.md"), confidence=0.5)
    weak = replace(hit("The tram stop has a bench", "2026-03-02", "memory/d.md"), confidence=0.1)
    told = hit("Pass cancelled, bicycle from June on", "2026-07-01", "memory/b.md")

    def find_similar(line: str, _hit: Hit) -> list[Hit]:
        return [near(replace(told, trust="agent"), 0.8)] if line == old.snippet else []

    lookup = Lookup(contradicts, find_similar, JUDGE)
    found = refresh("how do I get to work?", (old, sure, weak), lookup)
    assert [one.snippet for one in found] == [one.snippet for one in (old, sure, told, weak)]


@pytest.mark.parametrize(
    ("chance", "count", "is_brought"), [(0.8, 3, True), (0.8, 6, False), (0.95, 6, True)]
)
def test_where_many_lines_are_as_near_only_a_sure_change_is_newer(
    chance: float, count: int, is_brought: bool
) -> None:
    old = hit("Ran along the canal before work", "2026-03-01")
    told = hit("Ran along the river before work", "2026-07-01", "memory/b.md")
    runs = [
        hit(f"Ran {km} km after work", f"2026-02-0{km}", f"memory/run{km}.md") for km in range(1, count + 1)
    ]
    similar = [near(told, 0.85), *(near(run, 0.7) for run in runs)]
    lookup = Lookup(contradicts, lambda _line, _hit: similar, Certain(chance))
    found = refresh("where do I run before work?", (old,), lookup)
    assert (told.snippet in [one.snippet for one in found]) is is_brought
