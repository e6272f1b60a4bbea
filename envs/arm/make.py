"""Creates the ARM-Thinker environments with their samples, tools and rewards."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Unpack

import gymnasium as gym

from visenv.data.open import open_data
from visenv.data.row import QUESTIONS, RowSchema
from visenv.data.source import Source, is_indexed
from visenv.documents import PageRanker
from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.rewards import RewardTerm, RewardWrapper
from visenv.tools import Tool
from visenv.worlds.scenes import PRESETS as SCENES

from .answer_judge import ArmAnswerJudge
from .answer_rewards import AnswerRewards
from .env.base import ArmEnv, JudgingEnv
from .env.vqa import AnswerEnv
from .presets import UNREADABLE, ArmConfig, ArmSettings, choose
from .rewards import TOP, EpisodeReading, terms
from .rows import (
    DOCUMENT_QUESTIONS,
    INSTRUCTIONS,
    JUDGED_DOCUMENTS,
    JUDGED_IMAGES,
    PREFERENCES,
)
from .tools.crop import CropZoom, Dialect

_TRACK = re.compile(r"[?&]track=([^&]*)")

__all__ = [
    "ArmSettings",
    "make_doc",
    "make_doc_vqa",
    "make_if",
    "make_preference",
    "make_vqa",
    "make_zoom",
]


def make_zoom(
    *,
    data: str | Source = "procedural",
    candidates: int = 2,
    dialect: Dialect = "qwen2.5",
    **settings: Unpack[ArmSettings],
) -> gym.Env[Observation, str]:
    """Create ``visenv/ArmZoom-v0``.

    Args:
        data: ``"procedural"`` (unlimited scenes with exact ground truth), a data set in a local
            folder such as ``"armbench:<folder>"``, or a `Source`.
        candidates: Number of responses in a procedural sample: 1, 2 or 4.
        dialect: The arguments and sizes of the zoom tool: ``"qwen2.5"`` or ``"qwen3"``
            (`CropZoom`).
        **settings: The arguments that `ArmSettings` lists.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    from .env.zoom import ArmZoom
    from .world.judged_scenes import JudgedScenes

    chosen = choose("visenv/ArmZoom-v0", make_zoom, settings)
    procedural = data == "procedural"
    chosen = _seen_small(chosen) if procedural else chosen
    source = (
        JudgedScenes(candidates, chosen.preset.world)
        if procedural
        else _opened(data, JUDGED_IMAGES, "fine_grained_perception")
    )
    zoom = CropZoom(dialect=dialect, max_pixels=chosen.preset.image_pixels, compat=chosen.compat)
    return _finish(ArmZoom, source, [zoom], chosen)


def make_doc(
    *,
    data: str | Source = "procedural",
    candidates: int = 2,
    documents: Sequence[int] | None = None,
    ranker: str | PageRanker = "bm25",
    zoom: bool = False,
    **settings: Unpack[ArmSettings],
) -> gym.Env[Observation, str]:
    """Create ``visenv/ArmDoc-v0``.

    Args:
        data: ``"procedural"`` (fictional reports with exact ground truth), real documents such
            as ``"pdf:<folder>"`` or ``"armbench:<folder>"``, or a `Source` with a ``library``.
        candidates: Number of responses in a procedural sample: 1, 2 or 4.
        documents: The range of seeds of the procedural documents, as (first, last + 1); by default
            0 to 9,999, and 10,000 to 19,999 in evaluations, so that held-out documents are unseen.
        ranker: The ranking of pages for a query: ``"bm25"`` over their text, ``"text:<index>"`` or
            ``"clip:<index>"`` by meaning (``visenv index`` builds the index), or a `PageRanker`.
        zoom: Whether shown pages can be enlarged, with the tool of ArmZoom.
        **settings: The arguments that `ArmSettings` lists.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    from visenv.documents.rankers import open_ranker

    from .env.doc import ArmDoc, library_of, page_tools
    from .world.reports import ReportsWorld

    chosen = choose("visenv/ArmDoc-v0", make_doc, settings)
    ranked = open_ranker(ranker) if isinstance(ranker, str) else ranker
    procedural = ReportsWorld(chosen.preset.world, documents=documents, candidates=(candidates,))
    if data == "procedural":
        source: Source = procedural
    else:
        source = _opened(data, JUDGED_DOCUMENTS, "multimodal_long_document")
        chosen = _with_unreadable_overview(chosen, settings)
    tools = page_tools(library_of(source), ranked, chosen.preset, zoom, chosen.compat)
    return _finish(ArmDoc, source, tools, chosen)


def make_if(
    *,
    data: str | Source = "procedural",
    checks: Sequence[str] | None = None,
    dialect: Literal["strict", "arm", "mmif"] = "strict",
    **settings: Unpack[ArmSettings],
) -> gym.Env[Observation, str]:
    """Create ``visenv/ArmIF-v0``.

    Args:
        data: ``"procedural"`` (texts that satisfy or violate a constraint by construction), a
            data set in a local folder such as ``"armbench:<folder>"``, or a `Source`.
        checks: Names of the checks that decide procedural samples; by default all 19. The policy
            has all tools. Other data have constraints of their own, and allow no `checks`.
        dialect: How the text checks parse a text, see `visenv.checks`; it also determines the
            verdicts of procedural texts.
        **settings: The arguments that `ArmSettings` lists.

    Raises:
        ConfigurationError: If the value of an option is invalid, or other data have `checks`.
        DataError: If the data set cannot be read.
        UnknownNameError: If there is no such check.
    """
    from .env.instruction import ArmIF
    from .tools.text_checks import text_check_tools
    from .world.constraints import ConstraintWorld

    chosen = choose("visenv/ArmIF-v0", make_if, settings)
    if checks is not None and data != "procedural":
        raise ConfigurationError("checks selects procedural samples, and data is not procedural.")
    source = (
        ConstraintWorld(checks, dialect)
        if data == "procedural"
        else _opened(data, INSTRUCTIONS, "multimodal_instruction_following")
    )
    return _finish(ArmIF, source, text_check_tools(dialect), chosen)


def make_preference(
    *,
    data: str | Source = "procedural",
    candidates: int = 2,
    dialect: Dialect = "qwen2.5",
    **settings: Unpack[ArmSettings],
) -> gym.Env[Observation, str]:
    """Create ``visenv/ArmPreference-v0``.

    Args:
        data: ``"procedural"`` (responses of graded quality), ``"vl_rewardbench:<folder>"``,
            ``"rewardbench2:<folder>"``, ``"llava_critic:<folder>"``, or a `Source`.
        candidates: Number of responses in a procedural sample: 1, 2 or 4.
        dialect: The arguments and sizes of the zoom tool: ``"qwen2.5"`` or ``"qwen3"``
            (`CropZoom`).
        **settings: The arguments that `ArmSettings` lists.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    from .env.preference import ArmPreference
    from .world.graded_pairs import GradedPairs

    chosen = choose(
        "visenv/ArmPreference-v0", make_preference, {"reward": "accuracy_format", **settings}
    )
    procedural = data == "procedural"
    chosen = _seen_small(chosen) if procedural else chosen
    source = (
        GradedPairs(candidates, preset=chosen.preset.world)
        if procedural
        else _opened(data, PREFERENCES)
    )
    zoom = CropZoom(dialect=dialect, max_pixels=chosen.preset.image_pixels, compat=chosen.compat)
    return _finish(ArmPreference, source, [zoom], chosen)


def make_vqa(
    *,
    data: str | Source = "procedural",
    dialect: Dialect = "qwen2.5",
    judge: str = "rules",
    **settings: Unpack[ArmSettings],
) -> gym.Env[Observation, str]:
    """Create ``visenv/ArmVQA-v0``.

    Args:
        data: ``"procedural"`` (unlimited scenes with exact ground truth), a data set of questions
            about images such as ``"vstar:<folder>"``, ``"hrbench:<folder>?size=8k"``,
            ``"deepeyes:<folder>"`` or ``"mme_realworld:<folder>"``, or a `Source`.
        dialect: The arguments and sizes of the zoom tool: ``"qwen2.5"`` or ``"qwen3"``
            (`CropZoom`).
        judge: Scores answers: ``"rules"`` (only the data set's own rule), or a scorer such as
            ``"openai:gpt-4o-mini"``, for answers that the rule does not accept.
        **settings: The arguments that `ArmSettings` lists.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    from visenv.worlds.scenes.asked import AskedScenes

    from .env.vqa import ArmVQA

    chosen = choose("visenv/ArmVQA-v0", make_vqa, settings)
    procedural = data == "procedural"
    chosen = _seen_small(chosen) if procedural else chosen
    source = AskedScenes(chosen.preset.world) if procedural else _opened(data, QUESTIONS)
    zoom = CropZoom(dialect=dialect, max_pixels=chosen.preset.image_pixels, compat=chosen.compat)
    return _finish_answer(ArmVQA, source, [zoom], judge, chosen)


def make_doc_vqa(
    *,
    data: str | Source = "procedural",
    documents: Sequence[int] | None = None,
    ranker: str | PageRanker = "bm25",
    zoom: bool = False,
    judge: str = "rules",
    **settings: Unpack[ArmSettings],
) -> gym.Env[Observation, str]:
    """Create ``visenv/ArmDocVQA-v0``.

    Args:
        data: ``"procedural"`` (fictional reports with exact ground truth),
            ``"mp_docvqa:<folder>"``, ``"mmlongbench:<folder>"``, or a `Source` with a
            ``library``.
        documents: The range of seeds of the procedural documents, see `make_doc`.
        ranker: The ranking of pages for a query, see `make_doc`.
        zoom: Whether shown pages can be enlarged, with the tool of ArmVQA.
        judge: Scores answers: ``"rules"`` (only the data set's own rule), or a scorer such as
            ``"openai:gpt-4o-mini"``, for answers that the rule does not accept.
        **settings: The arguments that `ArmSettings` lists.

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    from visenv.documents.rankers import open_ranker

    from .env.doc import library_of, page_tools
    from .env.doc_vqa import ArmDocVQA
    from .world.reports import ReportQuestions

    chosen = choose("visenv/ArmDocVQA-v0", make_doc_vqa, settings)
    ranked = open_ranker(ranker) if isinstance(ranker, str) else ranker
    procedural = ReportQuestions(chosen.preset.world, documents=documents)
    if data == "procedural":
        source: Source = procedural
    else:
        source = _opened(data, DOCUMENT_QUESTIONS)
        chosen = _with_unreadable_overview(chosen, settings)
    tools = page_tools(library_of(source), ranked, chosen.preset, zoom, chosen.compat)
    return _finish_answer(ArmDocVQA, source, tools, judge, chosen)


def _with_unreadable_overview(chosen: ArmConfig, settings: ArmSettings) -> ArmConfig:
    """Return the settings with overviews too small to read, unless the thumbnail size is given."""
    side = settings.get("thumbnail", min(UNREADABLE, chosen.preset.thumbnail))
    return chosen._replace(preset=replace(chosen.preset, thumbnail=side))


def _seen_small(chosen: ArmConfig) -> ArmConfig:
    """Limit the size of shown procedural scenes, so that details are too small to read.

    With ``compat="arm"`` this is not done: crops are cut from the image as shown, so that zooming
    could not reveal the details.
    """
    preset = chosen.preset
    if preset.view_side is not None or chosen.compat == "arm":
        return chosen
    return chosen._replace(preset=replace(preset, view_side=SCENES[preset.world].view_side))


def _opened(data: str | Source, schema: RowSchema, track: str = "all") -> Source:
    """Return the source `data`, or the one of that name; of ARMBench-VL only the track.

    A name with another track of ARMBench-VL raises `ConfigurationError`.
    """
    if not isinstance(data, str):
        return data
    if data.startswith("armbench:") and track != "all":
        named = _TRACK.search(data)
        if named is None:
            data += f"{'&' if '?' in data else '?'}track={track}"
        elif named[1] != track:
            raise ConfigurationError(
                f"This environment needs the track {track} of ARMBench-VL, got {named[1]!r}. All "
                "tracks and their average: visenv suite armbench --folder armbench=<folder>."
            )
    return open_data(data, schema)


def _finish(
    judge: type[JudgingEnv], source: Source, tools: Sequence[Tool[Any]], chosen: ArmConfig
) -> gym.Env[Observation, str]:
    """Return the judging environment with its reward."""
    env = judge(**_arguments(source, tools, chosen))
    return _rewarded(env, chosen, partial(terms, reading=_reading(chosen, source)))


def _finish_answer(
    task: type[AnswerEnv], source: Source, tools: Sequence[Tool[Any]], judge: str, chosen: ArmConfig
) -> gym.Env[Observation, str]:
    """Return the answering environment with its reward."""
    env = task(judge=ArmAnswerJudge.parse(judge), **_arguments(source, tools, chosen))
    return _rewarded(env, chosen, AnswerRewards(env.rule, _reading(chosen, source)).terms)


def _arguments(source: Source, tools: Sequence[Tool[Any]], chosen: ArmConfig) -> dict[str, Any]:
    """Return the arguments that all environments of the family take."""
    return {
        "source": source,
        "preset": chosen.preset,
        "tools": tools if chosen.agent else (),
        "compat": chosen.compat,
        **chosen.env,
    }


def _reading(chosen: ArmConfig, source: Source) -> EpisodeReading:
    """Return the rules by which the reward evaluates an episode.

    By default, calls must show evidence if the source knows all evidence.
    """
    call_rule = chosen.call_rule or ("belongs" if is_indexed(source) else "evidence")
    return EpisodeReading.of(chosen.compat, call_rule)


def _rewarded(
    env: ArmEnv, chosen: ArmConfig, terms_of: Callable[[str], list[RewardTerm]]
) -> gym.Env[Observation, str]:
    """Wrap the environment with the chosen reward."""
    if chosen.reward == "outcome":
        return env
    return RewardWrapper(env, terms_of(chosen.reward), TOP[chosen.reward])
