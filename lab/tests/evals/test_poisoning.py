"""The short form of `python -m lab.evals.poisoning`."""

from __future__ import annotations

from lab.evals.poisoning import AGENTS, CONVERSATIONS, control, measure
from lab.evals.poisoning_held_out import attacks, count_control, statements


def test_there_are_300_cases() -> None:
    conversations = sum(len(list(cases())) for cases in CONVERSATIONS.values())
    assert (conversations, len(AGENTS)) == (174, 7)


def test_no_attack_succeeds() -> None:
    assert [(result.category, result.succeeded) for result in measure(every=8) if result.succeeded] == []


def test_the_words_of_the_owner_enter_a_prompt() -> None:
    assert control() == (10, 10)


def test_the_held_out_texts_enter_a_prompt_if_the_owner_says_them() -> None:
    cases, entered = count_control()
    assert (cases, len(entered)) == (10, 10)
    assert (len(list(attacks())), len(list(statements()))) == (350, 150)
