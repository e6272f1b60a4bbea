"""Creates House, EB-ALFRED and EB-Habitat with their tasks, simulator and reward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_type_hints

import gymnasium as gym

from visenv.data.source import Source
from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.presets import check_choice, check_count, choose_preset, options_of
from visenv.rewards import RewardWrapper

from .datasets.published import PublishedTruth
from .dialects import DIALECTS
from .embodiedbench import EBAlfred, EBHabitat
from .env import HouseEnv
from .presets import PRESETS, Compat, EmbodiedOptions, EmbodiedPreset
from .rewards import WEIGHTS, reward_terms
from .simulation import EpisodeRunner, HouseRunner
from .simulators.habitat.options import HabitatOptions
from .simulators.habitat.published import EBHabitatScenes
from .simulators.published import open_published
from .simulators.thor.players import HOUSE as HOUSE_PLAYER
from .simulators.thor.players import ThorOptions, find_player
from .simulators.thor.published import EBAlfredScenes
from .source import HouseTasks
from .world.items import Split
from .world.tasks import SUBSETS

__all__ = [
    "PRESETS",
    "EBAlfred",
    "EBHabitat",
    "EmbodiedPreset",
    "HouseEnv",
    "make_eb_alfred",
    "make_eb_habitat",
    "make_house",
]  # fmt: skip

_SMALLEST, _LARGEST = 96, 500


def make_house(
    *,
    data: str | Source = "procedural",
    dialect: Literal["alfred", "habitat"] = "alfred",
    subset: str = "all",
    split: Split = "train",
    preset: str = "house",
    reward: Literal["default", "habitat", "outcome"] = "default",
    n_shots: int = 0,
    examples: str | None = None,
    feedback: bool = True,
    chat_history: bool = False,
    past_images: int = 0,
    language_only: bool = False,
    boxes: bool = False,
    blind: bool = False,
    compat: Compat = None,
    render_mode: str | None = None,
    on_abort: Literal["truncate", "raise"] = "truncate",
    **overrides: Any,
) -> gym.Env[Observation, str]:
    """Create ``visenv/House-v0``.

    Args:
        data: ``"procedural"``, or a `Source` of samples with a `HouseTruth`.
        dialect: ``"alfred"`` or ``"habitat"``: the action strings, rules and feedback of EB-ALFRED
            or of EB-Habitat.
        subset: ``"base"``, ``"common_sense"``, ``"complex_instruction"``, ``"spatial"``,
            ``"visual_appearance"``, ``"long_horizon"``, or ``"all"`` for equal shares.
        split: ``"train"`` or ``"eval"``, which share no house, appearance or phrase.
        preset: ``"house"`` (frames of 224 px), ``"embodiedbench"`` (500 px) or ``"tiny"``.
        reward: ``"default"``, ``"habitat"`` (the constants of EB-Habitat) or ``"outcome"`` (the
            success alone).
        n_shots: The number of examples in the prompt, 0 to 10 (EmbodiedBench uses 10).
        examples: A file of examples, a JSON list of texts; None lets the planner write them.
        feedback: Whether the history contains the result of each action.
        chat_history: Whether the conversation is continued instead of rebuilt every turn.
        past_images: The number of earlier frames that are shown with the current one.
        language_only: Whether no frame is shown, and turns contain no description of one.
        boxes: Whether frames have boxes with names around all visible objects.
        blind: Whether frames are gray, as a control.
        compat: ``"embodiedbench"`` puts the image first, reads replies as EmbodiedBench's parser
            does, hides errors of replies from the policy, and computes metrics as EmbodiedBench
            does; docs/embodied.md has a table.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
        **overrides: Fields of `EmbodiedPreset` to change, for example ``side=300``.

    Raises:
        ConfigurationError: If the value of an option is invalid.
    """
    options = EmbodiedOptions(n_shots, examples, feedback, chat_history, past_images,
                              language_only, boxes, blind, compat)  # fmt: skip
    chosen = choose_preset("visenv/House-v0", make_house, PRESETS, preset, overrides)
    check_choice("dialect", dialect, ("alfred", "habitat"))
    runner = HouseRunner()
    source = _source("House", data, chosen, (dialect, subset, split), runner.name)
    return _finish(HouseEnv, source, chosen, options, runner, reward, render_mode, on_abort)


def make_eb_alfred(
    *,
    data: str | Source = "procedural",
    simulator: Literal["house", "thor"] = "house",
    player: str = "",
    player_server: Literal["wsgi", "fifo"] = "wsgi",
    interpreter: str = "",
    host_limits: dict[str, Any] | None = None,
    preset: str = "embodiedbench",
    **settings: Any,
) -> gym.Env[Observation, str]:
    """Create ``visenv/EBAlfred-v0``.

    Args:
        data: ``"procedural"``, a `Source` of samples with a `HouseTruth`, or
            ``"eb_alfred:<folder>"`` for the published tasks, which need ``simulator="thor"`` and a
            Unity player.
        simulator: ``"house"``, or ``"thor"`` for ai2thor's `Controller` in a child process.
        player: The program that ai2thor controls: ``"house"``, our program that serves House, or
            the path of a Unity player; by default the path in ``VISENV_THOR_PLAYER``. Only with
            ``simulator="thor"``.
        player_server: The protocol between a Unity player and ai2thor: ``"wsgi"`` (2.1.0, which has
            ALFRED's scenes) or ``"fifo"`` (later versions).
        interpreter: The Python with ai2thor; by default that of ``VISENV_SIMULATORS`` or ``make
            simulators``. Only with ``simulator="thor"``.
        host_limits: Fields of `visenv.simulators.settings.HostLimits` to change. Only with
            ``simulator="thor"``.
        preset: ``"house"`` (frames of 224 px), ``"embodiedbench"`` (500 px) or ``"tiny"``.
        **settings: All other arguments of `make_house` (``visenv/House-v0``), apart from
            `dialect`.

    Raises:
        ConfigurationError: If the value of an option is invalid, or the published tasks are
            selected without their player.
    """
    check_choice("simulator", simulator, ("house", "thor"))
    if simulator == "house":
        if player or interpreter or host_limits:
            raise ConfigurationError(
                'player, interpreter and host_limits are options of simulator="thor", got '
                f'simulator="house" with player={player!r}, interpreter={interpreter!r} and '
                f"host_limits={host_limits!r}."
            )
        return _make_eb(EBAlfred, "alfred", data, _house, preset, settings)
    check_choice("player_server", player_server, ("wsgi", "fifo"))
    thor = ThorOptions(find_player(player), player_server, interpreter, host_limits or {})
    is_published = _is_published(data, "eb_alfred")
    if thor.player == HOUSE_PLAYER and not is_published:
        return _make_eb(EBAlfred, "alfred", data, thor.runner, preset, settings)
    if thor.player == HOUSE_PLAYER or not is_published:
        raise ConfigurationError(
            'The published tasks (data="eb_alfred:<folder>") need the Unity player of AI2-THOR '
            f'2.1.0, and tasks of House need player="house"; got data={data!r:.80} with player='
            f"{thor.player!r}."
        )
    if {"subset", "split"} & settings.keys():
        raise ConfigurationError(
            "subset and split are options of House: name the subset of published tasks in "
            f'data, as in "eb_alfred:FOLDER?subset=base"; got data={data!r:.80}.'
        )
    published = open_published(data, thor.name)
    return _make_eb(EBAlfredScenes, "alfred", published, thor.runner, preset, settings)


def make_eb_habitat(
    *,
    data: str | Source = "procedural",
    simulator: Literal["house", "habitat"] = "house",
    skills: Literal["house", "embodiedbench"] | None = None,
    assets: str = "",
    interpreter: str = "",
    host_limits: dict[str, Any] | None = None,
    preset: str = "embodiedbench",
    **settings: Any,
) -> gym.Env[Observation, str]:
    """Create ``visenv/EBHabitat-v0``.

    Args:
        data: ``"procedural"``, a `Source` of samples with a `HouseTruth`, or
            ``"eb_habitat:<folder>"`` for the published tasks, which need ``simulator="habitat"``,
            habitat-sim and ReplicaCAD.
        simulator: ``"house"``, or ``"habitat"`` for habitat-lab in a child process.
        skills: The numbered actions: ``"house"``, for all receptacles and types of objects of the
            house, or ``"embodiedbench"``, the 70 skills of EB-Habitat in a house with its
            receptacles. By default ``"house"`` with ``simulator="house"``, else
            ``"embodiedbench"``.
        assets: The folder ``data`` of habitat-sim with ReplicaCAD, YCB and the robot Fetch, for
            published tasks.
        interpreter: The Python with habitat-lab; by default that of ``VISENV_SIMULATORS`` or ``make
            simulators``. Only with ``simulator="habitat"``.
        host_limits: Fields of `visenv.simulators.settings.HostLimits` to change. Only with
            ``simulator="habitat"``.
        preset: ``"house"`` (frames of 224 px), ``"embodiedbench"`` (500 px) or ``"tiny"``.
        **settings: All other arguments of `make_house` (``visenv/House-v0``), apart from
            `dialect`.

    Raises:
        ConfigurationError: If the value of an option is invalid, or the published tasks are
            selected without their simulator.
    """
    check_choice("simulator", simulator, ("house", "habitat"))
    check_choice("skills", skills or "house", ("house", "embodiedbench"))
    listed = skills or ("house" if simulator == "house" else "embodiedbench")
    dialect = "skills" if listed == "embodiedbench" else "habitat"
    if simulator == "house":
        if assets or interpreter or host_limits:
            raise ConfigurationError(
                'assets, interpreter and host_limits are options of simulator="habitat", got '
                f'simulator="house" with assets={assets!r}, interpreter={interpreter!r} and '
                f"host_limits={host_limits!r}."
            )
        return _make_eb(EBHabitat, dialect, data, _house, preset, settings)
    habitat = HabitatOptions(assets, interpreter, host_limits or {})
    if not _is_published(data, "eb_habitat"):
        return _make_eb(EBHabitat, dialect, data, habitat.house, preset, settings)
    if listed == "house" or {"subset", "split"} & settings.keys():
        raise ConfigurationError(
            'Published tasks have EmbodiedBench\'s skills; name their subset as "…?subset=base" in '
            "data."
        )
    published = open_published(data, "habitat:replica_cad")
    runner = partial(habitat.replica_cad, getattr(published.tasks, "folder", Path()))
    return _make_eb(EBHabitatScenes, dialect, published, runner, preset, settings)


_PLAYERS = {
    "eb_alfred": "the Unity player of AI2-THOR 2.1.0 with ALFRED's scenes",
    "eb_habitat": "habitat-sim with the scenes of ReplicaCAD",
}


def _is_published(data: str | Source, name: str) -> bool:
    """Return whether samples are published tasks."""
    if isinstance(data, str):
        return data.startswith(f"{name}:")
    return getattr(data, "ground_truth", None) is PublishedTruth


def _house(preset: EmbodiedPreset, options: EmbodiedOptions) -> EpisodeRunner:
    """Return the runner of House in this process."""
    return HouseRunner()


def _make_eb(
    made: type[HouseEnv],
    dialect: str,
    data: str | Source,
    make_runner: Callable[[EmbodiedPreset, EmbodiedOptions], EpisodeRunner],
    preset: str,
    settings: dict[str, Any],
) -> gym.Env[Observation, str]:
    if "dialect" in settings:
        raise ConfigurationError(f"{made.__name__} has the dialect {dialect!r}; use House-v0.")
    env_id = _check_names(made, settings)
    published = "eb_alfred" if made is EBAlfred else "eb_habitat"
    if isinstance(data, str) and data.startswith(f"{published}:"):
        raise ConfigurationError(
            f"data={data!r} are the published tasks, which need {_PLAYERS[published]}; "
            'House cannot run them. Use data="procedural".'
        )
    defaults = EmbodiedOptions()._asdict()
    options = EmbodiedOptions(
        **{name: settings.pop(name, value) for name, value in defaults.items()}
    )
    reward = settings.pop("reward", "default")
    subset, split = settings.pop("subset", "all"), settings.pop("split", "train")
    render_mode = settings.pop("render_mode", None)
    on_abort = settings.pop("on_abort", "truncate")
    chosen = choose_preset(env_id, make_house, PRESETS, preset, settings)
    runner = make_runner(chosen, options)
    source = _source(made.__name__, data, chosen, (dialect, subset, split), runner.name)
    return _finish(made, source, chosen, options, runner, reward, render_mode, on_abort)


def _check_names(made: type[HouseEnv], settings: dict[str, Any]) -> str:
    """Check the names of the further arguments of EB-ALFRED or EB-Habitat, and return the id."""
    env_id, maker = (
        ("visenv/EBAlfred-v0", make_eb_alfred)
        if issubclass(made, EBAlfred)
        else ("visenv/EBHabitat-v0", make_eb_habitat)
    )
    fields = get_type_hints(EmbodiedPreset)
    known = dict.fromkeys([*options_of(maker), *options_of(make_house), *fields])
    del known["dialect"]  # it is that of the benchmark
    for name in settings:
        check_choice(f"option of {env_id}", name, known)
    return env_id


def _source(
    name: str,
    data: str | Source,
    preset: EmbodiedPreset,
    kind: tuple[str, str, Split],
    simulator: str,
) -> Source:
    """Return the samples of `data`, which is a source or the name of one."""
    if not isinstance(data, str):
        return data
    if data != "procedural":
        raise ConfigurationError(f'data of {name} is "procedural" or a Source, got {data!r}.')
    dialect, subset, split = kind
    check_choice("dialect", dialect, [*DIALECTS])
    check_choice("subset", subset, ("all", *SUBSETS))
    check_choice("split", split, ("train", "eval"))
    if DIALECTS[dialect].rooms and (preset.rooms is not None or preset.furniture != "rooms"):
        raise ConfigurationError(
            f"{name} with EmbodiedBench's skills uses houses with fixed receptacles: rooms and "
            "furniture cannot be changed."
        )
    return HouseTasks(preset.task_options(dialect, subset, split), simulator)


def _finish(
    made: type[HouseEnv],
    source: Source,
    preset: EmbodiedPreset,
    options: EmbodiedOptions,
    runner: EpisodeRunner,
    reward: str,
    render_mode: str | None,
    on_abort: Literal["truncate", "raise"],
) -> gym.Env[Observation, str]:
    """Check the options, and create the environment with its reward."""
    check_choice("reward", reward, (*WEIGHTS, "outcome"))
    check_choice("compat mode", options.compat or "embodiedbench", ("embodiedbench",))
    check_count("n_shots", options.n_shots, least=0)
    check_count("past_images", options.past_images, least=0)
    if options.n_shots > 10:
        raise ConfigurationError(f"n_shots must be at most 10, got {options.n_shots}.")
    if options.n_shots and preset.kinds < 2 and not options.examples:
        raise ConfigurationError(
            "n_shots: the planner writes examples about objects of other types than that of the "
            "task, but kinds=1 gives the house one type. Set kinds to 2 or more, or give examples."
        )
    if not _SMALLEST <= preset.side <= _LARGEST:
        raise ConfigurationError(
            f"side must be from {_SMALLEST} to {_LARGEST} pixels, got {preset.side}."
        )
    if preset.rooms is not None and preset.rooms > 6:
        raise ConfigurationError(f"rooms must be at most 6, got {preset.rooms}.")
    env = made(
        source=source,
        preset=preset,
        options=options,
        runner=runner,
        render_mode=render_mode,
        on_abort=on_abort,
    )
    return env if reward == "outcome" else RewardWrapper(env, reward_terms(reward))
