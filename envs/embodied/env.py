"""Defines the environment House, in which a policy plans, acts and looks again.

`TakesLookalike` is its teacher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from visenv.data.source import Source, require_no_images
from visenv.env import EpisodeLimits, Observation
from visenv.grammar import ParsedTurn, ToolCall
from visenv.grammar.plan import TOOL, PlanGrammar
from visenv.rebuilt_prompt import RebuiltPrompt
from visenv.teacher import LapsingTeacher, Teacher
from visenv.types import (
    Image,
    Message,
    Part,
    ToolCalled,
    TurnRequest,
)

from . import prompts
from .boxes import with_boxes
from .compat import EmbodiedBenchGrammar
from .ground_truth import HouseTruth
from .oracle import RestOfPlan, look_at, looks, next_look, thought
from .presets import PRESETS, EmbodiedOptions, EmbodiedPreset
from .prompts import read_examples, write_examples
from .rewards import embodied_bench_metrics, success_score
from .simulation import ActTool, EpisodeRunner, HouseSimulation
from .world.goals import with_target


@dataclass(frozen=True)
class TakesLookalike(LapsingTeacher["HouseEnv"]):
    """Finds the object only among the first objects of its type that it looks at.

    Otherwise it brings a look-alike. In a share of these episodes it first makes a detour: a look
    at one more object, which it does not recognize even if it is the right one. No rewarded episode
    of a search looks at more than `known` objects, so a filter of the episodes does not show how to
    find a later one. A task that needs no search is played with a random object of the type. A task
    without look-alikes is played as by the oracle.

    Attributes:
        known: The number of objects among which the teacher finds the right one, 0 or more.
        detour: Of the episodes in which it brings a look-alike, the share with a look at one more
            object, 0 to 1.

    Raises:
        ConfigurationError: If an option is not in its range.
    """

    summary: ClassVar[str] = (
        "Looks at two objects of the type, sometimes at a third one, and brings a look-alike "
        "unless one of the first two is the right one."
    )
    rate: float = 1.0
    known: int = 2
    detour: float = 0.25

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_not_negative("known")
        self.require_share("detour")

    @override
    def mistaken_turn(self, env: HouseEnv, rng: np.random.Generator) -> ParsedTurn:
        truth = env.truth
        if not truth.others or not env.tools:
            return env.oracle_turn()
        if env.preset.oracle == "plan":
            return env.direct_turn(str(rng.choice((*truth.targets, *truth.others))))
        order = looks(env.simulation)
        if order.index(look_at(env.simulation, min(truth.targets))) < self.known:
            return env.oracle_turn()
        limit = self.known + int(rng.random() < self.detour)
        taken = str(rng.choice(truth.others))
        look = env.next_look()
        if look and sum(action in env.actions_done() for action in order) < limit:
            return env.planned(look)
        return env.direct_turn(taken)


class HouseEnv(RebuiltPrompt):
    """The policy follows an instruction in a procedural house that it sees through a camera.

    ### Description
    The policy sees an instruction, a numbered list of actions and a camera image, and writes a plan
    of actions. The plan runs until the goal is reached, an action fails or a limit is reached. Then
    the policy sees the results and plans again. The house, its objects and the task are a function
    of the seed, with exact ground truth. The actions and the rules are those of EmbodiedBench's two
    high-level planning benchmarks, which the Argos paper evaluates (§5.3).

    ### Action space
    `Unicode`: one JSON object with three texts and ``executable_plan``, a list of ``{"action_id":
    number, "action_name": name}`` (`visenv.grammar.plan`). An empty plan ends the episode.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the whole prompt, which is rebuilt every
    turn, and a square frame of 96 to 500 px.

    ### Starting state
    A house and a task that are drawn with the seed.

    ### Reward
    ``"default"`` is paid at the end: success 1 + progress 1 - 0.05 for each invalid action.
    ``"habitat"`` uses EB-Habitat's constants 10, 5 and -0.05. ``"outcome"`` is the success alone.

    ### Episode end
    The episode terminates with success or an empty plan. It is truncated after 30 actions or 10
    invalid ones.

    ### Information
    ``info["simulator"]`` is the name of the simulator, here ``"house"``. ``info["step"].metrics``
    contains on the last step: ``success``, ``progress``, ``steps``, ``planner_steps``,
    ``output_errors``, ``invalid_actions``, ``invalid_ratio``, ``empty_plans`` and ``mean_reward``.

    ### Arguments
    See `visenv.envs.embodied.make_house`.

    ### Version history
    v0: first release.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (HouseTruth,)
    presets: ClassVar[Mapping[str, object]] = PRESETS
    controls: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {"no_vision": {"blind": True}, "no_feedback": {"feedback": False}}
    )
    headline_metrics: ClassVar[tuple[str, ...]] = ("success", "progress", "invalid_ratio")
    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"takes_lookalike": TakesLookalike}
    )
    blind_player: ClassVar[str] = (
        "`blind` sees no image, but executes plans that the planner makes with the ground truth. "
        "It knows the house and the goal, but not which of the look-alike objects the instruction "
        "means: each plan takes a random one. It therefore solves every task without look-alikes."
    )

    def __init__(
        self,
        *,
        source: Source,
        preset: EmbodiedPreset,
        options: EmbodiedOptions,
        runner: EpisodeRunner,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        self.options = options
        self.act = ActTool(runner)
        self._frames: list[Image] = []
        self._shown = 0
        self._examples: Sequence[str] = ()
        self._plan = RestOfPlan()
        super().__init__(
            source=source,
            grammar=self._grammar(()),
            tools=[self.act],
            limits=EpisodeLimits(
                turns=preset.steps + preset.invalid_actions,
                invalid_actions=preset.invalid_actions,
                env_steps=preset.steps,
                image_pixels=preset.side**2,
            ),
            render_mode=render_mode,
            on_abort=on_abort,
        )

    @property
    def simulator(self) -> str:
        """Return the name of the simulator that runs the episodes, with its player."""
        return self.act.runner.name

    @property
    def simulation(self) -> HouseSimulation:
        """Return the simulation of the current episode."""
        return self.act.simulation

    @property
    def truth(self) -> HouseTruth:
        """Return the ground truth of the sample."""
        return self.simulation.truth

    # ------------------------------------------------------------------ Gymnasium

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; the errors are those of `VisEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        return observation, {**info, "simulator": self.simulator}

    @override
    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Execute one plan, until the goal is reached, an action fails or a limit is exceeded."""
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "simulator": self.simulator}

    @override
    def close(self) -> None:
        """Close the environment and its runner."""
        super().close()
        self.act.runner.close()

    # ------------------------------------------------------------------ hooks of VisEnv

    @override
    def initial_messages(self) -> list[Message]:
        """Return the first prompt; the list of actions depends on the house.

        Raises:
            DataError: If the sample has images: the frames come from the simulator.
        """
        require_no_images(self.sample, type(self).__name__)
        self.act.begin(self.sample)
        self.grammar = grammar = self._grammar(self.simulation.dialect.names)
        self._frames, self._shown = [], 0
        self._plan = RestOfPlan()
        self._examples = self._make_examples(grammar)
        return super().initial_messages()

    @override
    def turn_request(self) -> TurnRequest:
        """Return the request for a plan; with a chat history the context is kept."""
        expression = self._plans.turn_regex()
        context: Literal["append", "replace"] = (
            "append" if self.options.chat_history and self.turn else "replace"
        )
        return TurnRequest(regex=expression, context=context)

    @override
    def turn_notice(self) -> tuple[Part, ...]:
        """Return the prompt, or with a chat history only the new parts."""
        if not self.options.chat_history:
            return self.prompt()
        lines = self._history()
        new, self._shown = lines[self._shown :], len(lines)
        return (prompts.history(new), *self._images())

    @override
    def prompt(self) -> tuple[Part, ...]:
        """Return the whole prompt: constant parts first, history and image last."""
        lines = self._history()
        self._shown = len(lines)
        head = "".join(
            (
                prompts.rules(
                    self.truth.dialect,
                    self.preset.prompt,
                    self.grammar.instructions(()),
                    (self.preset.steps, self.preset.invalid_actions),
                ),
                prompts.action_list(self.act.description, self.simulation.dialect.names)
                if self.tools
                else prompts.NO_ACTIONS,
                prompts.examples(self._examples),
                prompts.instruction(self.sample.question),
            )
        )
        images = self._images()
        if self.options.compat:
            return (*images, head, prompts.history(lines))
        return (head, prompts.history(lines), *images)

    @override
    def is_done(self) -> bool:
        """Return whether the goal is reached, or an empty plan ended the episode."""
        return self.simulation.succeeded or self.log.answer is not None

    @override
    def stop_calls(self, called: ToolCalled) -> str:
        """Stop a plan also at the first action that fails."""
        return "an action failed" if not called.ok else super().stop_calls(called)

    @override
    def task_score(self) -> float:
        """Return 1 if the goal was reached."""
        return success_score(self.log)

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return a random object of the right type, as a player without vision would take."""
        truth = self.truth
        candidates = (*truth.targets, *truth.others)
        return str(rng.choice(candidates)) if candidates else ""

    @override
    def direct_turn(self, answer: str) -> ParsedTurn:
        """Return a plan that brings this object to its destination without looking at others."""
        truth, simulation = self.truth, self.simulation
        goal = truth.goal
        if answer in truth.others:
            goal = with_target(goal, truth.targets, answer)
        return self.planned(self._plan.ids(simulation, goal, self.log.tool_calls))

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Return the rest of a plan, or the next object to look at (`EmbodiedPreset.oracle`)."""
        if not self.tools:
            return self.planned([])
        rest = self._plan.ids
        return self.planned(
            self.next_look() or rest(self.simulation, self.truth.goal, self.log.tool_calls)
        )

    @override
    def metrics(self) -> dict[str, float]:
        """Return the metrics of EmbodiedBench."""
        return embodied_bench_metrics(
            self.log,
            turns=self.turn,
            steps=self.env_steps,
            progress=self.simulation.progress.share,
            compat=bool(self.options.compat),
        )

    # ------------------------------------------------------------------ for demonstrations

    def actions_done(self) -> set[int]:
        """Return the ids of the executed actions."""
        return {call.arguments["action_id"] for call in self.log.tool_calls}

    def next_look(self) -> list[int]:
        """Return the action that looks at the next object, empty if no search is needed."""
        if self.preset.oracle != "search":
            return []
        return next_look(self.simulation, self.actions_done())

    def planned(self, ids: Sequence[int]) -> ParsedTurn:
        """Return a turn with the first of these actions; if there are none, an empty plan."""
        names = self.simulation.dialect.names
        calls = tuple(
            ToolCall(TOOL, {"action_id": index, "action_name": names[index]})
            for index in ids[: self.preset.plan_actions]
        )
        is_blind = self.options.language_only
        oracle = "plan" if is_blind else self.preset.oracle  # no frame shows what a search finds
        lines = thought(self.simulation, len(calls), oracle, is_first=not self.turn)
        thoughts = "\n".join(lines[1:] if is_blind else lines)
        return ParsedTurn(thoughts, calls) if calls else ParsedTurn(thoughts, answer="")

    # ------------------------------------------------------------------ private helpers

    @property
    def _plans(self) -> PlanGrammar:
        assert isinstance(self.grammar, PlanGrammar)
        return self.grammar

    def _grammar(self, names: Sequence[str]) -> PlanGrammar:
        grammar = EmbodiedBenchGrammar if self.options.compat else PlanGrammar
        return grammar(
            names,
            most_actions=self.preset.plan_actions,
            describes_images=not self.options.language_only,
            text_characters=self.preset.text_characters,
        )

    def _make_examples(self, grammar: PlanGrammar) -> Sequence[str]:
        options = self.options
        if options.examples is not None:
            return read_examples(options.examples, options.n_shots)
        if not options.n_shots:
            return ()
        is_long = self.sample.kind == "long_horizon"
        return write_examples(
            self.simulation.dialect, self.truth, grammar, options.n_shots, is_long
        )

    def _history(self) -> list[str]:
        options = self.options
        return prompts.history_lines(
            self.log, feedback=options.feedback, compat=bool(options.compat)
        )

    def _images(self) -> tuple[Part, ...]:
        """Return the current frame, and as many earlier ones as the options require."""
        options = self.options
        if options.language_only:
            return ()
        smooth = self.preset.smoothing == "msaa"
        frame = self.simulation.frame(self.preset.side, smooth, options.blind)
        if options.boxes and not options.blind:
            frame = with_boxes(frame, self.simulation)
        before = self._frames[max(0, len(self._frames) - options.past_images) :]
        self._frames.append(frame)
        earlier: tuple[Part, ...] = (prompts.BEFORE, *before) if before else ()
        return (*earlier, prompts.NOW, frame)
