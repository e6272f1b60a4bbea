"""Tests that the texts of the tiny presets of ARFT are short in the tiny tokenizer."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import gymnasium as gym
import pytest

from visenv.envs.arft import make_coding, make_search
from visenv.envs.arft.search.world.tokens import WORDS
from visenv.envs.arft.world.tiny_images import COLORS
from visenv.policies.oracle import OraclePolicy
from visenv.registration import load
from visenv.rollout import EpisodeSpec, play

pytestmark = pytest.mark.component("transformers")

LIMIT = 64
"""Largest number of tokens of a turn in examples/train_visual_arft.py --tiny."""


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from visenv.policies.transformers import tiny

    return tiny.build_tokenizer(tiny.TinyConfig().vocab_size, load("vocabulary", "arft"))


def count(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False))


def test_words_and_tags_are_one_token_each(tokenizer: Any) -> None:
    for name in ("think", "search", "problem", "code", "answer", "information"):
        assert count(tokenizer, f"<{name}>") == count(tokenizer, f"</{name}>") == 1
    for word in {*COLORS, *WORDS} - {"Who", "Where"}:  # these are the first words of a question
        assert count(tokenizer, f" {word}") == 1, word


def test_steps_fit_the_vocabulary(tokenizer: Any) -> None:
    problems = ["rotation180", "dark", "none", "rotation180+dark"]
    envs: list[gym.Env[Any, str]] = [
        make_coding(preset="tiny", problems=problems),
        make_search(preset="tiny"),
    ]
    for env in envs:
        episodes = [asyncio.run(play(env, OraclePolicy(), EpisodeSpec(seed))) for seed in range(12)]
        assert [episode.reward for episode in episodes] == [pytest.approx(2.0)] * 12
        turns = [turn for episode in episodes for turn in episode.turns]
        longest = max(count(tokenizer, turn.text) for turn in turns)
        assert longest < LIMIT
        # No word of the environment's texts is split into bytes.
        shown = [message.plain() for turn in turns for message in turn.messages]
        pieces = [re.findall(r"<[^>]+>|[^\s<]+", text) for text in shown]
        assert max(map(lambda text, words: count(tokenizer, text) / len(words), shown, pieces)) < 5
