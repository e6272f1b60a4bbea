"""The ARM-Thinker family: judges that use tools before they judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import gymnasium as gym

from visenv.data.open import open_data
from visenv.data.source import Source, is_indexed
from visenv.documents import PageRanker
from visenv.env import Observation
from visenv.rewards import RewardWrapper
from visenv.tools import Tool
from visenv.worlds.scenes import PRESETS as SCENES

from .env.judge import Judge
from .evidence import CallRule
from .presets import UNREADABLE, Chosen, Settings, choose
from .rewards import TOP, terms
from .tools.crop import CropZoom, Dialect

__all__ = ["Settings", "make_doc", "make_if", "make_preference", "make_zoom"]


def make_zoom(
    *,
    data: str | Source = "procedural",
    candidates: int = 2,
    dialect: Dialect = "qwen2.5",
    **settings: Unpack[Settings],
) -> gym.Env[Observation, str]:
    """Make ``visenv/ArmZoom-v0``.

    Args:
        data: ``"procedural"`` (unlimited scenes with exact truth), a data set in a local folder
            such as ``"armbench:<folder>"``, or a `Source`.
        candidates: Responses to a procedural sample: 1, 2 or 4.
        dialect: Arguments and sizes of the zoom tool, see `CropZoom`.
        **settings: See `Settings`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
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
        else _opened(data, "fine_grained_perception")
    )
    zoom = CropZoom(dialect=dialect, max_pixels=chosen.preset.image_pixels, compat=chosen.compat)
    return _finish(ArmZoom, source, [zoom], chosen)


def make_doc(
    *,
    data: str | Source = "procedural",
    candidates: int = 2,
    documents: tuple[int, int] = (0, 10_000),
    ranker: str | PageRanker = "bm25",
    **settings: Unpack[Settings],
) -> gym.Env[Observation, str]:
    """Make ``visenv/ArmDoc-v0``.

    Args:
        data: ``"procedural"`` (made-up reports with exact truth), real documents such as
            ``"pdf:<folder>"`` or ``"armbench:<folder>"``, or a `Source` with a
            ``library``.
        candidates: Responses to a procedural sample: 1, 2 or 4.
        documents: Which procedural documents: the first, and the one after the last. Other numbers
            are other documents, so that what is held out was never seen.
        ranker: What orders pages by a query: ``"bm25"`` over their text, ``"text:<index>"`` or
            ``"clip:<index>"`` by meaning (``visenv index`` makes the index), or a `PageRanker`.
        **settings: See `Settings`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
        DataError: If the data set cannot be read.
    """
    from visenv.documents.rankers import open_ranker

    from .env.doc import ArmDoc, library_of, page_tools
    from .world.reports import ReportsWorld

    chosen = choose("visenv/ArmDoc-v0", make_doc, settings)
    ranked = open_ranker(ranker) if isinstance(ranker, str) else ranker
    procedural = ReportsWorld(
        chosen.preset.world, documents=tuple(documents), candidates=(candidates,)
    )
    if data == "procedural":
        source: Source = procedural
    else:
        source = _opened(data, "multimodal_long_document")
        side = settings.get("thumbnail", min(UNREADABLE, chosen.preset.thumbnail))
        chosen = chosen._replace(preset=replace(chosen.preset, thumbnail=side))
    tools = page_tools(library_of(source), ranked, chosen.preset)
    return _finish(ArmDoc, source, tools, chosen)


def make_if(
    *,
    data: str | Source = "procedural",
    dialect: Literal["strict", "arm", "mmif"] = "strict",
    **settings: Unpack[Settings],
) -> gym.Env[Observation, str]:
    """Make ``visenv/ArmIF-v0``.

    Args:
        data: ``"procedural"`` (texts that keep or break a constraint by construction), a data set
            in a local folder such as ``"armbench:<folder>"``, or a `Source`.
        dialect: How the text checks read a text, see `visenv.checks`; the verdicts of procedural
            texts follow it.
        **settings: See `Settings`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
        DataError: If the data set cannot be read.
    """
    from .env.instruction import ArmIF
    from .tools.text_checks import text_check_tools
    from .world.constraints import ConstraintWorld

    chosen = choose("visenv/ArmIF-v0", make_if, settings)
    source = (
        ConstraintWorld(dialect=dialect)
        if data == "procedural"
        else _opened(data, "multimodal_instruction_following")
    )
    return _finish(ArmIF, source, text_check_tools(dialect), chosen)


def make_preference(
    *,
    data: str | Source = "procedural",
    candidates: int = 2,
    dialect: Dialect = "qwen2.5",
    **settings: Unpack[Settings],
) -> gym.Env[Observation, str]:
    """Make ``visenv/ArmPreference-v0``.

    Args:
        data: ``"procedural"`` (responses of graded quality), ``"vl_rewardbench:<folder>"``,
            ``"rewardbench2:<folder>"``, ``"llava_critic:<folder>"``, or a `Source`.
        candidates: Responses to a procedural sample: 1, 2 or 4.
        dialect: Arguments and sizes of the zoom tool, see `CropZoom`.
        **settings: See `Settings`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
        DataError: If the data set cannot be read.
    """
    from .env.preference import ArmPreference
    from .world.graded_pairs import GradedPairs

    chosen = choose(
        "visenv/ArmPreference-v0", make_preference, {"reward": "accuracy_format", **settings}
    )
    procedural = data == "procedural"
    chosen = _seen_small(chosen) if procedural else chosen
    source = GradedPairs(candidates, preset=chosen.preset.world) if procedural else _opened(data)
    zoom = CropZoom(dialect=dialect, max_pixels=chosen.preset.image_pixels, compat=chosen.compat)
    return _finish(ArmPreference, source, [zoom], chosen)


def _seen_small(chosen: Chosen) -> Chosen:
    """For procedural scenes: shown at the size at which their details cannot be read.

    Not with ``compat="arm"``, which cuts from the picture as shown: nothing could be found there.
    """
    preset = chosen.preset
    if preset.view_side is not None or chosen.compat == "arm":
        return chosen
    return chosen._replace(preset=replace(preset, view_side=SCENES[preset.world].view_side))


def _opened(data: str | Source, track: str = "all") -> Source:
    """The source that `data` is or names; of ARMBench-VL that track, unless it names another."""
    if not isinstance(data, str):
        return data
    if data.startswith("armbench:") and "track=" not in data:
        data += f"{'&' if '?' in data else '?'}track={track}"
    return open_data(data)


def _finish(
    judge: type[Judge], source: Source, tools: Sequence[Tool[Any]], chosen: Chosen
) -> gym.Env[Observation, str]:
    """The environment with its reward."""
    call_rule: CallRule = chosen.call_rule or ("belongs" if is_indexed(source) else "evidence")
    env = judge(
        source=source,
        preset=chosen.preset,
        tools=tools if chosen.agent else (),
        compat=chosen.compat,
        **chosen.env,
    )
    if chosen.reward == "outcome":
        return env
    return RewardWrapper(env, terms(chosen.reward, chosen.compat, call_rule), TOP[chosen.reward])
