"""Collects the facts of a card from an environment, and from episodes that are played."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym

from visenv.env import VisEnv
from visenv.errors import ConfigurationError
from visenv.evaluation.held_out import places
from visenv.evaluation.summary import SummaryRow, summarize
from visenv.makers import env_id, env_maker, make_policy
from visenv.registration import ENVIRONMENTS, load
from visenv.rewards import RewardTerm, RewardWrapper
from visenv.rollout import Collector, MakeEnv
from visenv.types import Episode, Sampling

Player = tuple[str, Sequence[str]]
"""The name and the options of a policy."""

PLAYERS: Mapping[str, Player] = {
    "oracle": ("oracle", ()),
    "random": ("random", ()),
    "blind": ("oracle", ("expert_rate=0", "guess=true")),
}
"""The players in the table of scores of every environment: the name and options of each policy.

The table also has a row for each teacher of the environment (`VisEnv.teachers`), at strength 1.

``blind`` writes well-formed turns, but looks at no image. In most tasks it calls no tool and gives
a random one of the possible answers (`VisEnv.direct_turn`, `VisEnv.random_answer`);
`VisEnv.blind_player` describes it.
"""

_CONCURRENCY = 8


class TermFact(NamedTuple):
    """Describes a reward term of the environment with its default options.

    Attributes:
        weight: The weight of the term in the sum.
        summary: The description of the term (`RewardTerm.summary`).
    """

    name: str
    weight: float
    summary: str


@dataclass(frozen=True)
class EnvCard:
    """Holds all data that the card of an environment shows.

    Attributes:
        env_id: The id with its namespace, for example ``"visenv/ZoomVQA-v0"``.
        summary: The environment in one line.
        description: The docstring of the environment class, which is Markdown.
        facts: Spaces, limits, tools, metrics and controls, by heading.
        presets: The fields of each preset by the name of the preset.
        terms: The reward terms; empty if the reward is the score of the task.
        top: The largest possible reward, or None if the reward has no terms.
        maker: The function or class that `gym.make` calls.
        episode: An episode of the oracle, or None if none was played.
        problem: The reason why no episode could be played, or ``""``.
        scores: A row of means for each player of `PLAYERS` and each teacher; empty if none played.
        teachers: The description of each teacher (`Teacher.summary`) by its name.
        blind_player: A sentence that describes the player ``blind`` (`VisEnv.blind_player`).
        metrics: The metrics that the table of scores shows in addition to the reward.
    """

    env_id: str
    summary: str
    description: str
    facts: Mapping[str, str]
    presets: Mapping[str, Mapping[str, Any]]
    terms: Sequence[TermFact]
    top: float | None
    maker: Callable[..., Any]
    episode: Episode | None
    problem: str
    scores: Mapping[str, SummaryRow]
    teachers: Mapping[str, str]
    blind_player: str
    metrics: Sequence[str]


def make_card(name: str, episodes: int = 16, data: str | None = None) -> EnvCard:
    """Make the card of an environment with its default options.

    Args:
        name: The environment; see `visenv.registration.env_spec`.
        episodes: Number of held-out episodes of each player. The first episode of the oracle is
            shown. 0 plays no episodes.
        data: The data set of the episodes; None plays that of the environment.

    Raises:
        ConfigurationError: If there is no such environment, or it cannot be made.
    """
    full, make = env_id(name), env_maker(name, data=data)
    with closing(make()) as env:
        base, reward = env.unwrapped, _reward_wrapper(env)
        if not isinstance(base, VisEnv):  # env_maker has checked it
            raise TypeError(f"{full} does not extend VisEnv.")
        facts = _facts(base)
    problem = ""
    shown: Episode | None = None
    scores: dict[str, SummaryRow] = {}
    try:
        players = {**PLAYERS, **_teachers(base)}
        shown, scores = _play(make, players, episodes, seed_of(full))
    except ConfigurationError as error:  # a simulator that is not installed
        problem = str(error)
    return EnvCard(
        env_id=full,
        summary=ENVIRONMENTS[full].summary if full in ENVIRONMENTS else "",
        description=inspect.cleandoc(type(base).__doc__ or ""),
        facts=facts,
        presets={key: _fields(preset) for key, preset in base.presets.items()},
        terms=[] if reward is None else [_term(each) for each in reward.terms],
        top=None if reward is None else reward.top,
        maker=load("environment", name),
        episode=shown,
        problem=problem,
        scores=scores,
        teachers={name: teacher.summary for name, teacher in base.teachers.items()},
        blind_player=base.blind_player,
        metrics=base.headline_metrics,
    )


def _teachers(env: VisEnv) -> dict[str, Player]:
    return {f"teacher {name}": ("teacher", (f"teacher={name}",)) for name in env.teachers}


def seed_of(env_id: str) -> int:
    """Return the seed of the held-out samples of a card.

    It differs between environments, so that the pictures of two with the same world differ.
    """
    return zlib.crc32(env_id.encode())


def _play(
    make: MakeEnv, players: Mapping[str, Player], episodes: int, seed: int
) -> tuple[Episode | None, dict[str, SummaryRow]]:
    """Return the first episode of the first player, and the means of each, on held-out episodes."""
    with closing(make()) as env:
        specs = places(env, episodes, seed=seed)
    shown: Episode | None = None
    scores: dict[str, SummaryRow] = {}
    for player, (policy, options) in players.items() if specs else ():
        collector = Collector(make, make_policy(policy, options), Sampling(), _CONCURRENCY)
        with closing(collector):
            played = collector.episodes(specs)
        shown = shown or played[0]
        scores[player] = summarize(played).rows[0]
    return shown, scores


def _reward_wrapper(env: gym.Env[Any, Any]) -> RewardWrapper | None:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, RewardWrapper):
            return env
        env = env.env
    return None


def _term(term: RewardTerm) -> TermFact:
    return TermFact(term.name, term.weight, term.summary)


def _facts(env: VisEnv) -> dict[str, str]:
    limits = {key: value for key, value in env.limits._asdict().items() if value is not None}
    return {
        "Action space": f"`{env.action_space}`",
        "Observation space": f"`{env.observation_space}`",
        "Limits": ", ".join(f"{key} {value:,}" for key, value in limits.items()),
        "Tools": ", ".join(f"`{tool}`" for tool in env.tools) or "none",
        "Headline metrics": ", ".join(f"`{each}`" for each in env.headline_metrics),
        "Controls of the task": ", ".join(f"`{each}`" for each in env.controls) or "none",
    }


def _fields(preset: object) -> dict[str, Any]:
    names = getattr(preset, "__dataclass_fields__", ())
    return {name: getattr(preset, name) for name in names}
