"""Tests that reasoning which a server splits off is read as if the server had not split it off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.grammar import KeyValueGrammar, ToolCallGrammar, ZoomInThinkGrammar
from visenv.grammar.points import PointsGrammar
from visenv.policies.openai.policy import _whole_turn
from visenv.policies.openai.reasoning import SplitReply, asked_tag, joined
from visenv.scorers.chat import ChatChoice, ChatMessage
from visenv.types import Message, TurnRequest

ASKED = (Message("user", ("Reason inside <think></think> tags, then <answer></answer>.",)),)
PLAIN = (Message("user", ("What is it? Reply with JSON.",)),)
WHOLE = "<think>I count.</think><answer>4</answer>"
REQUEST = TurnRequest(stop=("</tool>", "</answer>"))


def turn(
    content: str | None,
    thought: str = "",
    finish: str = "stop",
    *,
    messages: tuple[Message, ...] = ASKED,
    request: TurnRequest = REQUEST,
    prefill: bool = False,
) -> str:
    """Return the turn that a policy makes of a server's reply."""
    reply = SplitReply(content or "", thought, finish == "length")
    choice = ChatChoice(message=ChatMessage(content=content), finish_reason=finish)
    return _whole_turn(joined(reply, messages, request, prefill), choice, request, prefill)[0]


@pytest.mark.parametrize(
    ("content", "thought", "whole"),
    [
        ("<answer>4</answer>", "I count.", "<think>I count.</think><answer>4</answer>"),
        ("\n\n<answer>4</answer>", "I count.\n", "<think>I count.\n</think>\n\n<answer>4</answer>"),
        ("<answer>4", "I count.", WHOLE),
        # The server took the whole reply for reasoning.
        ("", WHOLE, WHOLE),
        ("", "I count.</think><answer>4</answer>", WHOLE),
        ("", "<answer>4</answer>", "<answer>4</answer>"),  # there was no thought
        # The model wrote a thought of its own after the reasoning.
        ("<think>Yes.</think><answer>4</answer>", "Hm.", "<think>Yes.</think><answer>4</answer>"),
        # A tag inside the reasoning neither ends the turn nor is an action.
        (
            "<answer>5</answer>",
            "Maybe <answer>4</answer>?",
            "<think>Maybe <answer>4</answer>?</think><answer>5</answer>",
        ),
        ("<answer>4</answer>", "", "<answer>4</answer>"),
        ("", "", ""),
    ],
)
def test_turn_is_that_of_a_server_that_splits_nothing_off(
    content: str, thought: str, whole: str
) -> None:
    assert turn(content, thought) == whole


def test_reasoning_that_is_cut_is_an_open_thought() -> None:
    text = turn("", "I count the things", "length")
    assert text == "<think>I count the things"
    assert KeyValueGrammar().parse(text).problems[0].code == "thought_unclosed"
    assert turn(None, "I count", "length") == "<think>I count"
    # OpenAI's own reasoning models show no reasoning.
    assert turn(None, "", "length") == turn("", "", "length") == ""


def test_reasoning_is_left_out_if_no_thought_is_asked_for() -> None:
    request = TurnRequest()
    plan = '{"executable_plan": []}'
    assert turn(plan, "First I look.", messages=PLAIN, request=request) == plan
    assert turn("", plan, messages=PLAIN, request=request) == plan
    assert turn("", "First I", "length", messages=PLAIN, request=request) == ""


def test_prefill_that_opens_the_thought_is_continued() -> None:
    request = TurnRequest(prefill="<think> Let me see.", stop=REQUEST.stop)
    whole = "<think> Let me see. Two.</think><answer>2</answer>"
    assert turn("<answer>2</answer>", " Two.", request=request, prefill=True) == whole
    assert turn("<answer>2</answer>", "Two.", request=request) == (
        "<think>Two.</think><answer>2</answer>"
    )


def test_thought_with_a_zoom_is_a_turn() -> None:
    grammar = ZoomInThinkGrammar()
    request = TurnRequest(stop=grammar.stop)
    thought = "The sign is small. <zoom>[[1, 2, 30, 40]]</zoom>"
    for content in ("", "\n", "I zoom in."):  # the server removes the stop string </think>
        text = turn(content, thought, request=request)
        assert text == f"<think>{thought}</think>"
        assert len(grammar.parse(text).calls) == 1


def test_second_round_asks_for_another_tag() -> None:
    told = [
        Message("user", ("Write <think></think>, then <rethink></rethink>, <answer></answer>.",)),
        Message("assistant", ("<think>a</think>",)),
        Message("user", ("Round 2: write <rethink>...</rethink> and then <answer>...</answer>.",)),
    ]
    assert asked_tag(told[:1], TurnRequest()) == "think"
    assert asked_tag(told, TurnRequest()) == "rethink"
    text = turn("<answer>4</answer>", "Four.", messages=tuple(told))
    assert text == "<rethink>Four.</rethink><answer>4</answer>"


TEXT = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"])).filter(str.strip)


@given(TEXT, TEXT)
def test_grammars_read_the_joined_turn_as_the_whole_one(thought: str, answer: str) -> None:
    for grammar in (KeyValueGrammar(), ToolCallGrammar(), PointsGrammar()):
        request = TurnRequest(stop=grammar.stop)
        whole = f"<think>{thought}</think><answer>{answer}</answer>"
        split = turn(f"<answer>{answer}</answer>", thought, request=request)
        assert grammar.parse(split) == grammar.parse(whole)
        assert grammar.parse(turn("", whole, request=request)) == grammar.parse(whole)


@pytest.mark.parametrize(
    "message",
    [
        {"content": "4", "reasoning_content": "hm"},  # llama.cpp, SGLang, older vLLM
        {"content": "4", "reasoning": "hm"},  # vLLM, Ollama, OpenRouter
        {"content": "4", "thinking": "hm"},
        {"content": "4", "reasoning_content": None, "reasoning": "hm"},
    ],
)
def test_reasoning_is_read_under_the_names_of_all_servers(message: dict[str, object]) -> None:
    read = ChatMessage.model_validate(message)
    assert (read.content, read.thought) == ("4", "hm")


@pytest.mark.parametrize(
    ("content", "text", "thought"),
    [
        ([{"type": "text", "text": "4"}], "4", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab", ""),
        # Mistral's API.
        (
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True},
                {"type": "text", "text": "4"},
            ],
            "4",
            "hm",
        ),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"}], "4", "hm"),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}], "", "hm"),
        (["4"], "4", ""),
        ([], "", ""),
    ],
)
def test_content_of_parts_is_read_as_its_text(content: object, text: str, thought: str) -> None:
    read = ChatMessage.model_validate({"role": "assistant", "content": content})
    assert (read.content, read.thought) == (text, thought)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None, "refusal": "I cannot help with that."}, "I cannot help with that."),
        ({"content": "", "refusal": "No."}, "No."),
        ({"content": "4", "refusal": "No."}, "4"),
        ({"content": "4", "refusal": None}, "4"),
        ({"content": None, "refusal": None}, None),
        ({"content": None, "refusal": {"a": 1}}, None),
    ],
)
def test_refusal_is_the_text_of_a_reply(message: dict[str, object], text: str | None) -> None:
    assert ChatMessage.model_validate(message).content == text


def test_reasoning_that_is_no_text_is_ignored() -> None:
    read = ChatMessage.model_validate({"content": "4", "reasoning": {"effort": "low"}})
    assert (read.content, read.thought) == ("4", "")
