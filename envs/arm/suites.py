"""Defines the tables of ARM-Thinker (arXiv 2512.05111) for `visenv suite`."""

from __future__ import annotations

from visenv.evaluation.suite import Suite, SuiteColumn

_EVAL = {"preset": "eval"}


def _vqa(name: str, data: str, total: str = "") -> SuiteColumn:
    return SuiteColumn(name, "visenv/ArmVQA-v0", data, _EVAL, total)


def _track(name: str, env: str, track: str) -> SuiteColumn:
    return SuiteColumn(name, env, f"armbench:{{armbench}}?track={track}", _EVAL)


ARMBENCH = Suite(
    "ARMBench-VL (ARM-Thinker, table 2)",
    (
        _track("FG", "visenv/ArmZoom-v0", "fine_grained_perception"),
        _track("IF", "visenv/ArmIF-v0", "multimodal_instruction_following"),
        _track("Doc", "visenv/ArmDoc-v0", "multimodal_long_document"),
    ),
)
"""The three tracks; the average of the paper's table is the mean of the three."""

VISUAL_TOOLS = Suite(
    "Visual tool use (ARM-Thinker, table 3)",
    (
        _vqa("V*", "vstar:{vstar}"),
        _vqa("HRBench 4K", "hrbench:{hrbench}?size=4k"),
        _vqa("HRBench 8K", "hrbench:{hrbench}?size=8k"),
        _vqa("MME-RW", "mme_realworld:{mme_realworld}"),
    ),
)

REASONING = Suite(
    "Math and logical reasoning (ARM-Thinker, table 4)",
    tuple(
        _vqa(name, f"vlmeval:{{vlmeval}}?name={file}", total)
        for name, file, total in (
            ("MMMU", "MMMU_DEV_VAL&split=validation", ""),
            ("MathVista", "MathVista_MINI", ""),
            ("MathVision", "MathVision", ""),
            ("MathVerse", "MathVerse_MINI_Vision_Only", ""),
            ("WeMath", "WeMath", "WeMath (strict)"),
            ("LogicVista", "LogicVista", ""),
        )
    ),
)
"""The paper does not report the splits and the score of WeMath that it uses: MMMU's validation
split, MathVerse's Vision Only and WeMath's strict score are our choice."""
