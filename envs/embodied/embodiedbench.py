"""Defines the environments EB-ALFRED and EB-Habitat, EmbodiedBench's two planning benchmarks."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from visenv.env import Observation

from .env import HouseEnv
from .simulators.habitat.player import HabitatRunner


class EBAlfred(HouseEnv):
    """The policy does household tasks in the words of ALFRED (EmbodiedBench's EB-ALFRED).

    ### Description
    The task is that of `HouseEnv` (``visenv/House-v0``), with 500 px frames and the limits of
    EmbodiedBench. By default the world is House in the dialect ``alfred`` (``simulator="house"``),
    not iTHOR. ``simulator="thor"`` uses ai2thor's own `Controller` in a child process, with
    EB-ALFRED's 162 actions and those of the scene: ``player="house"`` runs House, and a Unity
    player runs ALFRED's scenes (``data="eb_alfred:<folder>"``). Only results with the Unity player
    are comparable with published ones.

    ### Action space
    `Unicode`: one JSON object with three texts and ``executable_plan``, a list of ``{"action_id":
    number, "action_name": name}`` (`visenv.grammar.plan`). An empty plan ends the episode.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the whole prompt, which is rebuilt every
    turn, and a frame of 500 x 500 pixels.

    ### Starting state
    A house and a task that are drawn with the seed, or the scene of a published task.

    ### Reward
    ``"default"`` is paid at the end: success 1 + progress 1 - 0.05 for each invalid action.
    ``"habitat"`` uses EB-Habitat's constants 10, 5 and -0.05. ``"outcome"`` is the success alone.
    The dense reward of ALFRED is not reproduced.

    ### Episode end
    The episode terminates with success or an empty plan. It is truncated after 30 actions or 10
    invalid ones.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``success``, ``progress``, ``steps``,
    ``planner_steps``, ``output_errors``, ``invalid_actions``, ``invalid_ratio``, ``empty_plans``
    and ``mean_reward``. ``info["simulator"]`` is ``"house"``, ``"thor:house"`` or
    ``"thor:<program of the player>"``.

    ### Arguments
    See `visenv.envs.embodied.make_eb_alfred`.

    ### Version history
    v0: first release.
    """


class EBHabitat(HouseEnv):
    """The policy rearranges objects in the words of EB-Habitat's 70 skills (EmbodiedBench).

    ### Description
    The task is that of `HouseEnv` (``visenv/House-v0``), with 500 px frames and the limits of
    EmbodiedBench. The world is House, not ReplicaCAD, as ``info["simulator"]`` states; results are
    not comparable with published ones.

    With ``simulator="house"`` the rules are those of House. With ``simulator="habitat"`` the rules
    are a planning domain of habitat-lab 0.3.3, whose `Env`, task, actions and measures run in a
    child process: success and progress are its `PddlSuccess` and `PddlStageGoals`. Its actions are
    EB-Habitat's 70 skills, in a house with the receptacles of the list.

    ### Action space
    `Unicode`: one JSON object with three texts and ``executable_plan``, a list of ``{"action_id":
    number, "action_name": name}`` (`visenv.grammar.plan`). An empty plan ends the episode.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the whole prompt, which is rebuilt every
    turn, and a frame of 500 x 500 pixels.

    ### Starting state
    A house and a task that are drawn with the seed.

    ### Reward
    ``"default"`` is paid at the end: success 1 + progress 1 - 0.05 for each invalid action.
    ``"habitat"`` uses EB-Habitat's constants 10, 5 and -0.05. ``"outcome"`` is the success alone.

    ### Episode end
    The episode terminates with success or an empty plan. It is truncated after 30 actions or 10
    invalid ones.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``success``, ``progress``, ``steps``,
    ``planner_steps``, ``output_errors``, ``invalid_actions``, ``invalid_ratio``, ``empty_plans``
    and ``mean_reward``. With ``simulator="habitat"``, ``info["simulator"]`` is ``"habitat:house"``
    and ``info["placeholders"]`` names the modules that habitat-lab imports but that are not
    installed.

    ### Arguments
    See `visenv.envs.embodied.make_eb_habitat`.

    ### Version history
    v0: first release.
    """

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; the errors are those of `VisEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        return observation, {**info, **self._placeholders()}

    @override
    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Execute one plan, until the goal is reached, an action fails or a limit is exceeded."""
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, **self._placeholders()}

    def _placeholders(self) -> dict[str, str]:
        runner = self.act.runner
        return {"placeholders": runner.placeholders} if isinstance(runner, HabitatRunner) else {}
