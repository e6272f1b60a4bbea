"""Tests that run folders, episodes and checkpoints of an earlier version are read as they were.

``tests/recorded.tar.xz`` was written at commit 1b801449 by two tiny models with random weights. For
each id it contains a run folder that ``visenv rollout`` wrote (runs/<id>/episodes.jsonl), and an
episode of the oracle that a model encoded (oracle.jsonl).
"""

from __future__ import annotations

import base64
import json
import math
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from visenv.episodes import read_episodes
from visenv.errors import DataError
from visenv.evaluation.rescore import Rescorer
from visenv.types import Episode, Visual
from visenv.viewer import write_report

ARCHIVE = Path(__file__).parents[1] / "recorded.tar.xz"
NAMES = (
    *("ZoomVQA-v0", "ArmZoom-v0", "ArmDoc-v0", "ArmIF-v0", "ArmPreference-v0", "ArmVQA-v0"),
    *("ArmDocVQA-v0", "ArftCoding-v0", "ArftSearch-v0", "MagsZoom-v0", "ArgosImage-v0"),
    *("ArgosVideo-v0", "House-v0", "EBAlfred-v0", "EBHabitat-v0"),
)
"""All ids of that commit except Libero."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def episodes_of(folder: Path, name: str) -> list[Episode]:
    files = (folder / "runs" / name / file for file in ("episodes.jsonl", "oracle.jsonl"))
    return [episode for file in files for episode in read_episodes(file, required=True)]


def records_of(folder: Path, name: str) -> list[dict[str, Any]]:
    files = (folder / "runs" / name / file for file in ("episodes.jsonl", "oracle.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_segments_have_the_recorded_tokens_and_images(recorded: Path, name: str) -> None:
    pairs = zip(episodes_of(recorded, name), records_of(recorded, name), strict=True)
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
            assert images == [
                (sha256, ((offset, length),), placeholder, math.prod(grid))
                for offset, length, sha256, grid, placeholder in saved["images"]
            ]
            inside = {
                place
                for offset, length, *_ in saved["images"]
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
    rescorer = Rescorer()
    refused = set()
    for name in NAMES:
        for episode in episodes_of(recorded, name):
            try:
                again = rescorer.rescore(episode)
            except DataError as error:
                if not str(error).startswith("The sample "):
                    raise
                refused.add(name)
            else:
                assert again.reward.hex() == episode.reward.hex(), name
                assert dict(again.terms) == dict(episode.terms), name
    rescorer.close()
    assert len(refused) <= len(NAMES) // 2, refused


def test_runs_are_shown(recorded: Path) -> None:
    for name in NAMES:
        assert write_report(recorded / "runs" / name).is_file()


@pytest.mark.component("torch", "transformers")
@pytest.mark.parametrize("architecture", ["qwen3_vl", "qwen2_5_vl"])
def test_checkpoints_score_the_recorded_turns(recorded: Path, architecture: str) -> None:
    """Check that a recorded model gives its tokens the log-probabilities that it sampled them with.

    The models took turns over the ids in the order of their registration.
    """
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from visenv.policies.transformers import TransformersPolicy

    folder = recorded / "models" / architecture
    policy = TransformersPolicy(folder, threads=1, max_pixels=6272)
    own = NAMES[["qwen3_vl", "qwen2_5_vl"].index(architecture) :: 2]
    for name in own:
        for episode in read_episodes(recorded / "runs" / name / "episodes.jsonl", required=True):
            shown: dict[str, Visual] = {item.sha256: item for item in episode.images}
            shown |= {item.sha256: item for item in episode.videos}
            for segment in episode.segments:
                scores = policy.score([segment], shown)
                sampled = scores.logprobs[0].detach().numpy()[segment.loss_mask]
                recorded_values = segment.logprobs[segment.loss_mask]
                assert np.abs(sampled - recorded_values).max() <= 1e-5
