"""Tests an environment whose prompt is rebuilt every turn."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from visenv.env import EpisodeLimits
from visenv.grammar import KeyValueGrammar
from visenv.rebuilt_prompt import RebuiltPrompt, SilentResults
from visenv.testing.toy import Add, Adder, Sums
from visenv.types import Message, Part


class SilentKeyValue(SilentResults, KeyValueGrammar):
    pass


class RebuiltAdder(RebuiltPrompt, Adder):
    @override
    def prompt(self) -> tuple[Part, ...]:
        totals = [call.detail.get("total", call.reason) for call in self.log.tool_calls]
        return (f"{self.sample.question} Turn {self.turn}: {totals}",)


def make() -> RebuiltAdder:
    return RebuiltAdder(
        source=Sums(), grammar=SilentKeyValue(), tools=[Add()], limits=EpisodeLimits(turns=4)
    )


def step(env: RebuiltAdder, text: str) -> Any:
    return env.step(text)[4]["step"]


def test_turns_have_one_message_and_replace_the_context() -> None:
    env = make()
    first = env.reset(seed=0)[1]["step"]
    question = env.sample.question
    assert first.messages == (Message("user", (f"{question} Turn 0: []",)),)
    assert first.request.context == "replace"
    result = step(env, "<think>a</think><tool>\nname: add\namount: 7\n</tool>")
    assert result.messages == (Message("user", (f"{question} Turn 1: [7]",)),)
    assert result.request.context == "replace"


def test_error_is_shown_by_the_next_prompt_alone() -> None:
    env = make()
    env.reset(seed=0)
    result = step(env, "<think>a</think><tool>\nname: add\namount: 700\n</tool>")
    ((text,),) = [message.parts for message in result.messages]
    assert isinstance(text, str)
    assert text.count("less than or equal to 99") == 1


def test_last_turn_is_followed_by_no_prompt() -> None:
    env = make()
    env.reset(seed=0)
    result = step(env, f"<think>a</think><answer>{env.sample.answers[0]}</answer>")
    assert result.is_over
    assert result.messages == ()
    assert result.request is None
