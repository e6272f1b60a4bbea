"""Tests that changed rows fail one by one, with a reason, and that no step stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hostile_rows import hostile
from visenv.curation.lines import JsonLines
from visenv.curation.step import CurationStep
from visenv.envs.argos.curation import (
    DrawOverlay,
    ExtractReferences,
    FindEntities,
    PointToEntities,
    Reformat,
    ScoreTraces,
    ScriptedTeacher,
    Traces,
)
from visenv.makers import env_maker
from visenv.scorers import Scorer
from visenv.types import Image

pytestmark = pytest.mark.attack("data: a hostile row is reported, and the other rows are read")

SCRIPTED = "visenv.envs.argos.curation.scripted"
MAKE_ENV = env_maker("visenv/ArgosImage-v0", ["preset=tiny"])

STEPS: dict[str, Callable[[Path], CurationStep]] = {
    "entities": lambda folder: FindEntities(Scorer("rules", function=f"{SCRIPTED}:write_entities")),
    "point": lambda folder: PointToEntities(MAKE_ENV, "oracle"),
    "overlay": DrawOverlay,
    "traces": lambda folder: Traces(MAKE_ENV, ScriptedTeacher()),
    "extract": lambda folder: ExtractReferences(
        Scorer("rules", function=f"{SCRIPTED}:write_extraction")
    ),
    "score": lambda folder: ScoreTraces(MAKE_ENV, folder),
    "reformat": lambda folder: Reformat(folder, folder),
}

NEEDED = {
    "entities": ("question", "options", "images", "times", "draft"),
    "point": ("seed", "sample", "entities"),
    "overlay": ("images", "times", "points"),
    "traces": ("seed", "question", "options", "images", "times"),
    "extract": ("times", "trace"),
    "score": ("seed", "sample", "trace", "extraction"),
    "reformat": ("turns", "extraction", "format"),
}
"""Names the fields that each step reads."""


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_fields_may_hold_anything(tmp_path: Path, name: str) -> None:
    png = tmp_path / "a.png"
    png.write_bytes(Image.from_pixels(np.zeros((96, 96, 3), np.uint8)).png())
    good: dict[str, Any] = {
        "seed": 0,
        "sample": "image-5187f5e7ece1412f",
        "question": "What?",
        "options": [],
        "images": ["a.png", "a.png"],
        "times": [],
        "draft": "red cube at (3, 4)",
        "entities": ["red cube"],
        "points": [],
        "trace": "<think>so</think><answer>a</answer>",
        "extraction": {"points": []},
        "format": 2,
        "turns": [],
    }
    read = {key: good[key] for key in NEEDED[name]}
    others = {key: value for key, value in good.items() if key not in read}
    rows = [
        {"id": f"{number}", **others, **spoiled} for number, spoiled in enumerate(hostile(read))
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*map(json.dumps, rows), json.dumps({**good, "id": "good"})]))
    step = STEPS[name](tmp_path)
    account = step.run(JsonLines(path), tmp_path / "out.jsonl")
    step.close()
    assert account.lines == len(rows) + 1
    kept = {line.id for line in JsonLines(tmp_path / "out.jsonl")}
    missing = {row["id"] for row in rows if not {*read} <= {*row}}
    assert len(missing) == len(read) + 1
    assert not missing & kept
    assert set(account.failed) == {"cannot be read"}
    # "turns" is empty, but an episode has at least one turn
    assert ("good" in kept) == (name != "reformat")
