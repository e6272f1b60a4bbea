"""Tests the tokenizer of a tiny model, which is trained on the texts of episodes."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from tests import no_oracle
from tests.tiny_models import tiny_texts
from visenv.errors import RunError
from visenv.rollout import Mixture
from visenv.testing import toy
from visenv.types import Answered, Episode, Malformed, Message, Turn

pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.transformers.tiny_tokenizer import (
    TokenizerTexts,
    build_tokenizer,
    collect_texts,
    texts_of,
)

pytestmark = pytest.mark.component("torch", "transformers")


def episode(*turns: Turn) -> Episode:
    return Episode("e/E-v0", "s", "", 0, 0, 0, turns, "terminated")


def turn(text: str, *events: Any, shown: tuple[Any, ...] = ("What?",)) -> Turn:
    return Turn((Message("user", shown),), text, 0.0, events, "stop")


def count(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False))


def test_texts_are_those_between_the_control_tokens_of_the_template(talk: Any) -> None:
    shown = ("Look: ", "here", talk.picture(1), "\nWhat?")
    texts = texts_of([episode(turn("<answer>red</answer>", Answered(0, "red"), shown=shown))])
    assert texts.texts == ("user\nLook: here", "\nWhat?", "assistant\n<answer>red</answer>")


def test_malformed_turns_are_left_out_with_their_pieces() -> None:
    noise = turn("<zz>noise", Malformed(0, "no_action", "no answer"))
    answer = turn("<answer>red</answer>", Answered(0, "red"))
    texts = texts_of([episode(noise), episode(answer), episode(noise, answer)])
    assert not any("noise" in text for text in texts.texts)
    assert texts.pieces == ("</answer>", "<answer>")


def test_pieces_are_tags_and_keys_that_many_episodes_contain() -> None:
    plan = '{"thought": "red", "plan": [{"id": 3, "name": "find"}]}'
    often = [episode(turn(plan, Answered(0, ""))) for _ in range(30)]
    once = episode(turn("<rare>x</rare>", Answered(0, "")))
    texts = texts_of([*often, once])
    assert set(texts.pieces) == {'{"thought": "', '", "plan": [{"id": ', ', "name": "'}


def test_pieces_and_words_are_one_token_each() -> None:
    texts = tiny_texts()
    tokenizer = build_tokenizer(1024, texts)
    tags = {f"<{end}{name}>" for name in ("think", "tool", "answer") for end in ("", "/")}
    assert tags <= set(texts.pieces)
    for piece in (*texts.pieces, " stripes", " sign", "keypoint", " look"):
        assert count(tokenizer, piece) == 1, piece
    assert count(tokenizer, "57") == 2  # one token per digit, as in Qwen


def test_number_of_tokens_is_limited() -> None:
    tokenizer = build_tokenizer(300, tiny_texts())
    assert len(tokenizer) <= 300


def test_same_environment_gives_the_same_tokenizer() -> None:
    make_env = partial(gym.make, "visenv/ZoomVQA-v0", preset="tiny")
    first, second = (collect_texts(make_env, 4) for _ in range(2))
    assert first == second
    state = [build_tokenizer(512, texts).backend_tokenizer.to_str() for texts in (first, second)]
    assert state[0] == state[1]


def test_environment_without_an_oracle_is_played_at_random() -> None:
    texts = collect_texts(no_oracle.make, 40)
    turns = {text for text in texts.texts if text.startswith("assistant")}
    # A random turn is an answer, or noise that is left out.
    assert turns == {
        f"assistant\n<think> A guess. </think><answer>{color}</answer>"
        for color in no_oracle.COLORS
    }


def test_episodes_are_divided_among_the_environments() -> None:
    envs = {"a": no_oracle.make, "b": toy.make}
    texts = collect_texts(Mixture(envs, {"a": 1.0, "b": 9.0}), 8)
    questions = [text for text in texts.texts if text.endswith("Which color?")]
    sums = [text for text in texts.texts if "say the total" in text]
    assert (len(questions), len(sums)) == (4, 12)  # the second has an oracle and a teacher, too


def test_environment_that_aborts_every_episode_is_reported() -> None:
    with pytest.raises(RunError, match=r"tokenizer.*random policy was aborted.*no connection"):
        collect_texts(no_oracle.Broken, 2)


def test_tokenizer_needs_no_piece() -> None:
    tokenizer = build_tokenizer(512, TokenizerTexts(("red green",) * 4, ()))
    assert count(tokenizer, "red green") == 2
