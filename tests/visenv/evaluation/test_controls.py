"""Tests the effect of each control in every registered environment."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

from tests.environments import IDS, few, with_components
from visenv.env import VisEnv
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.evaluation.controls import CONTROLS, NoImage, ShuffledResults, controlled
from visenv.evaluation.rescore import Rescorer
from visenv.policies.oracle import OraclePolicy
from visenv.policies.random import RandomPolicy
from visenv.rollout import Env, EpisodeSpec, MakeEnv, play
from visenv.testing import toy
from visenv.types import Episode, Message, Sample, ToolCalled, all_images

ZOOM = "visenv/ZoomVQA-v0"
WITH_TOOLS = [name for name in IDS if "/Argos" not in name]
# Tasks that are solved by calls: without tools their oracle can only give up.
ACTING = ("visenv/House-v0", "visenv/EBAlfred-v0", "visenv/EBHabitat-v0")
WITH_IMAGES = [name for name in IDS if name != "visenv/ArmIF-v0"]


def maker(env_id: str, **options: Any) -> MakeEnv:
    return lambda: gym.make(env_id, **options)


def played(env: Env, policy: Any = None, seed: int = 0) -> Episode:
    return asyncio.run(play(env, policy or OraclePolicy(), EpisodeSpec(seed)))


def first_messages(env: Env, seed: int = 0) -> tuple[Message, ...]:
    _, info = env.reset(seed=seed)
    messages: tuple[Message, ...] = info["step"].messages
    return messages


def text_of(messages: tuple[Message, ...]) -> str:
    return "\n".join(part for each in messages for part in each.parts if isinstance(part, str))


# ------------------------------------------------------------------------------------- no image


@pytest.mark.slow
@pytest.mark.parametrize("env_id", WITH_IMAGES)
def test_control_no_image_removes_every_image_and_no_text(env_id: str) -> None:
    make = maker(env_id, preset="tiny")
    plain, blind = played(make()), played(controlled(make, "no_image")())
    assert plain.images
    assert blind.images == blind.videos == ()
    assert text_of(blind.messages) == text_of(plain.messages)
    # The tools still work: only the observations have changed.
    assert [turn.events for turn in blind.turns] == [turn.events for turn in plain.turns]
    assert blind.reward == plain.reward


def test_control_no_image_removes_the_images_of_the_observation() -> None:
    env = controlled(maker(ZOOM, preset="tiny"), "no_image")()
    observation, _ = env.reset(seed=0)
    assert observation["images"] == ()
    assert "<image>" not in observation["text"]


def test_message_that_was_only_an_image_stays_as_a_message() -> None:
    picture = played(gym.make(ZOOM, preset="tiny")).images[0]
    wrapper = NoImage(gym.make(toy.register()))
    assert wrapper.messages((Message("user", (picture,)),)) == (Message("user", ("",)),)


# ------------------------------------------------------------------------------------- no tool


@pytest.mark.slow
@pytest.mark.parametrize("env_id", WITH_TOOLS)
def test_control_no_tool_leaves_one_turn_and_a_prompt_without_tools(env_id: str) -> None:
    make = maker(env_id)
    plain = make()
    base = plain.unwrapped
    assert isinstance(base, VisEnv)
    env = controlled(make, "no_tool")()
    shown, plain_shown = text_of(first_messages(env)), text_of(first_messages(plain))
    assert base.tools
    for tool in base.tools.values():
        assert tool.description in plain_shown
        assert tool.description not in shown
    assert base.sample.question in shown
    assert all_images(first_messages(env)) == all_images(first_messages(plain))

    env.reset(seed=0)
    controlled_base = env.unwrapped
    assert isinstance(controlled_base, VisEnv)
    call = base.grammar.compose(base.oracle_turn())
    _, _, terminated, truncated, info = env.step(call)
    calls = [each for each in info["step"].events if isinstance(each, ToolCalled)]
    assert not any(each.ok for each in calls)
    assert terminated or truncated


@pytest.mark.parametrize("env_id", with_components(ACTING, "mujoco", "osmesa"))
def test_oracle_of_a_task_that_needs_actions_gives_up_without_tools(env_id: str) -> None:
    episode = played(controlled(maker(env_id, preset="tiny"), "no_tool")())
    assert (episode.status, len(episode.turns)) == ("terminated", 1)
    assert episode.metrics["success"] == 0.0


@pytest.mark.parametrize(
    "env_id", with_components([name for name in WITH_TOOLS if name not in ACTING], "torch")
)
def test_oracle_answers_without_tools(env_id: str) -> None:
    episode = played(controlled(maker(env_id, preset="tiny"), "no_tool")())
    assert (episode.status, len(episode.turns)) == ("terminated", 1)
    assert episode.metrics["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("env_id", "option"),
    [(ZOOM, {"tool_calls": 0})] + [(name, {"mode": "no_tool"}) for name in IDS if "/Arm" in name],
    ids=str,
)
def test_control_no_tool_is_the_option_that_a_task_declares(env_id: str, option: Any) -> None:
    control = controlled(maker(env_id, preset="tiny"), "no_tool")()
    assert played(control).turns == played(gym.make(env_id, preset="tiny", **option)).turns


# ------------------------------------------------------------------------------------- results


def test_shuffled_results_show_the_crop_of_another_sample() -> None:
    make = maker(ZOOM, preset="tiny")
    plain, shuffled = played(make()), played(controlled(make, "shuffled_results")())
    view, crop = plain.images
    shown_view, shown_crop = shuffled.images
    assert shown_view == view
    assert shown_crop != crop
    # The log and the rewards use the policy's own call.
    assert shuffled.turns[0].events == plain.turns[0].events
    assert shuffled.metrics == plain.metrics


def test_shuffled_results_are_those_that_the_other_episode_shows() -> None:
    wrapper = controlled(maker(ZOOM, preset="tiny"), "shuffled_results")()
    assert isinstance(wrapper, ShuffledResults)
    episode = played(wrapper)
    other = wrapper._other._env
    assert other.sample.id != episode.sample_id
    results = [image for name, image in other.store.images.items() if name != "input_image"]
    assert episode.images[1] in results


def test_shuffled_results_depend_on_the_sample_alone() -> None:
    make = controlled(maker(ZOOM, preset="tiny"), "shuffled_results")
    env = make()
    first, _, again = (played(env, seed=seed) for seed in (3, 4, 3))
    assert first == again == played(make(), seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", WITH_TOOLS)
@pytest.mark.parametrize(
    "policy", few([OraclePolicy(), RandomPolicy()], 1), ids=["oracle", "random"]
)
def test_shuffled_results_keep_events_in_every_environment(env_id: str, policy: Any) -> None:
    make = maker(env_id, preset="tiny")
    for seed in range(3):
        plain = played(make(), policy, seed)
        shuffled = played(controlled(make, "shuffled_results")(), policy, seed)
        calls = [each for each in plain.turns[0].events if isinstance(each, ToolCalled)]
        again = [each for each in shuffled.turns[0].events if isinstance(each, ToolCalled)]
        assert [each.ok for each in again] == [each.ok for each in calls]
        assert shuffled.failure is None


def test_call_that_fails_still_shows_its_own_error() -> None:
    from visenv.policies.scripted import ScriptedPolicy

    outside = "<think>a</think><tool>\nname: zoom\nkeypoint: [9999, 0]\n</tool>"
    script = ScriptedPolicy([outside, "<think>b</think><answer>1</answer>"])
    make = maker(ZOOM, preset="tiny")
    plain, shuffled = played(make(), script), played(controlled(make, "shuffled_results")(), script)
    assert text_of(shuffled.messages) == text_of(plain.messages)
    assert "outside the image" in text_of(shuffled.messages)


def test_shuffled_results_need_a_second_sample() -> None:
    class One:
        def sample(self, rng: Any) -> Sample:
            from visenv.testing.toy import SumTruth

            return Sample("one", "Add 1, then 2.", (), ("3",), "sum", SumTruth(add=(1, 2)))

    env = gym.make(toy.register())
    wrapper = ShuffledResults(env)
    for base in (env.unwrapped, wrapper._other._env):
        assert isinstance(base, VisEnv)
        base.source = One()
    assert played(wrapper).failure is not None
    wrapper.reset(seed=0)
    with pytest.raises(DataError, match="at least 2 samples"):
        wrapper.step("<think>a</think><tool>\nname: add\namount: 1\n</tool>")


# ------------------------------------------------------------------------------------- random crop


def test_random_crop_is_another_place_that_the_sample_fixes() -> None:
    make = maker(ZOOM, preset="tiny")
    control = controlled(make, "random_crop")
    random = [played(control(), seed=seed) for seed in range(6)]
    hits = [each.metrics["hit"] for each in random]
    assert sum(hits) < 6 == sum(played(make(), seed=seed).metrics["hit"] for seed in range(6))
    assert random[0] == played(gym.make(ZOOM, preset="tiny", zoom="random"))


# ------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("control", [*CONTROLS, "random_crop"])
def test_control_is_part_of_the_spec_and_of_saved_episodes(control: str) -> None:
    env = controlled(maker(ZOOM, preset="tiny"), control)()
    episode = played(env)
    restored = gym.make(EnvSpec.from_json(episode.env_spec))
    assert played(restored) == episode
    assert Rescorer().rescore(episode).reward == episode.reward
    assert played(pickle.loads(pickle.dumps(env))) == episode


def test_unknown_control_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'no_tool'.*random_crop"):
        controlled(maker(ZOOM, preset="tiny"), "no_tol")
    with pytest.raises(UnknownNameError, match="control of ArmZoom"):
        controlled(maker("visenv/ArmZoom-v0", preset="tiny"), "random_crop")


@pytest.mark.parametrize("control", ["no_tool", "shuffled_results"])
def test_environment_without_tools_has_only_the_blind_control(control: str) -> None:
    make = maker(ZOOM, preset="tiny", tool_calls=0)
    with pytest.raises(ConfigurationError, match="its control is 'no_image'"):
        controlled(make, control)
    assert not played(controlled(make, "no_image")()).images
