"""Tests the turns of `VisEnv`: several calls, goals, limits, asynchronous tools, shared pixels."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typing_extensions import override

from tests.environments import IDS
from visenv.env import EpisodeLimits, VisEnv
from visenv.errors import ConfigurationError, ServiceError
from visenv.grammar import KeyValueGrammar, ParsedTurn, ToolCall
from visenv.policies.oracle import OraclePolicy
from visenv.rollout import Collector
from visenv.testing import toy
from visenv.tools.base import Store, Tool, ToolResult
from visenv.turn_execution import MOST_CALLS
from visenv.types import CallSkipped, Image, Message, Sample, ToolCalled, Truncated, Video


class Plans(KeyValueGrammar):
    """Reads a turn as a list of amounts, "1 2 x 3" (the call "x" fails), or as an answer, "= 6"."""

    @override
    def parse(self, text: str) -> ParsedTurn:
        if text.startswith("="):
            return ParsedTurn(answer=text[1:].strip())
        return ParsedTurn(
            calls=tuple(ToolCall("add", {"amount": _amount(w)}) for w in text.split())
        )


def _amount(word: str) -> Any:
    return int(word) if word.isdigit() else word


class Steps(toy.Add):
    """Adds amounts, and uses one environment step for each call."""

    @override
    def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:
        result = super().call(arguments, store)
        return result._replace(env_steps=1, ok=arguments.amount != 13, reason="unlucky")


class Planner(toy.Adder):
    """Reaches its goal at a total of 6."""

    @override
    def is_done(self) -> bool:
        calls = [call for call in self.log.tool_calls if call.ok]
        return super().is_done() or bool(calls and calls[-1].detail["total"] == 6)


class Careful(Planner):
    """Stops a plan at the first failed call."""

    @override
    def stop_calls(self, called: ToolCalled) -> str:
        return super().stop_calls(called) or ("" if called.ok else "an action failed")


def planner(kind: type[toy.Adder] = Planner, **limits: Any) -> VisEnv:
    return kind(
        source=toy.Sums(),
        grammar=Plans(),
        tools=[Steps()],
        limits=EpisodeLimits(**{"turns": 3, **limits}),
    )


def take(env: VisEnv, text: str) -> Any:
    env.reset(seed=0)
    return env.step(text)


def test_calls_of_a_turn_run_in_order() -> None:
    *_, info = take(planner(), "1 2 4")
    shown = info["step"].messages[0].plain()
    totals = ["total 1", "total 3", "total 7"]
    assert [shown.index(total) for total in totals] == sorted(map(shown.index, totals))
    assert [event.detail["total"] for event in info["step"].events[1:]] == [1, 3, 7]


def test_goal_ends_the_episode_and_stops_the_remaining_calls() -> None:
    env = planner()
    _, _, terminated, truncated, info = take(env, "1 5 2 3")
    assert (terminated, truncated) == (True, False)
    skipped = info["step"].events[-2:]
    assert skipped == (
        CallSkipped(0, "add", {"amount": 2}, "the task is done"),
        CallSkipped(0, "add", {"amount": 3}, "the task is done"),
    )
    assert "2 further calls of this turn were not carried out: the task is done." in (
        info["step"].messages[0].plain()
    )


def test_failed_call_does_not_stop_the_turn_by_default() -> None:
    *_, info = take(planner(), "1 x 2")
    assert [event.ok for event in info["step"].events[1:]] == [True, False, True]


@pytest.mark.parametrize("failure", ["x", "13"], ids=["refused", "failed in the world"])
def test_task_may_stop_the_turn_at_a_failed_call(failure: str) -> None:
    *_, info = take(planner(Careful), f"1 {failure} 2")
    kinds = [type(event).__name__ for event in info["step"].events]
    assert kinds == ["TurnTaken", "ToolCalled", "ToolCalled", "CallSkipped"]
    assert "1 further call of this turn was not carried out: an action failed." in (
        info["step"].messages[0].plain()
    )


def test_call_that_fails_in_the_world_is_shown_and_counts_as_invalid() -> None:
    _, _, _, truncated, info = take(planner(invalid_actions=1), "13")
    called = info["step"].events[1]
    assert (called.ok, called.reason, called.env_steps) == (False, "unlucky", 1)
    assert (truncated, info["truncated_by"]) == (True, "invalid actions")


def test_limit_of_environment_steps_stops_the_turn_and_truncates() -> None:
    env = planner(env_steps=2)
    _, _, terminated, truncated, info = take(env, "1 1 1 1")
    assert (terminated, truncated, info["truncated_by"]) == (False, True, "env steps")
    assert env.env_steps == 2
    skipped = [event for event in info["step"].events if isinstance(event, CallSkipped)]
    assert [each.reason for each in skipped] == ["the limit of 2 environment steps is reached"] * 2
    assert info["step"].events[-1] == Truncated(0, "env steps")


def test_limit_of_calls_stops_the_turn() -> None:
    *_, info = take(planner(turn_calls=2), "1 1 1 1")
    kinds = [type(event).__name__ for event in info["step"].events]
    assert kinds == ["TurnTaken", "ToolCalled", "ToolCalled", "CallSkipped", "CallSkipped"]
    assert (
        "2 further calls of this turn were not carried out: a turn can make at most 2 calls."
        in (info["step"].messages[0].plain())
    )
    *_, info = take(planner(), "1 " * 80)
    called = [event for event in info["step"].events if isinstance(event, ToolCalled)]
    assert len(called) == 6  # the goal
    *_, info = take(planner(toy.Adder), "1 " * 80)
    called = [event for event in info["step"].events if isinstance(event, ToolCalled)]
    assert len(called) == MOST_CALLS
    *_, info = take(planner(toy.Adder, turn_calls=None), "1 " * 80)
    assert len(info["step"].events) == 81
    with pytest.raises(ConfigurationError, match="turn_calls must be at least 1"):
        planner(turn_calls=0)


def test_environment_steps_count_over_turns() -> None:
    env = planner(env_steps=3)
    env.reset(seed=0)
    assert [env.step("1")[3], env.step("1")[3]] == [False, False]
    env.reset(seed=0)
    assert [env.step("1 1")[3], env.step("1")[3]] == [False, True]


class Strict(toy.Adder):
    """Refuses an answer in its first turn."""

    @override
    def check_turn(self, turn: ParsedTurn) -> str:
        return "Add first." if turn.answer is not None and not self.turn else ""


def test_turn_that_the_task_refuses_is_malformed() -> None:
    env = planner(Strict)
    _, _, terminated, _, info = take(env, "= 1")
    assert not terminated
    assert [type(event).__name__ for event in info["step"].events] == ["TurnTaken", "Malformed"]
    assert "Add first." in info["step"].messages[0].plain()


# --------------------------------------------------------------------------------- tools


class Counting(toy.Add):
    """Counts the calls of its methods by the environment."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    @override
    def open(self) -> None:
        self.calls.append("open")

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        self.calls.append("reset")
        super().reset(sample, store)

    @override
    def end_episode(self) -> None:
        self.calls.append("end")

    @override
    def close(self) -> None:
        self.calls.append("close")


def test_tools_are_opened_once_in_100_episodes() -> None:
    tool = Counting()
    env = toy.Adder(
        source=toy.Sums(), grammar=KeyValueGrammar(), tools=[tool], limits=EpisodeLimits(turns=2)
    )
    for seed in range(100):
        env.reset(seed=seed)
    env.close()
    assert tool.calls == ["open", "reset", *["end", "reset"] * 99, "end", "close"]
    env.reset(seed=0)
    assert tool.calls[-2:] == ["open", "reset"]


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_tools_of_every_environment_are_opened_and_closed_once(
    env_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = gym.make(env_id, preset="tiny").unwrapped
    assert isinstance(env, VisEnv)
    calls: list[str] = []

    def count(tool: Tool[Any], method: str) -> None:
        original = getattr(tool, method)

        def count_and_call() -> None:
            calls.append(f"{method} {tool.name}")
            original()

        monkeypatch.setattr(tool, method, count_and_call)

    for tool in env.tools.values():
        count(tool, "open")
        count(tool, "close")
    for seed in range(100):
        env.reset(seed=seed % 3)
    assert sorted(calls) == sorted(f"open {name}" for name in env.tools)
    calls.clear()
    env.close()
    env.close()
    assert sorted(calls) == sorted(f"close {name}" for name in env.tools)


class Failing(Counting):
    """Raises once for each of the given methods.

    Args:
        name: The name of the tool.
        *fails: The methods that raise; a method that is given twice raises twice.
    """

    def __init__(self, name: str, *fails: str) -> None:
        super().__init__()
        self.name = name
        self.fails = list(fails)

    def _fail(self, method: str) -> None:
        if method in self.fails:
            self.fails.remove(method)
            raise ServiceError(self.name, f"{method} failed")

    @override
    def open(self) -> None:
        super().open()
        self._fail("open")

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        super().reset(sample, store)
        self._fail("reset")

    @override
    def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:
        self._fail("call")
        return super().call(arguments, store)

    @override
    def close(self) -> None:
        super().close()
        self._fail("close")


class FailingLater(Failing):
    """Fails in an asynchronous call."""

    @override
    async def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().call(arguments, store)


def with_tools(*tools: Tool[Any]) -> VisEnv:
    return toy.Adder(
        source=toy.Sums(), grammar=KeyValueGrammar(), tools=tools, limits=EpisodeLimits(turns=2)
    )


ADD = "<tool>\nname: add\namount: 1\n</tool>"


@pytest.mark.parametrize("kind", [Failing, FailingLater])
def test_tool_whose_service_failed_is_opened_again(kind: type[Failing]) -> None:
    failing, other = kind("add", "call"), Failing("other")
    env = with_tools(failing, other)
    env.reset(seed=0)
    assert env.step(ADD)[4]["aborted"] == "add: call failed"
    assert failing.calls == ["open", "reset"]
    env.reset(seed=1)
    assert failing.calls == ["open", "reset", "end", "close", "open", "reset"]
    assert env.step(ADD)[4]["aborted"] == ""
    env.reset(seed=2)
    assert failing.calls[6:] == ["end", "reset"]
    assert other.calls == ["open", "reset", "end", "reset", "end", "reset"]
    env.close()
    assert failing.calls.count("close") == 2


def test_tool_whose_reset_failed_is_opened_again() -> None:
    """Check that only a tool whose `reset` succeeded gets a call of `end`."""
    first, failing, last = Failing("first"), Failing("add", "reset"), Failing("last")
    env = with_tools(first, failing, last)
    with pytest.raises(ServiceError, match="reset failed"):
        env.reset(seed=0)
    env.reset(seed=0)
    assert first.calls == ["open", "reset", "end", "reset"]
    assert failing.calls == ["open", "reset", "close", "open", "reset"]
    assert last.calls == ["open", "reset"]


def test_tool_that_could_not_be_opened_is_opened_at_the_next_reset() -> None:
    failing = Failing("add", "open")
    env = with_tools(failing)
    with pytest.raises(ServiceError, match="open failed"):
        env.reset(seed=0)
    env.reset(seed=0)
    env.close()
    assert failing.calls == ["open", "open", "reset", "end", "close"]


def test_tool_that_fails_again_when_it_is_closed_is_opened_again() -> None:
    failing, other = Failing("add", "call", "close"), Failing("other")
    env = with_tools(failing, other)
    env.reset(seed=0)
    env.step(ADD)
    env.reset(seed=0)
    assert failing.calls == ["open", "reset", "end", "close", "open", "reset"]


def test_close_closes_all_tools_when_one_raises() -> None:
    tools = Failing("add", "close"), Failing("other"), Failing("third", "close")
    env = with_tools(*tools)
    env.reset(seed=0)
    with pytest.raises(ServiceError, match="close failed"):
        env.close()
    env.close()
    assert [tool.calls.count("close") for tool in tools] == [1, 1, 1]


class Meeting(Tool[toy.AddArguments]):
    """Returns only when `count` episodes are inside a call at the same time."""

    name = "add"
    description = "Waits for others."
    arguments = toy.AddArguments
    inside = 0
    arrived: asyncio.Event

    def __init__(self, count: int) -> None:
        self.count = count

    @override
    async def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:
        cls = type(self)
        if not cls.inside:
            cls.arrived = asyncio.Event()
        cls.inside += 1
        if cls.inside == self.count:
            cls.arrived.set()
        await asyncio.wait_for(cls.arrived.wait(), 60)
        return ToolResult(("met",), {"total": 0})


def meeting(count: int) -> VisEnv:
    class Here(Meeting):
        pass

    return toy.Adder(
        source=toy.Sums(),
        grammar=KeyValueGrammar(),
        tools=[Here(count)],
        limits=EpisodeLimits(turns=4),
    )


def test_asynchronous_tool_makes_a_plain_step_wait() -> None:
    env = meeting(1)
    env.reset(seed=0)
    *_, info = env.step("<think>a</think><tool>\nname: add\namount: 1\n</tool>")
    assert "met" in info["step"].messages[0].plain()


def test_collector_plays_other_episodes_while_a_tool_waits() -> None:
    class Here(Meeting):
        pass

    def make() -> VisEnv:
        return toy.Adder(
            source=toy.Sums(),
            grammar=KeyValueGrammar(),
            tools=[Here(4)],
            limits=EpisodeLimits(turns=4),
        )

    groups = Collector(make, OraclePolicy()).groups(range(4))
    assert {episode.status for group in groups for episode in group} == {"terminated"}


# --------------------------------------------------------------------------------- pixels


def picture(width: int, height: int) -> Image:
    return Image.from_pixels(np.zeros((height, width, 3), np.uint8))


class Shows(toy.Adder):
    """Shows two images and a video in its first messages."""

    @override
    def initial_messages(self) -> list[Message]:
        self.store.images["first"] = first = picture(40, 20)
        video = Video((picture(20, 10), picture(20, 10)), (0.0, 0.5))
        return [Message("user", ("look", first, picture(20, 20), video))]


@pytest.mark.parametrize(
    ("budget", "sizes"),
    [
        # 800 + 400 + 200 + 200 = 1,600 pixels
        (None, [(40, 20), (20, 20), (20, 10), (20, 10)]),
        (1600, [(40, 20), (20, 20), (20, 10), (20, 10)]),
        # a quarter: 200 + 100 + 50 + 50
        (400, [(20, 10), (10, 10), (10, 5), (10, 5)]),
    ],
)
def test_images_of_one_observation_share_a_budget(
    budget: int | None, sizes: list[tuple[int, int]]
) -> None:
    env = planner(Shows, observation_pixels=budget)
    observation, info = env.reset(seed=0)
    images = info["step"].messages[0].images
    assert [image.size for image in images] == sizes
    assert [(each.shape[1], each.shape[0]) for each in observation["images"]] == sizes
    # the stored image is the announced one
    assert env.store.images["first"] is images[0]
    assert observation["text"].count("<image>") == 4
