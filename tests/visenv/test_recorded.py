"""Tests that run folders, episodes and checkpoints of an earlier version are read as they were.

``tests/recorded.tar.xz`` was written at commit 1b801449 (format 2) by two tiny models with random
weights, and ``tests/recorded_format_3.tar.xz`` at commit 5935ba3c by the same models. For each id
they contain a run folder that ``visenv rollout`` wrote (runs/<id>/episodes.jsonl), and an episode
of the oracle that a model encoded (oracle.jsonl).
"""

from __future__ import annotations

import base64
import json
import math
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

from visenv.episodes import read_episodes, write_episodes
from visenv.errors import DataError
from visenv.evaluation.rescore import Rescorer
from visenv.records import event_to_json
from visenv.types import Episode, TurnTaken, Visual
from visenv.viewer import write_report

TESTS = Path(__file__).parents[1]
NAMES = (
    *("ZoomVQA-v0", "ArmZoom-v0", "ArmDoc-v0", "ArmIF-v0", "ArmPreference-v0", "ArmVQA-v0"),
    *("ArmDocVQA-v0", "ArftCoding-v0", "ArftSearch-v0", "MagsZoom-v0", "ArgosImage-v0"),
    *("ArgosVideo-v0", "House-v0", "EBAlfred-v0", "EBHabitat-v0"),
)
"""All ids of commit 1b801449 except Libero."""
NAMES_OF_FORMAT_3 = (
    *("ZoomVQA-v0", "ArmZoom-v0", "ArftSearch-v0"),
    *("MagsZoom-v0", "ArgosVideo-v0", "House-v0"),
)
"""Ids of the runs of commit 5935ba3c."""
CHANGED = (
    *("ZoomVQA-v0", "ArmZoom-v0", "ArmVQA-v0", "ArftCoding-v0", "MagsZoom-v0"),
    *("ArgosImage-v0", "ArgosVideo-v0"),
)
"""Ids whose worlds have changed since commit 1b801449."""
WITH_DOCUMENTS = ("ArmDoc-v0", "ArmDocVQA-v0")
"""Ids whose recorded documents have other bytes if reportlab below 4.5 draws them."""
TAKEN = ("turn", "text", "thought")
"""Fields of `TurnTaken`, in their order."""
RUNS = (
    *(f"format_2/runs/{name}" for name in NAMES),
    *(f"format_3/runs/{name}" for name in NAMES_OF_FORMAT_3),
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    for name, file in (("format_2", "recorded.tar.xz"), ("format_3", "recorded_format_3.tar.xz")):
        with tarfile.open(TESTS / file) as archive:
            archive.extractall(folder / name, filter="data")
    return folder


def episodes_of(run: Path) -> list[Episode]:
    files = (run / file for file in ("episodes.jsonl", "oracle.jsonl"))
    return [episode for file in files for episode in read_episodes(file, required=True)]


def records_of(run: Path) -> list[dict[str, Any]]:
    files = (run / file for file in ("episodes.jsonl", "oracle.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def saved_image(saved: list[Any]) -> list[Any]:
    """Return hash, runs, placeholder and number of patches of an image of a saved segment."""
    if len(saved) == 4:
        return saved
    offset, length, sha256, grid, placeholder = saved  # format 2
    return [sha256, [[offset, length]], placeholder, math.prod(grid)]


@pytest.mark.parametrize("run", RUNS)
def test_turns_have_the_recorded_texts_and_events(recorded: Path, run: str) -> None:
    pairs = zip(episodes_of(recorded / run), records_of(recorded / run), strict=True)
    for episode, record in pairs:
        assert record["format"] == int(run[len("format_")])
        for turn, saved in zip(episode.turns, record["turns"], strict=True):
            assert turn.text == saved["text"]
            assert turn.events[0] == TurnTaken(*(saved["events"][0][name] for name in TAKEN))
            assert [json.loads(json.dumps(event_to_json(event))) for event in turn.events] == (
                saved["events"]
            )


@pytest.mark.parametrize("run", RUNS)
def test_episodes_are_written_again_in_the_present_format(
    recorded: Path, run: str, tmp_path: Path
) -> None:
    episodes = episodes_of(recorded / run)
    write_episodes(tmp_path / "episodes.jsonl", episodes)
    assert list(read_episodes(tmp_path / "episodes.jsonl")) == episodes


@pytest.mark.parametrize("run", RUNS)
def test_segments_have_the_recorded_tokens_and_images(recorded: Path, run: str) -> None:
    pairs = zip(episodes_of(recorded / run), records_of(recorded / run), strict=True)
    for episode, record in pairs:
        assert episode.segments
        for segment, saved in zip(episode.segments, record["segments"], strict=True):
            tokens = np.frombuffer(base64.b64decode(saved["token_ids"]), "<i4")
            np.testing.assert_array_equal(segment.token_ids, tokens)
            assert segment.processor == saved["processor"]
            images = [
                (span.sha256, span.runs, span.placeholder_id, span.patches)
                for span in segment.images
            ]
            saved_images = [saved_image(image) for image in saved["images"]]
            assert json.loads(json.dumps(images)) == saved_images
            inside = {
                place
                for _, runs, *_ in saved_images
                for offset, length in runs
                for place in range(offset, offset + length)
            }
            videos = {
                place
                for span in segment.videos
                for place in range(span.offset, span.offset + span.length)
            }
            found = np.flatnonzero(np.isin(segment.token_ids, segment.placeholder_ids))
            assert {*found.tolist()} == inside | videos


@pytest.mark.component("torch", "mujoco", "osmesa")
def test_episodes_are_rescored_to_the_recorded_rewards(recorded: Path) -> None:
    """Check that rewards are the recorded ones, or that a world which has changed is refused."""
    changed = (
        CHANGED + WITH_DOCUMENTS if Version(version("reportlab")) < Version("4.5") else CHANGED
    )
    rescorer = Rescorer()
    refused = set()
    for run in RUNS:
        for episode in episodes_of(recorded / run):
            try:
                again = rescorer.rescore(episode)
            except DataError as error:
                if not str(error).startswith("The sample "):
                    raise
                refused.add(run)
            else:
                assert again.reward.hex() == episode.reward.hex(), run
                assert dict(again.terms) == dict(episode.terms), run
    rescorer.close()
    assert refused == {f"format_2/runs/{name}" for name in changed}


def test_runs_are_shown(recorded: Path) -> None:
    for run in RUNS:
        assert write_report(recorded / run).is_file()


@pytest.mark.component("torch", "transformers")
@pytest.mark.parametrize("architecture", ["qwen3_vl", "qwen2_5_vl"])
def test_checkpoints_score_the_recorded_turns(recorded: Path, architecture: str) -> None:
    """Check that a recorded model gives its tokens the log-probabilities that it sampled them with.

    The models took turns over the ids in the order of their registration.
    """
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from visenv.policies.transformers import TransformersPolicy

    folder = recorded / "format_2/models" / architecture
    policy = TransformersPolicy(folder, threads=1, max_pixels=6272)
    own = NAMES[["qwen3_vl", "qwen2_5_vl"].index(architecture) :: 2]
    if Version(transformers.__version__) < Version("5.15"):
        # The video processor of Qwen2.5-VL had other settings, so that its videos are refused.
        own = tuple([name for name in own if name != "ArgosVideo-v0"])
    for name in own:
        run = recorded / "format_2/runs" / name
        for episode in read_episodes(run / "episodes.jsonl", required=True):
            shown: dict[str, Visual] = {item.sha256: item for item in episode.images}
            shown |= {item.sha256: item for item in episode.videos}
            for segment in episode.segments:
                scores = policy.score([segment], shown)
                sampled = scores.logprobs[0].detach().numpy()[segment.loss_mask]
                recorded_values = segment.logprobs[segment.loss_mask]
                assert np.abs(sampled - recorded_values).max() <= 1e-5
