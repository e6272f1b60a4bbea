"""Defines Libero: move a robot arm with chunks of actions until the goal of a task holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from visenv.data.source import Source, require_no_images
from visenv.env import EpisodeLimits, VisEnv
from visenv.grammar import ActionChunkGrammar, ParsedTurn, ToolCall
from visenv.grammar.action_chunk import LONGEST_TURN, TOOL
from visenv.types import Message, TurnRequest

from . import prompts
from .ground_truth import LiberoTruth
from .presets import PRESETS, STEP_LIMITS, LiberoPreset, step_limit
from .tools import ActionChunkTool

LONGEST_NATIVE_TURN = 1 << 17
"""Maximum number of characters of a turn with native actions: `MOST_NATIVE_ROWS` rows have at most
93,600."""


class Libero(VisEnv):
    """The policy does household tasks with a robot arm, with chunks of low-level actions (LIBERO).

    ### Description
    A Panda arm with a two-finger gripper is in front of a table, and the task is given as a
    sentence. The simulator, tasks, initial states and assets are LIBERO's own (Liu et al., NeurIPS
    2023); they run in a child process with its own interpreter. Argos trains one policy on four
    suites and another one on LIBERO-90 (§5.4, Table 5).

    ### Action space
    `Unicode`: ``{"actions": [[x, y, z, roll, pitch, yaw, gripper], …]}`` with 1 to 16 rows. Six
    integers from 0 to 254 span [-1, 1], and 127 is exactly 0. The largest action moves the target
    pose by 5 cm or 0.5 rad; there are 20 actions per second. The gripper is 0 (open) or 1 (closed).
    `NativeActions` is a wrapper with the native ``Box(-1, 1, (7,))``, which also takes chunks.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task and the frames of the cameras
    agentview and wrist, 224 px, at the start and after each chunk.

    ### Starting state
    A stored initial state of a task, after 10 settling steps. Equal samples have bitwise equal
    starting states.

    ### Reward
    ``"success"`` is 1 at the end of the episode if the goal holds, otherwise 0. ``"outcome"`` is
    the same without named terms.

    ### Episode end
    The episode terminates when the goal holds, also inside a chunk. It is truncated after the
    environment steps of the suite (220, 280, 300, 520 or 400), after too many malformed turns, or
    after ``turns`` turns. The preset ``"vla"`` and native actions have no limit of turns.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``success``, ``goal_share`` (the share of
    the goal's predicates that hold), ``env_steps`` and ``chunk_size`` (mean number of executed rows
    per turn).

    ### Arguments
    See `visenv.envs.libero.make`.

    ### Version history
    v0: first release.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (LiberoTruth,)
    presets: ClassVar[Mapping[str, object]] = PRESETS
    headline_metrics: ClassVar[tuple[str, ...]] = ("success", "goal_share", "env_steps")
    blind_player: ClassVar[str] = (
        "`blind` sees no image: each of its turns is a chunk of actions that does not move the "
        "arm, because no turn can contain an answer."
    )

    def __init__(
        self,
        *,
        source: Source,
        preset: LiberoPreset,
        act: ActionChunkTool,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        self.act = act
        most_steps = preset.env_steps or max(STEP_LIMITS.values())
        # Each turn takes an environment step or is malformed, so that this limit is never reached.
        unlimited = most_steps + preset.invalid_actions
        form = '{"values": [[…], …]}' if act.native else '{"actions": [[…], …]}'
        super().__init__(
            source=source,
            grammar=ActionChunkGrammar(form, LONGEST_NATIVE_TURN if act.native else LONGEST_TURN),
            tools=[act],
            limits=EpisodeLimits(
                turns=unlimited if preset.turns is None else preset.turns,
                invalid_actions=preset.invalid_actions,
                env_steps=most_steps,
            ),
            render_mode=render_mode,
            on_abort=on_abort,
        )

    @override
    def initial_messages(self) -> list[Message]:
        """Return the message with frames and task; set the step limit of the suite.

        Raises:
            DataError: If the sample has images: the frames come from the simulator.
        """
        require_no_images(self.sample, type(self).__name__)
        steps = step_limit(self.preset, self.truth.suite)
        self.limits = self.limits._replace(env_steps=steps)
        self.act.most_steps = steps
        if not self.tools:  # with the control no_tool, no call starts the episode
            self.act.reset(self.sample, self.store)
        for image in self.act.first_frames.values():
            self.store.add_image(self.grammar.result_prefix, image)
        brief = self.preset.prompt == "brief"
        return prompts.opening(self.sample.question, self.act.first_frames, brief)

    @override
    def turn_request(self) -> TurnRequest:
        return TurnRequest(stop=self.grammar.stop)

    @override
    def is_done(self) -> bool:
        """Return whether the goal holds."""
        last = self._last_detail()
        return bool(last.get("success"))

    @override
    def task_score(self) -> float:
        """Return 1 for success, otherwise 0."""
        return float(self.is_done())

    @override
    def metrics(self) -> dict[str, float]:
        goals = self._last_detail().get("goals", {})
        calls = [call for call in self.log.tool_calls if call.ok]
        sizes = [len(call.detail["actions"]) for call in calls]
        return {
            "success": self.episode_score,
            "goal_share": sum(goals.values()) / len(goals) if goals else 0.0,
            "env_steps": float(self.env_steps),
            "chunk_size": sum(sizes) / len(sizes) if sizes else 0.0,
        }

    @override
    def close(self) -> None:
        """Close the environment and release the simulator."""
        super().close()
        self.act.close()

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Return the next chunk of the scripted expert."""
        return ParsedTurn(calls=(ToolCall(TOOL, self.act.plan()),))

    @override
    def direct_turn(self, answer: str) -> ParsedTurn:
        """Return a chunk that does not move, because no turn can contain an answer."""
        return ParsedTurn(calls=(ToolCall(TOOL, self.act.example().model_dump(mode="json")),))

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return ``""``, because no turn can contain an answer."""
        return ""

    @property
    def truth(self) -> LiberoTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(LiberoTruth)

    def _last_detail(self) -> dict[str, Any]:
        """Return the facts of the last executed chunk."""
        for call in reversed(self.log.tool_calls):
            if call.ok:
                return dict(call.detail)
        return {}
