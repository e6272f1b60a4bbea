"""Defines `VisEnv`, the episode loop of all environments; a task implements a few hooks.

`reset` selects a sample, prepares the tools and shows the initial messages. `step` executes a turn
(`visenv.turn_execution`), ends the episode if the task is done or a limit is reached, and scores
it. The text of a policy never makes `step` raise: a malformed turn becomes an event and a message,
and counts as a turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypedDict

import gymnasium as gym
import numpy as np
from typing_extensions import override

from visenv.data.source import (
    Source,
    check_declared_truth,
    check_sample,
    check_source,
    check_truth,
    draw,
)
from visenv.errors import ConfigurationError, EpisodeOverError, ServiceError
from visenv.grammar.base import Grammar, ParsedTurn, ToolCall
from visenv.seeding import is_held_out
from visenv.spaces import Unicode, observation_space
from visenv.teacher import Teacher
from visenv.tools.base import Store, Tool, ToolLifecycle, ToolResult
from visenv.turn_execution import EpisodeLimits, LateEvents, TurnExecution
from visenv.types import (
    Aborted,
    Event,
    EventLog,
    Failure,
    Message,
    Part,
    Pixels,
    Sample,
    StepResult,
    ToolCalled,
    Truncated,
    TurnRequest,
    all_images,
    flatten,
)

__all__ = ["EpisodeLimits", "Observation", "VisEnv", "observe"]


class Observation(TypedDict):
    """Holds the new text since the last action, with one marker per image, and the new images."""

    text: str
    images: tuple[Pixels, ...]


class VisEnv(gym.Env[Observation, str]):
    """Base class of all environments.

    A task passes its components to the constructor and overrides `initial_messages`,
    `turn_request`, `task_score` and `oracle_turn`. The other hooks have defaults: `is_done`,
    `end_episode`, `stop_calls`, `turn_events`, `check_turn`, `reject_call`, `turn_notice`,
    `direct_turn`, `random_answer`, `metrics` and `media_hashes`.

    Args:
        source: The samples.
        grammar: Parses turns and renders results.
        tools: The tools that the policy can call.
        limits: The limits of an episode.
        render_mode: ``"ansi"`` (the conversation), ``"rgb_array"`` (the last image shown) or None.
        on_abort: The effect of a `ServiceError`: ``"truncate"`` ends the episode with reward 0 and
            the reason in ``info["aborted"]``; ``"raise"`` raises the error.

    Attributes:
        ground_truths: The types of `Sample.ground_truth` that the task supports, subclasses
            included; `NoneType` means samples without a ground truth. If empty, all types are
            supported.
        controls: Controls of an evaluation that are set by options of the task: the options of each
            control by its name, for example ``{"random_crop": {"zoom": "random"}}``
            (`visenv.evaluation.controls`).
        headline_metrics: The metrics that a table of results shows. The first one is the most
            important: it selects the best weights of a training run and is the pass rate of a
            mixture.
        presets: The named presets of the task, which are instances of one frozen dataclass
            (`visenv.presets`); the card shows them as a table.
        teachers: The teachers of the task by name (`visenv.teacher`): players with a documented
            flaw, for demonstrations.
        blind_player: A sentence in Markdown that describes the player ``blind`` of the card, which
            takes `direct_turn` with `random_answer`. A task that overrides `direct_turn` with a
            turn that calls tools also sets this text.
        observes: Whether `reset` and `step` return observations, whose images are copies. A player
            that reads messages sets it to False during its calls; observations are then empty.
        change_result: A function of a tool's name and result that changes the result before it is
            shown and logged; set by a control. None changes nothing.

    Raises:
        ConfigurationError: If an argument has an invalid value, or the source declares a type of
            ground truth that the task does not support.

    Observations are ``Dict(text=Unicode, images=Sequence(RgbImage))`` and contain only the new
    content. ``info`` contains ``"step"`` (a `StepResult`), ``"aborted"`` and ``"truncated_by"``
    (reasons, empty if there is none).
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}  # noqa: RUF012
    render_modes: ClassVar[tuple[str | None, ...]] = (None, "ansi", "rgb_array")
    ground_truths: ClassVar[tuple[type, ...]] = ()
    controls: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    headline_metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    presets: ClassVar[Mapping[str, object]] = MappingProxyType({})
    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType({})
    blind_player: ClassVar[str] = (
        "`blind` sees no image and calls no tool: it gives a random one of the possible answers "
        "in the first turn that can contain an answer."
    )

    def __init__(
        self,
        *,
        source: Source,
        grammar: Grammar,
        tools: Sequence[Tool[Any]] = (),
        limits: EpisodeLimits,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        if render_mode not in self.render_modes:
            raise ConfigurationError(
                f"render_mode must be one of {self.render_modes}, got {render_mode!r}."
            )
        if on_abort not in ("truncate", "raise"):
            raise ConfigurationError(f"on_abort must be 'truncate' or 'raise', got {on_abort!r}.")
        if limits.turns < 1:
            raise ConfigurationError(f"An episode needs at least 1 turn, got {limits.turns}.")
        if limits.turn_calls is not None and limits.turn_calls < 1:
            raise ConfigurationError(f"turn_calls must be at least 1, got {limits.turn_calls}.")
        check_source(source)
        check_declared_truth(source, self.ground_truths, type(self).__name__)
        self.source = source
        self.grammar = grammar
        self.tools = {tool.name: tool for tool in tools}
        self.limits = limits
        self.render_mode = render_mode
        self.on_abort = on_abort
        self.observation_space = observation_space()  # type: ignore[assignment]
        self.action_space = Unicode()
        self.turn = 0
        self.env_steps = 0
        self.log = EventLog()
        self.store = Store()
        self.sample: Sample
        self.defers = False
        self.observes = True
        self.change_result: Callable[[str, ToolResult], ToolResult] | None = None
        self._lifecycle = ToolLifecycle()
        self._over = True
        self._late = LateEvents()
        self._execution: TurnExecution
        self._scored: tuple[EventLog, int, float] | None = None
        self._conversation: list[Message] = []

    # ------------------------------------------------------------------ hooks that a task fills in

    def initial_messages(self) -> list[Message]:
        """Return the first messages of an episode with `self.sample`; this may store images."""
        raise NotImplementedError

    def turn_request(self) -> TurnRequest:
        """Return the request for turn `self.turn`; the first turn is 0."""
        raise NotImplementedError

    def task_score(self) -> float:
        """Return the score of an episode that terminated, 0 to 1, from `self.log`."""
        raise NotImplementedError

    def oracle_turn(self) -> ParsedTurn:
        """Return the next turn of a player that knows the ground truth."""
        raise NotImplementedError

    # ------------------------------------------------------------------ hooks with a default

    def is_done(self) -> bool:
        """Return whether the task is done, which terminates the episode.

        This method is called after each turn, and between two calls of a turn. By default the task
        is done when the policy has answered; a simulator also checks its goal.
        """
        return self.log.answer is not None

    def end_episode(self) -> None:
        """End the episode without closing the environment: tools and simulators remain open."""
        self._lifecycle.end_episode()

    def check_turn(self, turn: ParsedTurn) -> str:
        """Return the reason why a well-formed turn is malformed for this task, or ``""``.

        The text is shown to the policy, and no part of the turn is executed.
        """
        return ""

    def reject_call(self, call: ToolCall) -> str:
        """Return the reason why a call is not executed in turn `self.turn`, or ``""``."""
        return ""

    def stop_calls(self, called: ToolCalled) -> str:
        """Return the reason why the remaining calls of the turn are not executed, or ``""``.

        This method is called after each call of a turn except the last. By default the remaining
        calls are not executed if the task is done or the limit of environment steps is reached; a
        failed call (``called.ok`` is False) does not stop them.
        """
        if self.is_done():
            return "the task is done"
        if self._execution.has_used_env_steps():
            return f"the limit of {self.limits.env_steps} environment steps is reached"
        return ""

    def turn_events(self, turn: ParsedTurn) -> Iterable[Event] | Awaitable[Iterable[Event]]:
        """Return the task's own events of a turn (points, time spans, plans), which are logged.

        This method is called after the calls or the answer of the turn, before rewards read the
        log. An override may be an ``async def``, for example to ask a scorer: a plain `step` waits
        for it, a `Collector` defers it until the episode is scored. Such a coroutine should read
        `self.turn` and other state before its first ``await``.
        """
        return ()

    def turn_notice(self) -> tuple[Part, ...]:
        """Return the content to show before turn `self.turn`, after the last result."""
        return ()

    def direct_turn(self, answer: str) -> ParsedTurn:
        """Return the next turn of a demonstration that gives this answer without using a tool.

        By default the turn answers immediately. A task in which this turn cannot answer overrides
        the method.
        """
        return self.oracle_turn()._replace(calls=(), answer=answer)

    def random_answer(self, rng: np.random.Generator) -> str:
        """Return an answer that a policy without knowledge could give."""
        return str(rng.integers(0, 100))

    def metrics(self) -> dict[str, float]:
        """Return the task's metrics of the ended episode."""
        return {}

    def media_hashes(self) -> dict[str, str]:
        """Return the SHA-256 of the sample's media at their original size, by name.

        A saved episode contains these hashes, so that it is only rescored with the same media.
        """
        return {f"image_{place}": each.sha256 for place, each in enumerate(self.sample.images)}

    # ------------------------------------------------------------------ Gymnasium

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: The seed; equal seeds give equal episodes, to the byte.
            options: ``{"sample": Sample}`` or ``{"index": int}`` selects the sample; otherwise the
                seed selects it.

        Raises:
            ConfigurationError: If `options` cannot be used with this source, or the sample has a
                ground truth of another type than `ground_truths`.
            DataError: If the sample or its images cannot be read.
        """
        super().reset(seed=seed)
        self._leave_episode()
        held_out = is_held_out(self._np_random_seed)
        self.sample = draw(self.source, self.np_random, options or {}, held_out)
        check_sample(self.sample, self.source)
        check_truth(self.sample, self.ground_truths, type(self).__name__)
        self.store = Store()
        self.log = EventLog()
        self.turn = self.env_steps = 0
        self._execution = TurnExecution(self, self._lifecycle, self._late)
        self._lifecycle.begin_episode(self.tools, self.sample, self.store)
        messages = self._execution.within_pixels(tuple(self.initial_messages()))
        self._conversation = list(messages)
        self._over = False
        observation = observe(messages if self.observes else ())
        return observation, StepResult(messages, (), self.turn_request()).info

    @override
    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one whole turn of the policy, which includes the requested prefill.

        Raises:
            EpisodeOverError: If the episode has ended or none was started.
            TypeError: If `action` is not a string (an error of the caller, not of a policy).
        """
        if self._over:
            raise EpisodeOverError("The episode is over; call reset() before step().")
        if not isinstance(action, str):
            raise TypeError(f"An action is a string, got {type(action).__name__}.")
        log, start, execution = self.log, len(self.log), self._execution
        failure: Failure | None = None
        parts: tuple[Part, ...] = ()
        terminated, truncated_by = False, ""
        try:
            parts = execution.take(action)
            terminated = self.is_done()
            truncated_by = "" if terminated else execution.limit_reached()
            if not terminated and not truncated_by:
                parts += execution.next_notice()
        except ServiceError as error:
            if self.on_abort == "raise":
                log.truncate(start)
                raise
            failure, parts = Failure.of(error), ()
            terminated, truncated_by = False, ""
            log.append(Aborted(self.turn, failure.name, failure.reason))
        if truncated_by:
            log.append(Truncated(self.turn, truncated_by))
        self.turn += 1
        self._over = over = terminated or bool(truncated_by) or failure is not None
        messages = execution.within_pixels((Message("user", parts),)) if parts else ()
        if self.render_mode is not None:
            self._conversation += [Message("assistant", (action,)), *messages]
        request = None if over else self.turn_request()
        events = log.since(start)
        hidden = execution.pop_hidden_frames()
        result = StepResult(
            messages, events, request, 0.0, terminated, truncated_by, failure, hidden
        )
        if over and failure is None:
            result = self._score(result)
        observation = observe(messages if self.observes else ())
        return observation, result.reward, terminated, over and not terminated, result.info

    @override
    def close(self) -> None:
        """Close the tools; the environment can still be reset again."""
        self._leave_episode()
        self._lifecycle.close()

    @override
    def render(self) -> Any:
        """Return the conversation so far, or the last shown image, uint8 ``[height, width, 3]``."""
        if self.render_mode == "ansi":
            return "\n\n".join(f"[{each.role}]\n{each.plain()}" for each in self._conversation)
        if self.render_mode == "rgb_array":
            images = all_images(self._conversation)
            return np.array(images[-1].pixels) if images else np.zeros((1, 1, 3), np.uint8)
        return None

    # ------------------------------------------------------------------ for players

    @property
    def turns_left(self) -> int:
        """Return the number of turns that the policy still has, including the next one."""
        return self.limits.turns - self.turn

    @property
    def episode_score(self) -> float:
        """Return `task_score` of the events so far; it is computed once for the same events.

        `metrics` reads this property, so that a slow score is not computed twice in an episode.
        """
        scored, log = self._scored, self.log
        if scored is None or scored[0] is not log or scored[1] != len(log):
            self._scored = scored = (log, len(log), float(self.task_score()))
        return scored[2]

    @property
    def has_oracle(self) -> bool:
        """Return whether the task overrides `oracle_turn`."""
        return type(self).oracle_turn is not VisEnv.oracle_turn

    @property
    def has_late_events(self) -> bool:
        """Return whether there are deferred events that have not been logged yet."""
        return bool(self._late)

    @property
    def waits(self) -> bool:
        """Return whether `step` may block, for a tool call or `turn_events`."""
        asynchronous = any(tool.is_async for tool in self.tools.values())
        return asynchronous or (not self.defers and inspect.iscoroutinefunction(self.turn_events))

    async def finish(self, result: StepResult) -> StepResult:
        """Wait for deferred events, then score the episode.

        A player that has set `defers` calls this method if the last result is `pending`.

        Args:
            result: The result of the last step.

        Returns:
            The result with reward, metrics and all events.

        Raises:
            ServiceError: If a service that the events need still failed after its retries.
        """
        await self._late.insert_into(self.log)
        by_turn = self.log.by_turn()
        last = by_turn.pop(self.turn - 1)
        return self._score(result._replace(events=last, late_events=by_turn))

    def end_by_wrapper(self, result: StepResult, terminated: bool) -> StepResult:
        """End an episode that a wrapper has ended, and score it.

        Args:
            result: The result of the step.
            terminated: Whether the wrapper terminated the episode instead of truncating it.

        Returns:
            The result without a request, with the metrics and, for a truncation, a `Truncated`
            event with the reason ``"wrapper"``.
        """
        self._over = True
        reason = "" if terminated else "wrapper"
        if reason:
            self.log.append(Truncated(self.turn - 1, reason))
            result = result._replace(events=(*result.events, self.log[-1]))
        return self._score(
            result._replace(messages=(), request=None, terminated=terminated, truncated_by=reason)
        )

    # ------------------------------------------------------------------ inside

    def _leave_episode(self) -> None:
        """End the current episode, if there is one; if a reset fails, there is no episode."""
        self._over = True
        self._late.cancel()
        if hasattr(self, "sample"):
            del self.sample
            self.end_episode()
        self._lifecycle.close_failed()

    def _score(self, result: StepResult) -> StepResult:
        """Add reward and metrics to the last result; `finish` adds them after deferred events."""
        if self._late:
            return result._replace(pending=True)
        reward = self.episode_score if result.terminated else 0.0
        return result._replace(reward=reward, metrics=self.metrics(), pending=False)


def observe(messages: Sequence[Message]) -> Observation:
    """Return the observation that contains these messages."""
    text, images = flatten(messages)
    if not images:
        return {"text": text, "images": ()}
    # The arrays are copied: changes that a caller makes to an observation must not change the
    # episode.
    return {"text": text, "images": tuple([np.array(image.pixels) for image in images])}
