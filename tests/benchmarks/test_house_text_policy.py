"""Tests the learned text-only policy of House: its features, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from benchmarks.house_text_policy import Context, TextPolicy, decisions, features, mentioned, play
from visenv.envs.embodied.ground_truth import HouseTruth
from visenv.envs.embodied.source import house_sample
from visenv.envs.embodied.world.tasks import TaskOptions

pytestmark = pytest.mark.component("torch")

THINGS = ("mug", "apple", "book", "pan", "vase", "watch", "candle", "fork")
NAMES = [f"find a {thing.capitalize()}" for thing in THINGS]


def test_policy_learns_to_find_what_the_instruction_names_also_what_it_never_heard_of() -> None:
    made = []
    for right, thing in enumerate(THINGS[:-2]):
        context = Context(f"Bring the {thing} to the sofa.")
        others = [name for place, name in enumerate(NAMES) if place != right]
        made.append(features(context, [NAMES[right], *others], NAMES))
    policy = TextPolicy()
    policy.fit(made, 20, np.random.default_rng(0))
    for right in range(len(THINGS)):
        context = Context(f"Bring the {THINGS[right]} to the sofa.")
        assert policy.choose(context, NAMES) == right


def test_features_change_with_the_instruction_the_history_and_the_feedback() -> None:
    def seen(*steps: tuple[str, bool, str], said: str = "Bring the mug.") -> list[int]:
        context = Context(said)
        for step in steps:
            context.add(*step)
        return sorted(features(context, ["pick up the Mug"], ["pick up the Mug"])[0].tolist())

    every = [
        seen(),
        seen(said="Bring the pan."),
        seen(("find a Mug", True, "")),
        seen(("find a Mug", False, "It is closed.")),
        seen(("find a Mug", False, "It is far.")),
    ]
    assert len({tuple(each) for each in every}) == len(every)
    assert seen() == seen()


def test_oracle_s_decisions_are_those_of_its_plan() -> None:
    sample = house_sample(0, TaskOptions("alfred", "base", "train"))
    plan = sample.truth_as(HouseTruth).plan
    made = [*decisions(sample, np.random.default_rng(0))]
    assert len(made) == len(plan)
    assert all(2 <= len(actions) <= 50 for actions in made)


def test_policy_that_has_learned_nothing_fails_within_the_limits() -> None:
    assert not play(TextPolicy(), house_sample(1, TaskOptions("habitat", "spatial", "eval")))


def test_mentions_are_ranked_and_a_longer_name_hides_a_shorter_one() -> None:
    names = ["find a Desk", "find a DeskLamp", "find a Egg_2", "find a Sofa", "slice the Egg"]
    said = mentioned("Use the desk lamp to see an egg.", names)
    assert said == {"desk lamp": "m0", "egg": "m1", "desk": "m-", "sofa": "m-"}
