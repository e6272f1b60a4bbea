"""Creates ZoomVQA with its samples and its reward."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import gymnasium as gym

from visenv.data.open import open_data
from visenv.data.row import ONE_IMAGE
from visenv.data.source import Source
from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.grammar import key_value, tool_call
from visenv.presets import check_choice, check_count, choose_preset
from visenv.rewards import RewardWrapper
from visenv.rewards.vqa import vqa_score
from visenv.types import Sample

from .env import ZoomVQA
from .presets import PRESETS, ZoomVQAPreset
from .rewards import AnswerScore, Compat, RewardWeights, Scan, ToolRule, paper_terms
from .tools import KeypointSource, ZoomTool
from .world import ZoomScenes

PAPER = RewardWeights()
SCANS: Mapping[ZoomTool, Scan] = MappingProxyType(
    {"keypoint": key_value.scan, "json_box": tool_call.scan}
)

__all__ = ["PRESETS", "ZoomVQA", "ZoomVQAPreset", "make"]


def make(
    *,
    data: str | Source = "procedural",
    preset: str | None = None,
    scenes: Mapping[str, Any] = MappingProxyType({}),
    reward: Literal["paper", "outcome"] = "paper",
    compat: Compat = None,
    tool_calls: int = 1,
    tool: ZoomTool = "keypoint",
    alpha: float = PAPER.alpha,
    beta: float = PAPER.beta,
    gamma: float = PAPER.gamma,
    lambda_: float = PAPER.lambda_,
    tool_rule: ToolRule | None = None,
    zoom: KeypointSource = "policy",
    render_mode: str | None = None,
    on_abort: Literal["truncate", "raise"] = "truncate",
    **overrides: Any,
) -> gym.Env[Observation, str]:
    """Create ``visenv/ZoomVQA-v0``.

    Args:
        data: ``"procedural"`` (unlimited scenes with exact ground truth), a data set in a local
            folder such as ``"textvqa:<folder>"``, ``"vstar:<folder>"``, ``"hrbench:<folder>"``,
            your own rows (``"rows:my.jsonl"``), or a `Source`.
        preset: ``"train"`` (images of at most 1024 px, crops from those), ``"eval"`` (native size),
            ``"scenes"`` (a 1024 px view, crops from the native scene) or ``"tiny"`` (a 96 px view);
            by default ``"scenes"`` for procedural data and ``"train"`` for a data set.
        scenes: Fields of the procedural scenes to change
            (`visenv.worlds.scenes.presets.ScenePreset`), for example ``{"frames": ["orange"]}``.
        reward: ``"paper"`` or ``"outcome"``.
        compat: ``"r1_vlm"`` reproduces the public code's quirks (docs/zoom_vqa.md lists them).
        tool_calls: Number of allowed zooms; the last turn must answer. The paper allows 1.
        tool: ``"keypoint"``, or ``"json_box"`` (a box in a JSON call: the paper's first tool).
        alpha: Weight of the answer in the reward ``"paper"``.
        beta: Weight of the format in the reward ``"paper"``.
        gamma: Weight of the tool in the reward ``"paper"``.
        lambda_: Share of the exact score in the answer's score, 0 to 1.
        tool_rule: The calls that the reward ``"paper"`` pays for: ``"evidence"`` (the default for
            procedural scenes) pays for a crop with the detail before a right answer, so that a
            guess gains nothing by a call; ``"published"`` (the default for data sets, and the only
            one with ``compat``) for any call.
        zoom: ``"random"`` zooms to a random keypoint instead of the policy's, as a control.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
        **overrides: Fields of `ZoomVQAPreset` to change, for example ``view_side=768``, or
            ``enlarge=False`` (the crop is shown at the size at which it is cut).

    Raises:
        ConfigurationError: If the value of an option is invalid.
        DataError: If the data set cannot be read.
    """
    name = preset or ("scenes" if data == "procedural" else "train")
    chosen = choose_preset("visenv/ZoomVQA-v0", make, PRESETS, name, overrides)
    check_choice("reward", reward, ("paper", "outcome"))
    check_choice("compat mode", compat or "r1_vlm", ("r1_vlm",))
    check_count("tool_calls", tool_calls, least=0)
    check_choice("tool", tool, get_args(ZoomTool))
    check_choice("tool rule", tool_rule or "published", get_args(ToolRule))
    if tool_rule == "evidence" and (compat or data != "procedural"):
        raise ConfigurationError(
            'tool_rule="evidence" needs data="procedural" without compat, got '
            f'data={data!r:.80} and compat={compat!r}. Use tool_rule="published".'
        )
    if tool_rule is None:
        tool_rule = "evidence" if data == "procedural" and not compat else "published"
    weights = RewardWeights(alpha, beta, gamma, lambda_)
    weights.check()
    source = _source(data, chosen, scenes)
    answer_score = _answer_score(source, compat)
    env = ZoomVQA(
        source=source,
        preset=chosen,
        answer_score=answer_score,
        tool_calls=tool_calls,
        keypoint_source=zoom,
        zoom_tool=tool,
        render_mode=render_mode,
        on_abort=on_abort,
    )
    if reward == "outcome":
        return env
    terms = paper_terms(answer_score, compat, weights, SCANS[tool], tool_rule)
    return RewardWrapper(env, terms)


def _source(data: str | Source, preset: ZoomVQAPreset, scenes: Mapping[str, Any]) -> Source:
    if data != "procedural":
        if scenes:
            raise ConfigurationError(
                "scenes changes the procedural scenes, got "
                f"scenes={dict(scenes)!r} with data={data!r:.80}: omit it."
            )
        return open_data(data, ONE_IMAGE) if isinstance(data, str) else data
    if preset.world is None:
        raise ConfigurationError(
            "This preset has no procedural world: it crops from the image as shown, or shows it at "
            'native size. Use preset="scenes" or "tiny", or name a data set.'
        )
    return ZoomScenes(preset.world, **scenes)


def _answer_score(source: Source, compat: Compat) -> AnswerScore:
    """Return the source's own scoring function; the VQA score if it has none."""
    own = getattr(source, "score", vqa_answer_score)
    return partial(own, compat=compat)


def vqa_answer_score(answer: str, sample: Sample, compat: Compat = None) -> float:
    """Return the VQA score of the official script, or the public code's ``min(1, n / 3)``."""
    return vqa_score(answer, sample.answers, mode="min3" if compat else "official")
