"""Tests how single sentences are read: two facts, contrasts, negations, and facts about others."""

from __future__ import annotations

import pytest

from visenv.envs.argos.world.asked import Asked
from visenv.envs.argos.world.conclusions import entailed
from visenv.envs.argos.world.things import COLORS

PAIR = ("red ball", "blue cube")
NUMBERS = ("1", "2", "3", "4")


def conclusion(relation: str, text: str) -> str | None:
    """Return the answer that follows about a red ball and a blue cube."""
    subject = "ball" if relation in ("color", "number") else "red ball"
    options = {
        "color": tuple(COLORS),
        "number": NUMBERS,
        "side": ("left", "right"),
        "presence": ("yes", "no"),
    }
    asked = Asked(relation=relation, subject=subject, other="blue cube", conclusion="")
    return entailed(text, asked, options.get(relation, PAIR), 0.25)


@pytest.mark.parametrize(
    ("relation", "text", "answer"),
    [
        ("depth", "The red ball isn't behind the blue cube.", "red ball"),
        ("depth", "The red ball hides behind the blue cube.", "blue cube"),
        ("depth", "The blue cube disappears behind the red ball.", "red ball"),
        ("depth", "The red ball is closer, since it covers the blue cube.", "red ball"),
        ("color", "The ball is not green but red.", "red"),
        ("color", "The ball isn't blue; it's red.", "red"),
        ("color", "Although the cube is green, the ball is red.", "red"),
        ("number", "There are two red balls and one blue ball.", "3"),
        ("number", "There are three balls, not four.", "3"),
        ("number", "There are three balls and two cubes.", "3"),
        ("side", "The blue cube has the red ball on its left.", "left"),
        ("side", "The blue cube is to the right of the red ball.", "left"),
        ("order", "When the blue cube enters, the red ball is already there.", "red ball"),
        ("order", "Before the blue cube appears, the red ball appears.", "red ball"),
        ("order", "After the red ball, the blue cube comes in.", "red ball"),
        ("order", "The red ball enters in frame 7 and the blue cube in frame 6.", "blue cube"),
        ("presence", "There is a ball that is red.", "yes"),
        ("presence", "None of them is both red and a ball, so there is no red ball.", "no"),
        ("presence", "The only ball is blue.", "no"),
    ],
)
def test_sentence_decides(relation: str, text: str, answer: str) -> None:
    assert conclusion(relation, text) == answer


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        ("depth", "The claim that the red ball is in front is false."),
        ("depth", "Nothing suggests that the red ball is in front."),
        ("depth", "The red ball and the blue cube are both in front."),
        ("depth", "The red ball is in front of the camera and so is the blue cube."),
        ("color", "The ball is red and green."),
        ("color", "A red ball is what the question asks about."),
        ("color", "The cube is red."),
        ("number", "Three of the balls are red."),
        ("number", "There are more balls than three."),
        ("number", "There are no more than three balls."),
        ("number", "I see a ball on the left and two balls on the right."),
        ("number", "There are three balls if one ignores the red one."),
        ("side", "The red ball is left of the picture's center."),
        ("order", "The red ball leaves first."),
        ("presence", "There's a red cube."),
    ],
)
def test_sentence_does_not_decide(relation: str, text: str) -> None:
    assert conclusion(relation, text) is None


def test_negated_bound_is_the_opposite_bound() -> None:
    assert conclusion("number", "There are not more than one ball.") == "1"
    assert conclusion("number", "There are at least four balls.") == "4"
    assert conclusion("number", "There are not fewer than four balls.") == "4"


def test_last_sentence_that_decides_counts() -> None:
    assert (
        conclusion("color", "The ball is red. No, the ball is blue. It was hard to see.") == "blue"
    )
