"""Tests that right values follow from the question or the scene, and that wrong values do not."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from visenv.envs.arm.world.graded_pairs.topics import ResponseTopic, scene_topic, text_topic
from visenv.worlds.scenes import ScenesWorld

SMALL: dict[str, Any] = {"width": 256, "height": 256, "view_side": 128, "difficulty": 1.0}


def text_topics(count: int) -> list[ResponseTopic]:
    rng = np.random.default_rng(0)
    return [text_topic(rng) for _ in range(count)]


def answers_to(topic: ResponseTopic) -> list[str]:
    """Return the answers that follow from the words of the question alone."""
    question = topic.question
    if topic.kind == "numbers":
        numbers = [int(digits) for digits in re.findall(r"\d+", question)]
        return [str(min(numbers)), str(max(numbers)), str(sum(numbers))]
    if topic.kind == "word":
        [word] = re.findall(r'"(\w+)"', question)
        return [str(len(re.findall("[aeiou]", word))), list(word)[3], "".join(reversed(word))]
    if topic.kind == "people":
        [asked] = re.findall(r"How old is (\w+),", question)
        told = rf"{asked} is (\d+), works as a (\w+) and lives in (\w+)"
        return list(re.findall(told, question)[0])
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    [(today, back, ahead)] = re.findall(
        r"Today is (\w+)\..* (\d+) days ago.* in (\d+) days", question
    )
    place = days.index(today)
    return [(days * 4)[place + 7 - int(back)], (days * 4)[place + int(ahead)]]


def test_right_values_follow_from_the_question() -> None:
    topics = text_topics(400)
    assert set(Counter(topic.kind for topic in topics)) == {"numbers", "word", "people", "week"}
    for topic in topics:
        assert [fact.right for fact in topic.facts] == answers_to(topic)
        assert (topic.images, topic.signs) == ((), ())


def test_values_that_are_wrong_differ_and_statements_state_one_value() -> None:
    for topic in text_topics(200):
        assert len(topic.facts) >= 2
        for fact in topic.facts:
            assert fact.wrong
            assert fact.right not in fact.wrong
            assert len(set(fact.wrong)) == len(fact.wrong)
            assert len(fact.statements) >= 2
            assert all(statement.count("{}") == 1 for statement in fact.statements)


def test_ids_of_topics_differ() -> None:
    assert len({topic.id for topic in text_topics(400)}) == 400


@pytest.mark.component("opencv")
@pytest.mark.parametrize("signs", [1, 2, 5])
def test_topics_of_scenes_ask_for_each_sign_or_for_the_look_of_one(signs: int) -> None:
    world = ScenesWorld(
        "small", **{**SMALL, "difficulty": 1, "signs": (signs, signs), "detail": (8, 8)}
    )
    rng = np.random.default_rng(1)
    for _ in range(12):
        scene = world.sample(rng)
        there = scene.ground_truth.signs[:3]
        topic = scene_topic(scene)
        if len(there) == 1:
            looks = [scene.answers[0], there[0].frame, there[0].shape]
            assert [fact.right for fact in topic.facts] == looks
        else:
            assert [fact.right for fact in topic.facts] == [sign.answer for sign in there]
            for fact, sign in zip(topic.facts, there, strict=True):
                assert all(sign.name in statement for statement in fact.statements)
                assert sign.name in topic.question
        for fact in topic.facts:
            assert fact.right not in fact.wrong
        assert topic.question.startswith(scene.question)
        assert topic.images == scene.images
        assert topic.signs == tuple(there)
