"""Defines the tool of Libero, which executes a chunk of actions in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, field_validator
from typing_extensions import override

from visenv.simulators.host import Frames
from visenv.simulators.session import SimulatorSession
from visenv.simulators.settings import SimulatorSpec
from visenv.tools.base import Arguments, Store, Tool, ToolResult
from visenv.types import Image, Sample, Video

from . import prompts
from .actions import (
    ACTION_SIZE,
    LAST_BIN,
    MOST_NATIVE_ROWS,
    MOST_ROWS,
    ActionStatistics,
    decode,
    encode,
)
from .ground_truth import LiberoTruth
from .presets import SETTLING_STEPS, LiberoPreset

TARGET = "visenv.envs.libero.simulator.world:LiberoSimulator"
STEPS_PER_SECOND = 20
PLANNED_STEPS = 16
"""Number of actions of one turn of the expert."""

Record = Literal["none", "turns", "actions"]

_Bin = Annotated[int, Field(ge=0, le=LAST_BIN)]
_Value = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class ActionChunkArguments(Arguments):
    """Holds the arguments of `ActionChunkTool`."""

    actions: Annotated[
        list[Annotated[list[_Bin], Field(min_length=ACTION_SIZE, max_length=ACTION_SIZE)]],
        Field(min_length=1, max_length=MOST_ROWS),
    ] = Field(description="rows of [x, y, z, roll, pitch, yaw, gripper], integers from 0 to 254")

    @field_validator("actions")
    @classmethod
    def _check_gripper(cls, rows: list[list[int]]) -> list[list[int]]:
        if any(row[-1] not in (0, 1) for row in rows):
            raise ValueError("the last number of a row must be 0 (open) or 1 (closed)")
        return rows


class NativeActionArguments(Arguments):
    """Holds the arguments of `ActionChunkTool` with native actions."""

    values: Annotated[
        list[Annotated[list[_Value], Field(min_length=ACTION_SIZE, max_length=ACTION_SIZE)]],
        Field(min_length=1, max_length=MOST_NATIVE_ROWS),
    ] = Field(description="rows of [x, y, z, roll, pitch, yaw, gripper], numbers from -1 to 1")


class ActionChunkTool(Tool[Any]):
    """Executes actions until the chunk ends or the goal holds.

    Args:
        spec: The simulator.
        preset: The frames and limits.
        native: Whether a chunk contains numbers from -1 to 1 instead of integers.
        statistics: The range that integers span.
        record: Frames that the policy does not see: ``"none"``, ``"turns"`` (the last state of each
            turn) or ``"actions"`` (the state after each action).

    Attributes:
        facts: The last facts of the simulator: ``success``, ``goals`` and ``state``.
        first_frames: The frames of the start.
        most_steps: The step limit of the episode, which the policy sees.
    """

    name = "act"
    description = "Moves the arm by the rows of the chunk, one after the other."

    def __init__(
        self,
        spec: SimulatorSpec,
        preset: LiberoPreset,
        *,
        native: bool = False,
        statistics: ActionStatistics | None = None,
        record: Record = "none",
    ) -> None:
        self.arguments = NativeActionArguments if native else ActionChunkArguments
        self.native = native
        self.statistics = statistics
        self.record = record
        self.session = SimulatorSession(spec)
        self.preset = preset
        self.facts: dict[str, Any] = {}
        self.first_frames: dict[str, Image] = {}
        self.most_steps = 0
        self._used = 0
        self._request = {
            "side": preset.frame_side,
            "cameras": list(prompts.CAMERAS),
            "turned": preset.frames == "rotated",
        }

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Begin the episode of a sample, and render its first frames."""
        truth = sample.truth_as(LiberoTruth)
        task = {
            "world": {"suite": truth.suite, "task": truth.task, "seed": truth.seed},
            "init": truth.state,
            "settle": SETTLING_STEPS,
            "start": list(truth.start),
        }
        reply = self.session.reset(task, self._request)
        self.facts = reply.facts
        self.first_frames = _images(reply.frames)
        self._used = 0

    @override
    def call(self, arguments: Any, store: Store) -> ToolResult:
        """Execute a chunk, as far as the limit of the episode allows.

        Raises:
            ServiceError: If the simulator fails.
        """
        rows = arguments.values if self.native else decode(arguments.actions, self.statistics)
        rows = rows[: max(self.most_steps - self._used, 1)]
        request: dict[str, Any] = {"actions": rows}
        if self.record == "actions":
            request["every"] = self._request
        reply = self.session.act(request, self._request)
        self.facts = reply.facts
        taken = int(reply.facts["taken"])
        hidden = self._film(taken, reply.frames)
        self._used += taken
        frames = _images(reply.frames)
        detail = {
            "success": reply.facts["success"],
            "goals": dict(reply.facts["goals"]),
            "state": reply.facts["state"],
            "actions": rows[:taken],
        }
        parts = (prompts.progress(self._used, self.most_steps), *prompts.shown_frames(frames))
        return ToolResult(parts, detail, env_steps=taken, hidden_frames=hidden)

    def plan(self) -> dict[str, Any]:
        """Return the arguments of the expert's next turn.

        Raises:
            ServiceError: If the simulator fails.
        """
        rows = self.session.act({"plan": PLANNED_STEPS}).facts["rows"]
        if self.native:
            return {"values": decode(rows)}
        return {"actions": encode(decode(rows), self.statistics) if self.statistics else rows}

    @override
    def close(self) -> None:
        self.session.end()

    @override
    def example(self) -> Any:
        """Return a chunk that does not move."""
        if self.native:
            return NativeActionArguments(values=[[0.0] * 6 + [-1.0]])
        return ActionChunkArguments(actions=[[127] * 6 + [0]])

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> Any:
        actions = rng.uniform(-1, 1, (int(rng.integers(1, MOST_ROWS + 1)), ACTION_SIZE))
        if self.native:
            return NativeActionArguments(values=actions.tolist())
        return ActionChunkArguments(actions=encode(actions.tolist()))

    def _film(self, taken: int, frames: Frames) -> tuple[Video, ...]:
        """Return the hidden frames of a turn as one video for each camera."""
        if self.record == "none":
            return ()
        if self.record == "turns":
            steps: list[tuple[int, Mapping[str, Any]]] = [(taken, frames)]
        else:
            film = self.session.frames({"film": True})
            steps = [
                (number + 1, {name: film[f"{number:03d} {name}"] for name in prompts.CAMERAS})
                for number in range(taken)
            ]
        times = tuple((self._used + number) / STEPS_PER_SECOND for number, _ in steps)
        return tuple(
            Video(tuple(Image.from_pixels(pictures[name]) for _, pictures in steps), times)
            for name in prompts.CAMERAS
        )


def _images(frames: Frames) -> dict[str, Image]:
    return {name: Image.from_pixels(pixels) for name, pixels in frames.items()}
