"""Tests `TurnExecution` with an object that has only the parts of an environment which it uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from visenv.errors import ServiceError
from visenv.grammar import Grammar, KeyValueGrammar, ParsedTurn, ToolCall
from visenv.testing import toy
from visenv.tools import Store, Tool, ToolResult
from visenv.tools.base import ToolLifecycle
from visenv.turn_execution import EpisodeLimits, LateEvents, TurnExecution
from visenv.types import (
    Answered,
    EventLog,
    Image,
    Malformed,
    Message,
    Part,
    Sample,
    ToolCalled,
    TurnTaken,
    Video,
)

CALL = "<tool>\nname: add\namount: 1\n</tool>"
PICTURE = Image.from_pixels(np.zeros((20, 20, 3), np.uint8))
LIMITS = EpisodeLimits(turns=3, invalid_actions=2, image_pixels=100, env_steps=4)


class Camera(toy.Add):
    """Shows a picture, and films it for viewers."""

    @override
    def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:
        return ToolResult((PICTURE,), hidden_frames=(Video((PICTURE,), (0.0,)),), env_steps=2)


class Down(toy.Add):
    """Has no server."""

    @override
    def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:
        raise ServiceError("add", "no server")

    @override
    def close(self) -> None:
        raise ServiceError("add", "is closed")


@dataclass
class Parts:
    """Has the parts of an environment that the execution of a turn uses."""

    tools: dict[str, Tool[Any]]
    limits: EpisodeLimits = LIMITS
    grammar: Grammar = field(default_factory=KeyValueGrammar)
    store: Store = field(default_factory=Store)
    log: EventLog = field(default_factory=EventLog)
    turn: int = 0
    env_steps: int = 0
    defers: bool = False
    change_result: Callable[[str, ToolResult], ToolResult] | None = None

    def check_turn(self, turn: ParsedTurn) -> str:
        return ""

    def reject_call(self, call: ToolCall) -> str:
        return ""

    def stop_calls(self, called: ToolCalled) -> str:
        return ""

    def turn_events(self, turn: ParsedTurn) -> tuple[()]:
        return ()

    def turn_notice(self) -> tuple[Part, ...]:
        return (f"turn {self.turn}",)


def begun(tool: Tool[Any]) -> tuple[Parts, TurnExecution, ToolLifecycle]:
    parts, lifecycle = Parts({"add": tool}), ToolLifecycle()
    execution = TurnExecution(parts, lifecycle, LateEvents())
    lifecycle.begin_episode(parts.tools, Sample("s", "?"), parts.store)
    return parts, execution, lifecycle


def test_call_is_logged_counted_and_shown_at_its_limit() -> None:
    env, execution, _ = begun(Camera())
    (shown,) = [part for part in execution.take(CALL) if isinstance(part, Image)]
    assert shown.size == (10, 10)
    taken, called = env.log
    assert (type(taken), type(called), called.ok) == (TurnTaken, ToolCalled, True)
    assert env.store.images[called.outputs[0]] is shown
    assert (env.env_steps, execution.invalid_actions) == (2, 0)
    assert execution.pop_hidden_frames() == (Video((PICTURE,), (0.0,)),)
    assert execution.pop_hidden_frames() == ()


def test_limits_are_reached_in_their_order() -> None:
    env, execution, _ = begun(Camera())
    execution.take("what?")
    assert (execution.invalid_actions, execution.limit_reached()) == (1, "")
    execution.take("what?")
    assert (execution.invalid_actions, execution.limit_reached()) == (2, "invalid actions")
    assert [type(event) for event in env.log] == [TurnTaken, Malformed] * 2
    execution.take(CALL)
    assert not execution.has_used_env_steps()
    execution.take(CALL)
    assert execution.has_used_env_steps()
    assert execution.limit_reached() == "env steps"
    env.turn = 2
    assert execution.limit_reached() == "turns"


def test_answer_is_recorded_and_shows_nothing() -> None:
    env, execution, _ = begun(Camera())
    assert execution.take("<answer>7</answer>") == ()
    assert env.log[-1] == Answered(0, "7")


def test_notice_is_that_of_the_next_turn() -> None:
    env, execution, _ = begun(Camera())
    assert execution.next_notice() == ("turn 1",)
    assert env.turn == 0


def test_tool_whose_service_failed_is_closed() -> None:
    _, execution, lifecycle = begun(Down())
    with pytest.raises(ServiceError, match="no server"):
        execution.take(CALL)
    lifecycle.end_episode()
    lifecycle.close_failed()
    lifecycle.close()  # closes nothing; otherwise the tool would raise


def test_images_of_an_observation_are_shrunk_together_also_in_the_store() -> None:
    env, execution, _ = begun(Camera())
    name = env.store.add_image("image_", PICTURE)
    env.limits = env.limits._replace(observation_pixels=200)
    message = Message("user", (PICTURE, "and again", PICTURE))
    (shrunk,) = execution.within_pixels((message,))
    assert sum(image.size[0] * image.size[1] for image in shrunk.images) <= 200
    assert env.store.images[name].size == shrunk.images[0].size
    env.limits = env.limits._replace(observation_pixels=None)
    assert execution.within_pixels((message,)) == (message,)
