"""VisEnv: the loop every environment shares; a task fills in a few hooks.

`reset` picks a sample, opens the tools and shows the opening messages. `step` reads a turn through
the grammar, runs its tool call or takes its answer, and shows the result. What a policy writes
never makes `step` raise: it becomes an event and a message, and costs a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypedDict

import gymnasium as gym
import numpy as np

from visenv.data.source import Source, draw
from visenv.errors import ConfigurationError, EpisodeOverError, ServiceError, ToolError
from visenv.grammar.base import Call, Grammar, ParsedTurn
from visenv.images import QWEN_PIXELS, fit
from visenv.spaces import Unicode, observation_space
from visenv.tools.base import Store, Tool, ToolResult, shown
from visenv.types import (
    Aborted,
    Answered,
    Ask,
    Event,
    Image,
    Log,
    Malformed,
    Message,
    Part,
    Pixels,
    Sample,
    StepRecord,
    ToolCalled,
    Truncated,
    TurnTaken,
    all_images,
    flatten,
)


class Observation(TypedDict):
    """What is new since the last action: text with one marker per image, and the images."""

    text: str
    images: tuple[Pixels, ...]


class Limits(NamedTuple):
    """What bounds an episode.

    Attributes:
        turns: Turns of the policy.
        invalid_actions: Malformed turns and failed calls before the episode is truncated.
        tool_characters: Characters shown of one text a tool returns.
        image_pixels: Pixels of one image shown; larger ones are shrunk.
    """

    turns: int
    invalid_actions: int | None = None
    tool_characters: int = 4096
    image_pixels: int = QWEN_PIXELS


class VisEnv(gym.Env[Observation, str]):
    """Base class of all environments.

    A task passes its parts to the constructor and overrides `opening`, `ask`, `outcome`,
    `oracle_turn`, and perhaps `reminder`, `refusal`, `random_answer` and `metrics`.

    Args:
        source: Where samples come from.
        grammar: How turns are read and results written.
        tools: What the policy can call.
        limits: What bounds an episode.
        render_mode: ``"ansi"`` (the conversation), ``"rgb_array"`` (the last image shown) or None.
        on_abort: What a `ServiceError` does: ``"truncate"`` ends the episode with reward 0 and the
            reason in ``info["aborted"]``; ``"raise"`` lets it through.

    Observations are ``Dict(text=Unicode, images=Sequence(RgbImage))`` and hold only what is new.
    ``info`` holds ``"step"`` (a `StepRecord`), ``"aborted"`` and ``"truncated_by"`` (reasons, empty
    when there is none).
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}  # noqa: RUF012
    render_modes: ClassVar[tuple[str | None, ...]] = (None, "ansi", "rgb_array")

    def __init__(
        self,
        *,
        source: Source,
        grammar: Grammar,
        tools: Sequence[Tool[Any]] = (),
        limits: Limits,
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
        self.source = source
        self.grammar = grammar
        self.tools = {tool.name: tool for tool in tools}
        self.limits = limits
        self.render_mode = render_mode
        self.on_abort = on_abort
        self.observation_space = observation_space()  # type: ignore[assignment]
        self.action_space = Unicode()
        self.turn = 0
        self.log = Log()
        self.store = Store()
        self.sample: Sample
        self._over = True
        self._invalid = 0
        self._conversation: list[Message] = []

    # ------------------------------------------------------------------ hooks of a task

    def opening(self) -> list[Message]:
        """The first messages of the episode about `self.sample`; may store images."""
        raise NotImplementedError

    def ask(self) -> Ask:
        """The request for turn `self.turn`, the first being 0."""
        raise NotImplementedError

    def outcome(self) -> float:
        """The bare result of an episode that terminated, 0 to 1, from `self.log`."""
        raise NotImplementedError

    def oracle_turn(self) -> ParsedTurn:
        """What a policy that knows the ground truth says now."""
        raise NotImplementedError

    def reminder(self) -> tuple[Part, ...]:
        """What is said before turn `self.turn`, after the result of the one before it."""
        return ()

    def refusal(self, call: Call) -> str:
        """Why a call is not carried out in turn `self.turn`; ``""`` when it is."""
        return ""

    def random_answer(self, rng: np.random.Generator) -> str:
        """An answer that a policy which knows nothing might give."""
        return str(rng.integers(0, 100))

    def metrics(self) -> dict[str, float]:
        """Task metrics of the ended episode."""
        return {}

    def truth(self) -> dict[str, Any]:
        """Ground truth a person wants to see beside the episode, JSON-like."""
        return {
            "question": self.sample.question,
            "answers": list(self.sample.answers),
            **self.sample.meta,
        }

    # ------------------------------------------------------------------ Gymnasium

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: One seed, one episode, to the byte.
            options: ``{"sample": Sample}`` or ``{"index": int}`` picks the sample; otherwise the
                seed does.

        Raises:
            ConfigurationError: If `options` cannot be used with this source.
            DataError: If the sample or its images cannot be read.
        """
        super().reset(seed=seed)
        self.close()
        self._over = True  # a reset that fails leaves no old episode to step or to report
        vars(self).pop("sample", None)
        self.sample = draw(self.source, self.np_random, options or {})
        self.store = Store()
        self.log = Log()
        self.turn = 0
        self._invalid = 0
        for tool in self.tools.values():
            tool.open(self.sample, self.store)
        messages = tuple(self.opening())
        self._conversation = list(messages)
        self._over = False
        record = StepRecord(messages, (), self.ask())
        return _observe(messages), _info(record)

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one whole turn of the policy, the asked-for prefix included.

        Raises:
            EpisodeOverError: If the episode has ended or none was started.
            TypeError: If `action` is not a string (a fault of the caller, not of a policy).
        """
        if self._over:
            raise EpisodeOverError("The episode is over; call reset() before step().")
        if not isinstance(action, str):
            raise TypeError(f"An action is a string, got {type(action).__name__}.")
        parsed = self.grammar.parse(action)
        events: list[Event] = [TurnTaken(self.turn, action, parsed.thought)]
        parts: tuple[Part, ...] = ()
        aborted = ""
        try:
            parts = self._act(parsed, events)
        except ServiceError as error:
            if self.on_abort == "raise":
                raise
            aborted = str(error)
            events.append(Aborted(self.turn, error.boundary, error.reason))
        terminated = not aborted and parsed.answer is not None and not parsed.problems
        truncated_by = "" if terminated or aborted else self._limit_hit()
        if truncated_by:
            events.append(Truncated(self.turn, truncated_by))
        self.log.extend(events)
        self.turn += 1
        truncated = bool(aborted or truncated_by)
        self._over = terminated or truncated
        if not self._over:
            parts += self.reminder()
        messages = (Message("user", parts),) if parts else ()
        if self.render_mode is not None:
            self._conversation += [Message("assistant", (action,)), *messages]
        record = StepRecord(messages, tuple(events), None if self._over else self.ask())
        reward = self.outcome() if terminated else 0.0
        if self._over and not aborted:
            record.metrics = self.metrics()
        info = _info(record, aborted, truncated_by)
        return _observe(messages), reward, terminated, truncated, info

    def close(self) -> None:
        """Close the tools; the environment can be reset again."""
        for tool in self.tools.values():
            tool.close()

    def render(self) -> Any:
        """The conversation so far, or the last image shown (uint8 ``[height, width, 3]``)."""
        if self.render_mode == "ansi":
            return "\n\n".join(f"[{each.role}]\n{each.plain()}" for each in self._conversation)
        if self.render_mode == "rgb_array":
            images = all_images(self._conversation)
            return np.array(images[-1].pixels) if images else np.zeros((1, 1, 3), np.uint8)
        return None

    # ------------------------------------------------------------------ how a turn is acted on

    @property
    def turns_left(self) -> int:
        """Turns the policy still has, the coming one included."""
        return self.limits.turns - self.turn

    def _act(self, parsed: ParsedTurn, events: list[Event]) -> tuple[Part, ...]:
        """Do what the turn says, log it, and return what to show for it."""
        if parsed.problems:
            problem = parsed.problems[0]
            events.append(Malformed(self.turn, problem.code, problem.message))
            if problem.in_call:
                events.append(ToolCalled(self.turn, "", {}, False, problem.message))
            self._invalid += 1
            return self.grammar.render_error(problem.message)
        if parsed.answer is not None:
            events.append(Answered(self.turn, parsed.answer))
            return ()
        shown: tuple[Part, ...] = ()
        for call in parsed.calls:
            shown += self._call(call, events)
        return shown

    def _call(self, call: Call, events: list[Event]) -> tuple[Part, ...]:
        try:
            tool = self.tools.get(call.name)
            if tool is None:
                there = ", ".join(self.tools) or "none"
                raise ToolError(f"There is no tool called {shown(call.name)}. Tools: {there}.")
            if refusal := self.refusal(call):
                raise ToolError(refusal)
            result = tool.run(call.arguments, self.store)
        except ToolError as error:
            self._invalid += 1
            events.append(ToolCalled(self.turn, call.name, call.arguments, False, str(error)))
            return self.grammar.render_error(str(error))
        return self._show(call, result, events)

    def _show(self, call: Call, result: ToolResult, events: list[Event]) -> tuple[Part, ...]:
        parts: list[Part] = []
        names: list[str] = []
        for part in result.parts:
            if isinstance(part, Image):
                image = fit(part, self.limits.image_pixels)
                names.append(self.store.add_image(self.grammar.result_prefix, image))
                parts.append(image)
            else:
                parts.append(_cut(part, self.limits.tool_characters))
        event = ToolCalled(
            self.turn, call.name, call.arguments, True, "", tuple(names), result.detail
        )
        events.append(event)
        return self.grammar.render(parts, names)

    def _limit_hit(self) -> str:
        if self.turn + 1 >= self.limits.turns:
            return "turns"
        allowed = self.limits.invalid_actions
        if allowed is not None and self._invalid >= allowed:
            return "invalid actions"
        return ""


def _observe(messages: Sequence[Message]) -> Observation:
    if not messages:
        return {"text": "", "images": ()}
    text, images = flatten(messages)
    # Copies: what a caller does to an observation must not reach the episode's memory.
    return {"text": text, "images": tuple([np.array(image.pixels) for image in images])}


def _info(record: StepRecord, aborted: str = "", truncated_by: str = "") -> dict[str, Any]:
    return {"step": record, "aborted": aborted, "truncated_by": truncated_by}


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return f"{text[:characters]}… [{len(text) - characters} more characters]"
