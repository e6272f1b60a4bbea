"""Tests that the best rollout of each sample is kept, and that SFT and RL share no sample."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from visenv.background import run_here
from visenv.curation.lines import JsonLines
from visenv.curation.places import members, seed_lines
from visenv.curation.trajectories import Trajectories
from visenv.envs.argos.curation import Mix, Verify
from visenv.episodes import episode_to_json, read_episodes, save_images
from visenv.errors import ConfigurationError
from visenv.makers import env_maker
from visenv.policies.oracle import OraclePolicy
from visenv.policies.scripted import ScriptedPolicy
from visenv.rollout.episode import EpisodeSpec, play
from visenv.scorers import Detect, HitMasks
from visenv.types import Image, Sample


def rollouts(folder: Path, count: int = 12, tries: int = 4) -> Path:
    """Write rollouts of an oracle that mostly guesses; return their file."""
    out = folder / "rollouts.jsonl"
    make = env_maker("visenv/ArgosImage-v0", ["preset=tiny"])
    step = Trajectories(make, OraclePolicy(expert_rate=0.2, guess=True), folder)
    step.run(members(seed_lines(count), tries), out)
    step.close()
    return out


def verify(file: Path, out: Path, **options: Any) -> Any:
    lines = JsonLines(file)
    return Verify(lines, file.parent / "images", out.parent, **options).run(lines, out)


def test_first_best_rollout_of_each_sample_is_kept(tmp_path: Path) -> None:
    file = rollouts(tmp_path)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    groups = defaultdict(list)
    for row in rows:
        groups[row["sample_id"]].append(row)
    # With exact teachers, a rollout passes if and only if its answer is correct.
    expected = []
    for group in groups.values():
        right = [row for row in group if row["metrics"]["accuracy"] == 1]
        expected += [right[0]["id"]] if right else []
    assert 0 < len(expected) < len(rows)
    out = tmp_path / "kept" / "kept.jsonl"
    out.parent.mkdir()
    account = verify(file, out)
    assert [line.id for line in JsonLines(out)] == expected
    assert account.kept == len(expected)
    assert sum(account.dropped.values()) == len(rows) - len(expected)
    assert all(episode.reward == 1.0 for episode in read_episodes(out))
    before = out.read_bytes()
    verify(file, out)  # a second run changes nothing
    assert out.read_bytes() == before


def test_low_score_is_dropped_though_the_answer_is_right(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [
        {"id": "a/0", "sample_id": "a", "turns": [{"reward": 0.69}], "metrics": {"accuracy": 1.0}},
        {"id": "b/0", "sample_id": "b", "turns": [{"reward": 0.9}], "metrics": {"accuracy": 0.0}},
        {"id": "c/0", "sample_id": "c"},
        {
            "id": "e/0",
            "sample_id": "e",
            "turns": [{"reward": 0.9}],
            "metrics": {"accuracy": 1.0},
            "terms": {"accuracy": 0.0},
        },
        {"id": "d/0", "turns": [{"reward": 1.0}]},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    account = verify(file, tmp_path / "out.jsonl")
    assert account.dropped == {"the score is below the threshold": 1, "the answer is wrong": 2}
    assert sum(account.failed.values()) == 2


def agrees(request: Any) -> Any:
    """Reply as a judge that accepts every open answer, and as teachers that find everything."""
    if isinstance(request, Detect):
        return [[0.0, 0.0, 9.0, 9.0, 0.9]]
    if isinstance(request, HitMasks):
        return [True] * len(request.points)
    return {"text": "yes", "finish_reason": "stop"}


def test_answer_that_the_judge_found_right_is_kept(tmp_path: Path) -> None:
    """Check an answer for which the metric is 0, because the metric only applies rules."""
    line = f"rules:{__name__}:agrees"
    image = Image.from_pixels(np.zeros((10, 10, 3), np.uint8))
    sample = Sample("s", "What happens?", (image,), ("a man in a coat leaves",))
    env = gym.make(
        "visenv/ArgosImage-v0",
        data=[sample],
        teachers={"detector": line, "segmenter": line, "judge": line},
    )
    turn = '<think><point x="1" y="1">man</point></think><answer>he goes</answer>'
    episode = run_here(play(env, ScriptedPolicy([turn]), EpisodeSpec(0)))
    assert episode.metrics["accuracy"] == 0.0
    file, out = tmp_path / "rollouts.jsonl", tmp_path / "kept" / "kept.jsonl"
    file.write_text(json.dumps({"id": "s/0", **episode_to_json(episode)}))
    save_images(tmp_path / "images", episode.images)
    out.parent.mkdir()
    assert verify(file, out).kept == 1


def test_sft_and_rl_share_no_sample(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [{"id": f"{n}/{k}", "sample_id": str(n)} for n in range(400) for k in range(2)]
    file.write_text("\n".join(map(json.dumps, rows)))
    parts = {}
    for part in ("sft", "rl"):
        out = tmp_path / f"{part}.jsonl"
        Mix(part, 0.25, seed=3).run(JsonLines(file), out)
        parts[part] = {line.row["sample_id"] for line in JsonLines(out)}
    assert not parts["sft"] & parts["rl"]
    assert len(parts["sft"] | parts["rl"]) == 400
    assert 70 < len(parts["rl"]) < 130


def test_verify_and_mix_refuse_invalid_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="threshold"):
        Verify([], tmp_path, tmp_path, 0.0)
    with pytest.raises(ConfigurationError, match="rl_share"):
        Mix("sft", 1.5)
