"""Embodied planning: House, EB-ALFRED and EB-Habitat."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import gymnasium as gym

from visenv.data.source import Source
from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.presets import check_choice, check_count, choose_preset
from visenv.rewards import RewardWrapper

from .dialects import DIALECTS
from .env import EBAlfred, EBHabitat, House
from .options import Compat, Options
from .presets import PRESETS, Preset
from .rewards import WEIGHTS, reward_terms
from .simulation import HouseWorld, World
from .simulators.habitat.options import make_habitat_world
from .simulators.thor.players import find_player, make_world
from .source import HouseTasks
from .world.items import Split
from .world.tasks import SUBSETS

__all__ = ["PRESETS", "EBAlfred", "EBHabitat", "House", "Preset", "make_eb_alfred",
           "make_eb_habitat", "make_house"]  # fmt: skip

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
    """Make ``visenv/House-v0``.

    Args:
        data: ``"procedural"``, or a `Source` of samples with a `HouseTruth`.
        dialect: ``"alfred"`` or ``"habitat"``: the action strings, rules and feedback of EB-ALFRED
            or of EB-Habitat.
        subset: ``"base"``, ``"common_sense"``, ``"complex_instruction"``, ``"spatial"``,
            ``"visual_appearance"``, ``"long_horizon"``, or ``"all"`` for equal shares.
        split: ``"train"`` or ``"eval"``, which share no house, appearance or phrase.
        preset: ``"house"``, ``"embodiedbench"`` (500 px) or ``"tiny"``.
        reward: ``"default"``, ``"habitat"`` or ``"outcome"``.
        n_shots: See `Options`, like the arguments up to `compat`.
        examples: See `Options`.
        feedback: See `Options`.
        chat_history: See `Options`.
        past_images: See `Options`.
        language_only: See `Options`.
        boxes: See `Options`.
        blind: See `Options`.
        compat: ``"embodiedbench"`` or None, see `Options`.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
        **overrides: Fields of `Preset` to change, for example ``side=300``.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
    """
    options = Options(n_shots, examples, feedback, chat_history, past_images, language_only, boxes,
                      blind, compat)  # fmt: skip
    chosen = choose_preset("visenv/House-v0", make_house, PRESETS, preset, overrides)
    check_choice("dialect", dialect, ("alfred", "habitat"))
    world = HouseWorld()
    source = _source("House", data, chosen, (dialect, subset, split), world.name)
    return _finish(House, source, chosen, options, world, reward, render_mode, on_abort)


def make_eb_alfred(
    *,
    data: str | Source = "procedural",
    simulator: Literal["house", "thor"] = "house",
    player: str = "",
    interpreter: str = "",
    host_limits: dict[str, Any] | None = None,
    preset: str = "embodiedbench",
    **settings: Any,
) -> gym.Env[Observation, str]:
    """Make ``visenv/EBAlfred-v0``.

    Args:
        data: See `make_house`. ``"eb_alfred:<folder>"`` names the published tasks, which need
            ``simulator="thor"`` and a Unity player.
        simulator: ``"house"``, or ``"thor"`` for ai2thor's `Controller` in a child process.
        player: What ai2thor controls: ``"house"``, our program that serves House, or the path of a
            Unity player; by default the path in ``VISENV_THOR_PLAYER``. Only with
            ``simulator="thor"``.
        interpreter: The Python with ai2thor; by default that of ``VISENV_SIMULATORS`` or ``make
            simulators``. Only with ``simulator="thor"``.
        host_limits: Fields of `visenv.simulators.settings.HostLimits` to change. Only with
            ``simulator="thor"``.
        preset: See `make_house`.
        **settings: Further arguments of `make_house`, apart from `dialect`.

    Raises:
        ConfigurationError: If an option has a value it cannot have, or the published tasks are
            named without their player.
    """
    check_choice("simulator", simulator, ("house", "thor"))
    if simulator == "house":
        if player or interpreter or host_limits:
            raise ConfigurationError(
                'player, interpreter and host_limits belong to simulator="thor".'
            )
        return _make_eb(EBAlfred, "alfred", data, _house, preset, settings)
    chosen = find_player(player)

    def world(preset: Preset, options: Options) -> World:
        return make_world(preset, options, chosen, interpreter, host_limits or {})

    return _make_eb(EBAlfred, "alfred", data, world, preset, settings)


def make_eb_habitat(
    *,
    data: str | Source = "procedural",
    simulator: Literal["house", "habitat"] = "house",
    skills: Literal["house", "embodiedbench"] | None = None,
    interpreter: str = "",
    host_limits: dict[str, Any] | None = None,
    preset: str = "embodiedbench",
    **settings: Any,
) -> gym.Env[Observation, str]:
    """Make ``visenv/EBHabitat-v0``.

    Args:
        data: See `make_house`. ``"eb_habitat:<folder>"`` names the published tasks, which need
            ``simulator="habitat"``, habitat-sim and ReplicaCAD.
        simulator: ``"house"``, or ``"habitat"`` for habitat-lab in a child process.
        skills: The numbered list: ``"house"``, all receptacles and types of objects of the house,
            or ``"embodiedbench"``, the 70 skills of EB-Habitat in a house with its receptacles. By
            default ``"house"`` with ``simulator="house"``, else ``"embodiedbench"``.
        interpreter: The Python with habitat-lab; by default that of ``VISENV_SIMULATORS`` or ``make
            simulators``. Only with ``simulator="habitat"``.
        host_limits: Fields of `visenv.simulators.settings.HostLimits` to change. Only with
            ``simulator="habitat"``.
        preset: See `make_house`.
        **settings: Further arguments of `make_house`, apart from `dialect`.

    Raises:
        ConfigurationError: If an option has a value it cannot have, or the published tasks are
            named without their simulator.
    """
    check_choice("simulator", simulator, ("house", "habitat"))
    check_choice("skills", skills or "house", ("house", "embodiedbench"))
    listed = skills or ("house" if simulator == "house" else "embodiedbench")
    dialect = "skills" if listed == "embodiedbench" else "habitat"
    if simulator == "house":
        if interpreter or host_limits:
            raise ConfigurationError('interpreter and host_limits belong to simulator="habitat".')
        return _make_eb(EBHabitat, dialect, data, _house, preset, settings)
    world = partial(make_habitat_world, interpreter, host_limits or {})
    return _make_eb(EBHabitat, dialect, data, world, preset, settings)


_PLAYERS = {
    "eb_alfred": "the Unity player of AI2-THOR 2.1.0 with ALFRED's scenes",
    "eb_habitat": "habitat-sim with the scenes of ReplicaCAD",
}


def _house(preset: Preset, options: Options) -> World:
    """Return House in this process."""
    return HouseWorld()


def _make_eb(
    made: type[House],
    dialect: str,
    data: str | Source,
    make_world: Callable[[Preset, Options], World],
    preset: str,
    settings: dict[str, Any],
) -> gym.Env[Observation, str]:
    if "dialect" in settings:
        raise ConfigurationError(f"{made.__name__} has the dialect {dialect!r}; use House-v0.")
    published = "eb_alfred" if made is EBAlfred else "eb_habitat"
    if isinstance(data, str) and data.startswith(f"{published}:"):
        raise ConfigurationError(
            f"data={data!r} are the published tasks, which need {_PLAYERS[published]}; "
            'House cannot play them. Use data="procedural".'
        )
    defaults = Options()._asdict()
    options = Options(**{name: settings.pop(name, value) for name, value in defaults.items()})
    reward = settings.pop("reward", "default")
    subset, split = settings.pop("subset", "all"), settings.pop("split", "train")
    render_mode = settings.pop("render_mode", None)
    on_abort = settings.pop("on_abort", "truncate")
    chosen = choose_preset(f"visenv/{made.__name__}-v0", make_house, PRESETS, preset, settings)
    world = make_world(chosen, options)
    source = _source(made.__name__, data, chosen, (dialect, subset, split), world.name)
    return _finish(made, source, chosen, options, world, reward, render_mode, on_abort)


def _source(
    name: str, data: str | Source, preset: Preset, kind: tuple[str, str, Split], simulator: str
) -> Source:
    """Return the samples."""
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
            f"{name} with EmbodiedBench's skills has houses with their receptacles: rooms and "
            "furniture cannot be changed."
        )
    return HouseTasks(preset.task_options(dialect, subset, split), simulator)


def _finish(
    made: type[House],
    source: Source,
    preset: Preset,
    options: Options,
    world: World,
    reward: str,
    render_mode: str | None,
    on_abort: Literal["truncate", "raise"],
) -> gym.Env[Observation, str]:
    """Check the options, and return the environment with its reward."""
    check_choice("reward", reward, (*WEIGHTS, "outcome"))
    check_choice("compat mode", options.compat or "embodiedbench", ("embodiedbench",))
    check_count("n_shots", options.n_shots, least=0)
    check_count("past_images", options.past_images, least=0)
    if options.n_shots > 10:
        raise ConfigurationError(f"n_shots must be at most 10, got {options.n_shots}.")
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
        world=world,
        render_mode=render_mode,
        on_abort=on_abort,
    )
    return env if reward == "outcome" else RewardWrapper(env, reward_terms(reward))
