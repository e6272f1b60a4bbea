"""Creates the LIBERO environment with its tasks, simulator and reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import gymnasium as gym

from visenv.data.source import Source
from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.presets import check_choice, choose_preset
from visenv.rewards import RewardWrapper
from visenv.simulators.settings import HostLimits, SimulatorSpec

from .actions import read_statistics
from .datasets.tasks import open_tasks
from .env import Libero
from .native import NativeActions
from .presets import PRESETS, LiberoPreset
from .rewards import reward_terms
from .tools import TARGET, ActionChunkTool, Record

__all__ = ["PRESETS", "Libero", "LiberoPreset", "NativeActions", "make"]


def make(
    *,
    data: str | Source = "solved",
    preset: str = "default",
    reward: Literal["success", "outcome"] = "success",
    tasks: Sequence[int] | None = None,
    states: Sequence[int] | int | None = None,
    layout_seed: int = 0,
    actions: Literal["bins", "native"] = "bins",
    statistics: str | None = None,
    record: Record = "none",
    assets: str = "",
    interpreter: str = "",
    host_limits: dict[str, Any] | None = None,
    render_mode: str | None = None,
    on_abort: Literal["truncate", "raise"] = "truncate",
    **overrides: Any,
) -> gym.Env[Observation, str]:
    """Create ``visenv/Libero-v0``. The first reset starts the simulator.

    Args:
        data: ``"solved"`` (the samples that the scripted expert solves), a suite
            (``"libero_spatial"``, ``"libero_object"``, ``"libero_goal"``, ``"libero_90"``,
            ``"libero_10"``), ``"four_suites"``, ``"all"``, or a `Source`.
        preset: ``"default"``, ``"vla"`` (rotated frames, only the task as prompt, no limit of
            turns) or ``"tiny"`` (frames of 96 px).
        reward: ``"success"`` or ``"outcome"``.
        tasks: Indices of the tasks of a suite; all by default.
        states: Indices of the stored initial states, or the number of the first ones; all 50 by
            default. Without `states`, the samples of ``"solved"`` are divided: evaluations play
            every fifth state of a task, and training the others.
        layout_seed: The seed of LIBERO when a task is loaded; it determines the poses of the
            fixtures, which the stored states do not contain.
        actions: ``"bins"`` (integers from 0 to 254) or ``"native"`` (``{"values": …}`` with numbers
            from -1 to 1, for `NativeActions`). Native actions have no limit of turns, unless
            ``turns`` is given.
        statistics: ``"<dataset_statistics.json>:<key>"`` of an OpenVLA checkpoint, whose ranges the
            integers then span.
        record: Frames for viewers, which the policy does not see: ``"none"``, ``"turns"`` or
            ``"actions"``.
        assets: A folder with LIBERO's assets; by default those of the installed packages.
        interpreter: The Python with LIBERO, or ``"in-process"``; by default that of
            ``VISENV_SIMULATORS`` or ``make simulators``.
        host_limits: Fields of `visenv.simulators.settings.HostLimits` to change.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
        **overrides: Fields of `LiberoPreset` to change, for example ``limits="lerobot"``.

    Raises:
        ConfigurationError: If the value of an option is invalid.
    """
    chosen = choose_preset("visenv/Libero-v0", make, PRESETS, preset, overrides)
    check_choice("reward", reward, ("success", "outcome"))
    check_choice("actions", actions, ("bins", "native"))
    check_choice("record", record, get_args(Record))
    if statistics is not None and actions == "native":
        raise ConfigurationError(
            f"statistics is an option of actions='bins', got statistics={statistics!r:.80} with "
            "actions='native': omit it."
        )
    if actions == "native" and "turns" not in overrides:
        chosen = replace(chosen, turns=None)
    if isinstance(data, str):
        data = open_tasks(data, tasks, states, layout_seed)
    elif tasks is not None or states is not None:
        raise ConfigurationError(
            "tasks and states select samples of a suite, such as data='libero_spatial', got "
            f"data={type(data).__name__}: omit them for a source."
        )
    spec = SimulatorSpec.of(
        TARGET,
        {"assets": assets},
        interpreter=interpreter,
        limits=HostLimits.with_changes(host_limits or {}),
    )
    act = ActionChunkTool(
        spec,
        chosen,
        native=actions == "native",
        statistics=None if statistics is None else read_statistics(statistics),
        record=record,
    )
    env = Libero(source=data, preset=chosen, act=act, render_mode=render_mode, on_abort=on_abort)
    return env if reward == "outcome" else RewardWrapper(env, reward_terms())
