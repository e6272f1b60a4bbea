"""Tests entities of a draft: the JSON of figures 5 and 6, with new requests if it is unreadable."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.curation.lines import JsonLines, Row
from visenv.envs.argos.curation import FindEntities
from visenv.envs.argos.curation.entities import VideoAction, read_entities
from visenv.scorers import ReplyError, Scorer
from visenv.types import Image


def reply(**lists: Any) -> str:
    return json.dumps({"entities": ["mug"], "interactions": [], **lists})


def test_further_keys_are_ignored() -> None:
    assert read_entities(reply(why="small"), video=False) == read_entities(reply(), video=False)


def test_repeats_are_listed_once_in_upper_and_lower_case() -> None:
    found = read_entities(reply(entities=["Red  mug", "red mug", "tray"]), video=False)
    assert found.entities == ("Red mug", "tray")


def test_actions_of_a_video_have_their_times() -> None:
    text = reply(actions=["the lid (left) is lifted (start_time=1.5s, end_time=2.00s)"])
    assert read_entities(text, video=True).actions == (
        VideoAction("the lid (left) is lifted", 1.5, 2.0),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mug",
        "[]",
        '{"entities": ["mug"]}',
        reply(entities="mug"),
        reply(entities=["mug", 7]),
        reply(entities=[" "]),
        reply(entities=["x" * 257]),
        reply(entities=[f"mug {number}" for number in range(11)]),
        '{"entities": [], "entities": [], "interactions": []}',
        "[" * 10_000,
    ],
    ids=lambda text: text[:30],
)
def test_reply_that_is_something_else_is_refused(text: str) -> None:
    with pytest.raises(ReplyError):
        read_entities(text, video=False)


@pytest.mark.parametrize(
    "action",
    [
        "the lid is lifted",
        "lifted (start_time=2s, end_time=1s)",
        "lifted (start_time=NaN, end_time=1s)",
        "lifted (start_time=1s)",
    ],
)
def test_action_without_its_times_is_refused(action: str) -> None:
    with pytest.raises(ReplyError):
        read_entities(reply(actions=[action]), video=True)


@given(st.text() | st.builds(json.dumps, st.dictionaries(st.text(), st.lists(st.text()))))
def test_entities_of_any_text_raise_nothing_else(text: str) -> None:
    for video in (False, True):
        with suppress(ReplyError):
            read_entities(text, video=video)


def stubborn(request: Any) -> dict[str, str]:
    """Reply as a model whose first two replies are no JSON."""
    text = reply() if request.seed == 2 else "Here are the entities: a mug."
    return {"text": text, "finish_reason": "stop"}


def hopeless(request: Any) -> dict[str, str]:
    """Reply as a model that never writes JSON."""
    return {"text": "a mug", "finish_reason": "stop"}


def drafted(folder: Path) -> JsonLines:
    (folder / "a.png").write_bytes(Image.from_pixels(np.zeros((8, 8, 3), np.uint8)).png())
    row: Row = {"id": "a", "question": "What?", "options": [], "images": ["a.png"], "times": []}
    path = folder / "rows.jsonl"
    path.write_text(json.dumps({**row, "draft": "a mug"}))
    return JsonLines(path)


def test_reply_that_is_no_json_is_requested_again_three_times_in_all(tmp_path: Path) -> None:
    lines, out = drafted(tmp_path), tmp_path / "out.jsonl"
    assert FindEntities(Scorer("rules", function=f"{__name__}:stubborn")).run(lines, out).kept == 1
    assert next(iter(JsonLines(out))).row["entities"] == ["mug"]
    step = FindEntities(Scorer("rules", function=f"{__name__}:hopeless"))
    assert step.run(lines, tmp_path / "none.jsonl").failed == {"a service failed": 1}
