"""Checks the names of metrics in a recipe, before the run starts and after its first evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from difflib import get_close_matches

from visenv.background import run_here
from visenv.errors import UnknownNameError
from visenv.evaluation import places
from visenv.registration import load
from visenv.rollout import MakeEnv, play
from visenv.types import Episode

from ..trainer.evaluation import HeldOutScore
from . import parts
from .recipe import Recipe


def check_metrics(recipe: Recipe) -> None:
    """Compare the metrics of a recipe with those of its environments.

    If the recipe names metrics that are not headline metrics, the oracle plays an episode of each
    environment, which shows its other metrics.

    Raises:
        ConfigurationError: If an environment cannot be created.
        UnknownNameError: If an environment lacks a metric whose name looks like a misspelled one.
    """
    names = recipe.evaluation.metrics
    known = {"reward"}.union(*parts.headline_metrics(recipe).values())
    if known.issuperset(names):
        return
    for make_env in parts.evaluation_makers(recipe).values():
        known |= HeldOutScore.of(list(_oracle_episode(make_env))).metrics.keys()
    absent_metrics(names, known)


def absent_metrics(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the names that are not known.

    An episode need not have all metrics of its environment, so that a name may be right.

    Raises:
        UnknownNameError: If a name looks like a misspelled one; suggests the nearest.
    """
    absent = [name for name in names if name not in known]
    for name in absent:
        if get_close_matches(name, known, n=1, cutoff=0.8):
            raise UnknownNameError("metric of the environments", name, known)
    return absent


def _oracle_episode(make_env: MakeEnv) -> Iterator[Episode]:
    """Yield an episode of the oracle; none if a service failed, which the run itself reports."""
    with closing(make_env()) as env:
        (spec,) = places(env, 1)
        episode = run_here(play(env, load("policy", "oracle")(), spec))
    if episode.failure is None:
        yield episode
