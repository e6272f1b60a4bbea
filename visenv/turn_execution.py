"""Defines `TurnExecution`, which carries out the turns of an episode within its limits.

A turn is parsed by the grammar. Its tool calls are executed, or its answer is recorded; both are
logged, and the results are shown at a limited length and size. `LateEvents` holds the events of a
turn that are computed while the episode continues.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from visenv import background
from visenv.errors import ServiceError, ToolError
from visenv.grammar.base import Grammar, ParsedTurn, ToolCall
from visenv.grammar.foreign import neutralized
from visenv.images import QWEN_PIXELS, fit, fit_all
from visenv.scorers.scorer import using
from visenv.scorers.verdict_events import EpisodeVerdicts
from visenv.tools.base import Store, Tool, ToolLifecycle, ToolResult, shown
from visenv.types import (
    Answered,
    CallSkipped,
    Event,
    EventLog,
    Image,
    Malformed,
    Message,
    Part,
    ToolCalled,
    TurnTaken,
    Video,
    all_images,
)

MOST_CALLS = 64
"""Default limit of the calls in a turn, far above what a task needs."""


class LateEvents:
    """Holds the deferred events of an episode, with their places in the event log."""

    def __init__(self) -> None:
        self._coming: list[tuple[int, Future[Iterable[Event]]]] = []

    def __bool__(self) -> bool:
        """Return whether there are events that have not been logged yet."""
        return bool(self._coming)

    def defer(self, place: int, events: Coroutine[Any, Any, Iterable[Event]]) -> None:
        """Begin to compute events that belong in the log before its event `place` (from 0)."""
        self._coming.append((place, background.start(events)))

    def cancel(self) -> None:
        """Cancel all deferred events."""
        coming, self._coming = self._coming, []
        for _, events in coming:
            events.cancel()

    async def insert_into(self, log: EventLog) -> None:
        """Wait for the deferred events and insert them into the log.

        Raises:
            ServiceError: If a service that the events need still failed after its retries.
        """
        coming, self._coming = self._coming, []
        for place, events in reversed(coming):  # an insertion moves only the later places
            log.insert_all(place, await background.wait(events))


async def with_verdicts(turn: int, events: Awaitable[Iterable[Event]]) -> Iterable[Event]:
    """Return the events of a turn; the verdicts of the requested scorers come first."""
    verdicts = EpisodeVerdicts(turn, "", None)
    with using(verdicts):
        found = await events
    return (*verdicts.sorted_events(), *found)


class EpisodeLimits(NamedTuple):
    """Holds the limits of an episode.

    Attributes:
        turns: Maximum number of turns of the policy.
        invalid_actions: Number of malformed turns and failed calls at which the episode is
            truncated.
        tool_characters: Maximum number of characters shown of one text or error of a tool.
        image_pixels: Maximum number of pixels of one image; larger images are shrunk.
        env_steps: Maximum number of environment steps of all tool calls together
            (`ToolResult.env_steps`), for simulators in which one turn takes several steps.
        observation_pixels: Maximum number of pixels of all images of one observation together; if
            they have more, all of them are shrunk by one factor.
        turn_calls: Maximum number of calls that one turn can make; the others of the turn are not
            executed. None sets no limit.
    """

    turns: int
    invalid_actions: int | None = None
    tool_characters: int = 4096
    image_pixels: int = QWEN_PIXELS
    env_steps: int | None = None
    observation_pixels: int | None = None
    turn_calls: int | None = MOST_CALLS


class TurnEnv(Protocol):
    """Describes the parts of `visenv.env.VisEnv` that the execution of a turn uses."""

    grammar: Grammar
    tools: dict[str, Tool[Any]]
    limits: EpisodeLimits
    store: Store
    log: EventLog
    turn: int
    env_steps: int
    defers: bool
    change_result: Callable[[str, ToolResult], ToolResult] | None

    def check_turn(self, turn: ParsedTurn) -> str:
        """Return the reason why a turn is malformed for the task, or ``""``."""
        ...

    def reject_call(self, call: ToolCall) -> str:
        """Return the reason why a call is not executed, or ``""``."""
        ...

    def stop_calls(self, called: ToolCalled) -> str:
        """Return the reason why the calls after this one are not executed, or ``""``."""
        ...

    def turn_events(self, turn: ParsedTurn) -> Iterable[Event] | Awaitable[Iterable[Event]]:
        """Return the task's own events of a turn."""
        ...

    def turn_notice(self) -> tuple[Part, ...]:
        """Return the content to show before turn `self.turn`."""
        ...


class TurnExecution:
    """Carries out the turns of one episode of an environment.

    Args:
        env: The environment. The execution logs events, adds images to its store, and counts its
            steps.
        lifecycle: The tools that are open; it records which of them have failed.
        late_events: Receives the events of `TurnEnv.turn_events` that are deferred.

    Attributes:
        invalid_actions: The number of malformed turns and failed calls so far.
    """

    def __init__(self, env: TurnEnv, lifecycle: ToolLifecycle, late_events: LateEvents) -> None:
        self.invalid_actions = 0
        self._env = env
        self._lifecycle = lifecycle
        self._late_events = late_events
        self._hidden_frames: tuple[Video, ...] = ()

    def take(self, action: str) -> tuple[Part, ...]:
        """Parse a turn, execute it, log it, and return the content to show in response.

        Raises:
            ServiceError: If a service that a tool or an event needs failed after all retries.
        """
        env = self._env
        turn = env.grammar.parse(action)
        env.log.append(TurnTaken(env.turn, action, turn.thought))
        parts = self._act(turn)
        events = env.turn_events(turn)
        if events == ():  # the default; `isinstance` of an abstract class is slow
            return parts
        if isinstance(events, Awaitable):
            coming = with_verdicts(env.turn, events)
            if env.defers:
                self._late_events.defer(len(env.log), coming)
                return parts
            events = background.run(coming)
        env.log.extend(events)
        return parts

    def call(self, call: ToolCall) -> tuple[Part, ...]:
        """Execute a tool call, log it, and return the content to show.

        Raises:
            ServiceError: If a service that the tool needs failed after all retries.
        """
        env = self._env
        if call.name in env.tools and (message := env.reject_call(call)):
            return self._fail(call, message)
        try:
            tool = env.tools.get(call.name)
            if tool is None:
                there = ", ".join(env.tools) or "none"
                raise ToolError(f"There is no tool called {shown(call.name)}. Tools: {there}.")
            result = tool.run(call.arguments, env.store)
            if env.change_result is not None:
                result = env.change_result(call.name, result)
        except ToolError as error:
            return self._fail(call, neutralized(str(error)))
        except ServiceError:
            self._lifecycle.mark_failed(call.name)
            raise
        return self._show(call, result)

    def next_notice(self) -> tuple[Part, ...]:
        """Return the notice before the next turn.

        Raises:
            ServiceError: If a simulator that draws the notice failed.
        """
        self._env.turn += 1
        try:
            return self._env.turn_notice()
        except ServiceError:
            for name in self._env.tools:
                self._lifecycle.mark_failed(name)
            raise
        finally:
            self._env.turn -= 1

    def limit_reached(self) -> str:
        """Return the limit that the episode has reached with the current turn, or ``""``."""
        limits = self._env.limits
        if self._env.turn + 1 >= limits.turns:
            return "turns"
        if self.has_used_env_steps():
            return "env steps"
        allowed = limits.invalid_actions
        if allowed is not None and self.invalid_actions >= allowed:
            return "invalid actions"
        return ""

    def has_used_env_steps(self) -> bool:
        """Return whether the limit of environment steps is reached."""
        most = self._env.limits.env_steps
        return most is not None and self._env.env_steps >= most

    def within_pixels(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Shrink the images of one observation to their total limit, also in the store."""
        budget = self._env.limits.observation_pixels
        if budget is None:
            return messages
        images = all_images(messages)
        smaller = dict(zip(map(id, images), fit_all(images, budget), strict=True))
        for image in images:
            self._env.store.replace_image(image, smaller[id(image)])
        return tuple(
            message.replace_images(lambda image: smaller[id(image)]) for message in messages
        )

    def pop_hidden_frames(self) -> tuple[Video, ...]:
        """Return the videos that the policy does not see, and which were not returned before."""
        frames, self._hidden_frames = self._hidden_frames, ()
        return frames

    # ------------------------------------------------------------------ inside

    def _act(self, turn: ParsedTurn) -> tuple[Part, ...]:
        env = self._env
        if turn.problems:
            problem = turn.problems[0]
            return self._reject_turn(problem.code, problem.message, problem.in_call)
        if message := env.check_turn(turn):
            return self._reject_turn("unexpected", message, bool(turn.calls))
        if turn.answer is not None:
            env.log.append(Answered(env.turn, turn.answer))
            return ()
        parts: tuple[Part, ...] = ()
        most = env.limits.turn_calls
        for number, call in enumerate(turn.calls, start=1):
            parts += self.call(call)
            if number == len(turn.calls):
                break
            reason = env.stop_calls(env.log[-1])
            if not reason and number == most:
                reason = f"a turn can make at most {most} calls"
            if reason:
                return parts + self._skip(turn.calls[number:], reason)
        return parts

    def _reject_turn(self, code: str, message: str, in_call: bool) -> tuple[Part, ...]:
        env = self._env
        env.log.append(Malformed(env.turn, code, message))
        if in_call:
            env.log.append(ToolCalled(env.turn, "", {}, False, message))
        self.invalid_actions += 1
        return env.grammar.render_error(message)

    def _skip(self, calls: Sequence[ToolCall], reason: str) -> tuple[Part, ...]:
        env = self._env
        for call in calls:
            env.log.append(CallSkipped(env.turn, call.name, call.arguments, reason))
        what = "call of this turn was" if len(calls) == 1 else "calls of this turn were"
        return env.grammar.render_error(f"{len(calls)} further {what} not carried out: {reason}.")

    def _fail(self, call: ToolCall, message: str) -> tuple[Part, ...]:
        env = self._env
        self.invalid_actions += 1
        message = _cut(message, env.limits.tool_characters)
        env.log.append(ToolCalled(env.turn, call.name, call.arguments, False, message))
        return env.grammar.render_error(message)

    def _show(self, call: ToolCall, result: ToolResult) -> tuple[Part, ...]:
        env = self._env
        parts: list[Part] = []
        names: list[str] = []
        for part in result.parts:
            if isinstance(part, Image):
                image = fit(part, env.limits.image_pixels)
                names.append(env.store.add_image(env.grammar.result_prefix, image))
                parts.append(image)
            elif isinstance(part, Video):
                frames = tuple(fit(frame, env.limits.image_pixels) for frame in part.frames)
                parts.append(Video(frames, part.times))
            else:
                parts.append(_cut(neutralized(part), env.limits.tool_characters))
        env.env_steps += result.env_steps
        self.invalid_actions += not result.ok
        self._hidden_frames += result.hidden_frames
        event = ToolCalled(
            env.turn,
            call.name,
            call.arguments,
            result.ok,
            result.reason,
            tuple(names),
            result.detail,
            result.env_steps,
        )
        env.log.append(event)
        return env.grammar.render(parts, names)


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return f"{text[:characters]}… [{len(text) - characters} more characters]"
