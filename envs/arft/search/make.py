"""Creates ArftSearch with its samples, a user's own rows, its engine and its reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, get_args

import gymnasium as gym

from visenv.data.open import open_data
from visenv.data.row import Row, RowSchema, question_of
from visenv.data.source import Source
from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.presets import check_choice
from visenv.rewards import RewardWrapper
from visenv.search import Searcher, open_searcher
from visenv.types import Sample

from ..presets import SEARCH_PRESETS, ArftSearchSettings, choose
from ..rewards.qa import Compat
from ..rewards.steps import StepRewardWrapper
from .compat import PublishedSearch, published_terms
from .env import ArftSearch
from .ground_truth import SearchTruth
from .rewards import StepRule, search_terms
from .similarity import open_similarity
from .world import EntitiesWorld


def make_search(
    *,
    data: str | Source = "procedural",
    search: str | Searcher = "world",
    similarity: str | None = None,
    hops: Sequence[int] | None = None,
    worlds: Sequence[int] | None = None,
    step_rule: StepRule | None = None,
    **settings: Unpack[ArftSearchSettings],
) -> gym.Env[Observation, str]:
    """Create ``visenv/ArftSearch-v0``.

    Args:
        data: ``"procedural"`` (fictional worlds of linked entities), a data set such as
            ``"mat_search:<folder>"`` or ``"hotpotqa:<folder>"``, your own rows
            (``"rows:my.jsonl"``), or a `Source`.
        search: ``"world"``, the articles of the procedural world of a sample; the name of an
            engine (`visenv.search.open_searcher`), such as ``"words:<index>"`` or ``"serper"``; or
            a `Searcher`. Data sets need an engine or a `Searcher`.
        similarity: The comparison of queries with gold queries for the reward: ``"words"``, the
            default, which needs no model; ``"meaning"``, with a sentence encoder; or
            ``"published"``, the paper's encoder without a check of numbers and names, and the
            default with ``compat="arft"``. See `visenv.envs.arft.search.similarity`.
        hops: The numbers of searches that the questions need, for example ``[1]``; by default
            all numbers of the world. Only for procedural questions.
        worlds: The range of seeds of the procedural worlds, as (first, last + 1). Worlds with
            different seeds share no fact, so that held-out worlds contain only unseen facts.
        step_rule: When the reward pays a search: ``"answered"`` (the default for procedural
            questions) pays it with the answer, so that a guess gains nothing by a search;
            ``"each"`` (the default for data sets) pays it at once. ``compat="arft"`` pays at once.
        **settings: The arguments that `ArftSearchSettings` and `ArftSettings` list.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set or the index cannot be read.
    """
    preset, reward, compat, options = choose(
        "visenv/ArftSearch-v0", make_search, SEARCH_PRESETS, settings
    )
    check_choice("step rule", step_rule or "each", get_args(StepRule))
    if step_rule == "answered" and (compat or data != "procedural"):
        raise ConfigurationError(
            'step_rule="answered" needs data="procedural" without compat, got '
            f'data={data!r:.80} and compat={compat!r}. Use step_rule="each".'
        )
    if step_rule is None:
        step_rule = "answered" if data == "procedural" and not compat else "each"
    made = PublishedSearch if compat else ArftSearch
    searcher = _searcher(search, data)
    source = search_source(data, hops, preset.world, worlds)
    env = made(source=source, preset=preset, searcher=searcher, **options)
    return env if reward == "outcome" else rewarded(env, similarity, reward, compat, step_rule)


def search_source(
    data: str | Source,
    hops: Sequence[int] | None,
    world: str,
    worlds: Sequence[int] | None = None,
) -> Source:
    """Return the samples of `data`, which is a source or the name of one.

    Raises:
        ConfigurationError: If `hops` or `worlds` is given for samples that are not procedural.
    """
    if data == "procedural":
        chosen = {} if worlds is None else {"worlds": worlds}
        return EntitiesWorld(world, hops=hops, **chosen)
    if hops is not None or worlds is not None:
        raise ConfigurationError(
            "hops and worlds are options of procedural questions: omit them for a data set, "
            f"got hops={hops!r}, worlds={worlds!r} and data={data!r:.80}."
        )
    return open_data(data, SEARCHED) if isinstance(data, str) else data


def rewarded(
    env: ArftSearch,
    similarity: str | None,
    reward: str,
    compat: Compat,
    step_rule: StepRule = "each",
) -> RewardWrapper:
    """Wrap the environment with the reward ``"f1"`` or ``"em"``."""
    if compat:
        terms = published_terms(open_similarity(similarity or "published"), reward)
        return StepRewardWrapper(env, terms, 2.0 * env.preset.turns)
    terms = search_terms(env.tags, open_similarity(similarity or "words"), reward, step_rule)
    return StepRewardWrapper(env, terms)


def _searcher(search: str | Searcher, data: str | Source) -> Searcher | None:
    """Return the engine, or None to search the world of each sample."""
    if not isinstance(search, str):
        return search
    if search != "world":
        return open_searcher(search)
    if isinstance(data, str) and data != "procedural":
        raise ConfigurationError(
            f"The data set {data.partition(':')[0]} has no world to search: pass an engine, "
            "for example search='words:<index>'."
        )
    return None


def search_sample(row: Row) -> Sample:
    """Return the sample of a question that needs searches; the queries are not known."""
    question, options, answers = question_of(row)
    kind = row.optional_text("kind")
    return Sample(row.id, question, (), answers, kind, SearchTruth(options=options))


SEARCHED = RowSchema(
    "questions to search for",
    ("question", "answer"),
    ("image", "options", "kind"),
    SearchTruth,
    search_sample,
)
"""Rows of a question and an answer, with or without images."""
