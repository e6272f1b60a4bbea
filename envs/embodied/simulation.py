"""Defines an episode in a house, and the tool with which a policy acts in it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.tools import Arguments, Store, Tool, ToolResult
from visenv.types import Image, Pixels, Sample, Video

from .dialects import DIALECTS, Dialect
from .ground_truth import HouseTruth
from .house_map import draw_map
from .world.goals import LookalikeSweep, Progress, is_reached
from .world.house import FurnishedHouse
from .world.render import HouseRenderer
from .world.state import HouseState
from .world.tasks import make_task

_GRAY = 128


class HouseSimulation:
    """Holds the state of an episode, and renders what the agent sees.

    Args:
        truth: The task.

    Attributes:
        truth: The task.
        goal: The goal, which determines success and progress.
        dialect: The numbered actions.
        progress: The conditions that are met.
        sweep: Whether the policy tried look-alikes.
        succeeded: Whether the goal was reached.
        steps: Number of actions that were executed or tried.
    """

    def __init__(self, truth: HouseTruth) -> None:
        self._begin(truth, make_task(truth.seed, truth.options).house)

    def _begin(self, truth: HouseTruth, house: FurnishedHouse) -> None:
        self.truth = truth
        self.goal = truth.goal
        self.house = house
        self.state = HouseState(house)
        self.dialect: Dialect = DIALECTS[truth.dialect](house)
        self.progress = Progress(self.goal, self.dialect.latches_progress)
        self.progress.update(self.state)
        self.sweep = LookalikeSweep(self.goal, self.state)
        self.renderer = HouseRenderer(house)
        self.succeeded = False
        self.steps = 0
        self._seen: tuple[int, Image] | None = None

    def act(self, action_id: int) -> tuple[bool, dict[str, Any]]:
        """Execute an action; return whether it was valid, and facts about it."""
        outcome = self.dialect.perform(self.state, action_id)
        return outcome.ok, self._judge(outcome.feedback)

    def _judge(self, feedback: str) -> dict[str, Any]:
        """Count an action, and return facts about it and the goal."""
        new = self.progress.update(self.state)
        self.succeeded = is_reached(self.state, self.goal)
        self.steps += 1
        return {
            "feedback": feedback,
            "step": self.steps,
            "progress": self.progress.share,
            "met": new,
            "conditions": len(self.goal.conditions),
            "success": self.succeeded,
            "swept": self.sweep.update(self.state),
        }

    def frame(self, side: int, antialias: bool, blind: bool = False) -> Image:
        """Return the view of the agent; a gray image if `blind`."""
        if blind:
            return Image.from_pixels(np.full((side, side, 3), _GRAY, np.uint8))
        if self._seen is None or self._seen[0] != self.steps:
            self._seen = self.steps, Image.from_pixels(self._draw(side, antialias))
        return self._seen[1]

    def films(self) -> tuple[Video, ...]:
        """Return a video of the last action for viewers, which shows a map of the house."""
        return (Video((draw_map(self.state),), (float(self.steps),)),)

    def _draw(self, side: int, antialias: bool) -> Pixels:
        pixels: Pixels = self.renderer.frame(self.state, side, antialias)
        return pixels


class EpisodeRunner(Protocol):
    """Runs the episodes of an environment: House in this process, or a simulator.

    Attributes:
        name: The simulator and its player, as in ``info["simulator"]`` and labels.
    """

    name: str

    def begin(self, sample: Sample) -> HouseSimulation:
        """Begin the episode of a sample.

        Raises:
            ConfigurationError: If something must be installed first; the message explains what.
            ServiceError: If a simulator fails.
        """
        ...

    def close(self) -> None:
        """Release the resources of the episodes."""
        ...


class HouseRunner:
    """Runs House in this process."""

    name = "house"

    def begin(self, sample: Sample) -> HouseSimulation:
        """Begin the episode of a sample."""
        return HouseSimulation(sample.truth_as(HouseTruth))

    def close(self) -> None:
        """Do nothing."""


class ActArguments(Arguments):
    """Holds the arguments of `ActTool`."""

    action_id: int = Field(description="the number of an action in the list", ge=0, le=9999)
    action_name: str = Field(description="the name of that action")


class ActTool(Tool[ActArguments]):
    """Executes one of the numbered actions.

    Args:
        runner: Runs the episodes.

    Attributes:
        simulation: The episode, after `begin`.
    """

    name = "act"
    description = "An entry of a plan carries out one action of this list."
    arguments = ActArguments
    simulation: HouseSimulation

    def __init__(self, runner: EpisodeRunner) -> None:
        self.runner = runner

    def begin(self, sample: Sample) -> None:
        """Begin the episode of a sample; a control without tools also needs a simulation."""
        self.simulation = self.runner.begin(sample)

    @override
    def close(self) -> None:
        self.runner.close()

    @override
    def call(self, arguments: ActArguments, store: Store) -> ToolResult:
        """Execute the action; an invalid one has a result with ``ok`` False."""
        ok, detail = self.simulation.act(arguments.action_id)
        reason = "" if ok else detail["feedback"]
        films = self.simulation.films()
        return ToolResult((), detail, ok, reason, env_steps=1, hidden_frames=films)

    @override
    def example(self) -> ActArguments:
        names = self.simulation.dialect.names
        return ActArguments(action_id=0, action_name=names[0])

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> ActArguments:
        names = self.simulation.dialect.names
        index = int(rng.integers(len(names)))
        return ActArguments(action_id=index, action_name=names[index])
