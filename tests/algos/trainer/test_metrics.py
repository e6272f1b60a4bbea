"""Tests metrics against numbers worked by hand, and that a kill does not corrupt the log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from numpy.typing import ArrayLike

from tests.programs import load_program
from visenv.types import Episode, Failure, ToolCalled, Turn

pytestmark = pytest.mark.component("torch", "tensorboard")


def _episode(
    reward: float, turns: int = 1, status: str = "terminated", calls: tuple[bool, ...] = ()
) -> Episode:
    events = tuple(ToolCalled(0, "look", {}, ok) for ok in calls)
    first = Turn((), "", reward, events, "stop")
    taken = (first, *(replace(first, reward=0.0, events=()) for _ in range(turns - 1)))
    return Episode(
        "e-v0",
        "s",
        "",
        0,
        0,
        0,
        taken,
        status,  # type: ignore[arg-type]
        reason="why" if status == "truncated" else "",
        failure=Failure("service", "judge", "why") if status == "aborted" else None,
        terms={"right": reward},
        metrics={"accuracy": 2 * reward},
    )


def test_measures_by_hand() -> None:
    from visenv.algos.trainer.metrics import measure

    aborted = _episode(0, status="aborted", calls=(True,))
    groups = [
        [_episode(0.5, calls=(True, False)), _episode(0.0, 3, calls=(True,)), aborted],
        [_episode(0.1, status="truncated"), _episode(0.1, turns=3)],
    ]
    assert measure(groups) == pytest.approx(
        {
            "reward": 0.7 / 4,
            "terms/right": 0.7 / 4,
            "metrics/accuracy": 1.4 / 4,
            "episodes/aborted": 1,
            "episodes/truncated": 1 / 4,
            "episodes/turns": 8 / 4,
            "episodes/tokens": 0,
            "groups/zero_std": 1 / 2,
            # Of four episodes, the first called a tool twice, once without success; the second
            # called it once.
            "tools/used_tools": 2 / 4,
            "tools/tool_calls": 3 / 4,
            "tools/failed_calls": 1 / 4,
        }
    )


def test_measures_by_environment_and_kind_by_hand() -> None:
    from visenv.algos.trainer.metrics import measure_by_env_and_kind

    def group(number: int, kind: str, *episodes: Episode) -> list[Episode]:
        return [replace(each, group=number, kind=kind) for each in episodes]

    unread = _episode(0, status="aborted")  # its sample was never read
    groups = [
        group(0, "color", _episode(1.0, calls=(True,)), _episode(0.0)),
        group(1, "left of", _episode(0.5, 3), _episode(0.5)),
        group(2, "color", _episode(0.25), _episode(0.25)),
        [replace(unread, group=3), *group(3, "page", _episode(0.75))],
    ]
    envs = {0: "scenes", 1: "scenes", 2: "photos", 3: "photos"}

    def found(env_of: dict[int, str]) -> dict[str, float]:
        return measure_by_env_and_kind(groups, lambda group: env_of[group[0].group])

    def named(prefix: str, *values: float) -> dict[str, float]:
        reward, tokens, turns, truncated, aborted, used, calls, failed = values
        return {
            f"{prefix}/reward": reward,
            f"{prefix}/terms/right": reward,
            f"{prefix}/metrics/accuracy": 2 * reward,
            f"{prefix}/episodes/tokens": tokens,
            f"{prefix}/episodes/turns": turns,
            f"{prefix}/episodes/truncated": truncated,
            f"{prefix}/episodes/aborted": aborted,
            f"{prefix}/tools/used_tools": used,
            f"{prefix}/tools/tool_calls": calls,
            f"{prefix}/tools/failed_calls": failed,
        }

    assert found(envs) == pytest.approx(
        {
            # scenes: rewards 1, 0, .5, .5; turns 1, 1, 3, 1; one tool call; one of two groups has
            # equal rewards
            **named("env/scenes", 2.0 / 4, 0, 6 / 4, 0, 0, 1 / 4, 1 / 4, 0),
            "env/scenes/groups/zero_std": 1 / 2,
            **named("env/scenes/kind/color", 1 / 2, 0, 1, 0, 0, 1 / 2, 1 / 2, 0),
            "env/scenes/kind/color/groups/zero_std": 0,
            **named("env/scenes/kind/left_of", 1 / 2, 0, 2, 0, 0, 0, 0, 0),
            "env/scenes/kind/left_of/groups/zero_std": 1,
            # photos: rewards .25, .25, .75 without the aborted episode; only one group has two
            # episodes left
            **named("env/photos", 1.25 / 3, 0, 1, 0, 1, 0, 0, 0),
            "env/photos/groups/zero_std": 1,
            **named("env/photos/kind/color", 0.25, 0, 1, 0, 0, 0, 0, 0),
            "env/photos/kind/color/groups/zero_std": 1,
            **named("env/photos/kind/page", 0.75, 0, 1, 0, 1, 0, 0, 0),
        }
    )
    alone = found(dict.fromkeys(envs, ""))
    assert {name.split("/")[1] for name in alone} == {"color", "left_of", "page"}
    assert alone["kind/color/reward"] == pytest.approx(1.5 / 4)


def test_advantages_by_the_outcome_of_the_tool_by_hand() -> None:
    from visenv.algos.trainer.metrics import advantages_by_tool

    groups = [
        [_episode(1.0, calls=(True,)), _episode(0.0), _episode(0.5, calls=(False, True))],
        [_episode(0.0, calls=(False,)), _episode(1.0, turns=2)],
    ]
    # With a successful call: 1.5 and 0.5. Without a call: -1.0, and (0.0 + 1.0) / 2 for two turns.
    given: list[list[ArrayLike]] = [[1.5, -1.0, 0.5], [-0.75, [0.0, 1.0]]]
    assert advantages_by_tool(groups, given) == pytest.approx(
        {"advantage/tool_ok": 1.0, "advantage/no_tool": -0.25, "advantage/tool_failed": -0.75}
    )
    assert advantages_by_tool([[_episode(1.0)]], [[0.0]]) == {"advantage/no_tool": 0.0}


def test_figure_3_adds_the_advantages_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = load_program("benchmarks/groundlight_figure3.py")
    path, picture = tmp_path / "metrics.jsonl", tmp_path / "figure3.png"
    rows = [
        {"step": 1, "advantage/tool_ok": 0.5, "advantage/no_tool": -0.25},
        {"step": 2, "advantage/tool_ok": 0.25, "advantage/tool_failed": -1.0},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    steps, sums = figure.accumulated(path)
    assert steps.tolist() == [1, 2]
    assert sums["tool_ok"].tolist() == [0.5, 0.75]
    assert sums["tool_failed"].tolist() == [0.0, -1.0]
    assert sums["no_tool"].tolist() == [-0.25, -0.25]
    figure.main(str(path), str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "0.750        -1.000        -0.250" in capsys.readouterr().out


def test_metrics_after_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    from visenv.algos.trainer.metrics import MetricsLog

    log = MetricsLog(tmp_path / "metrics.jsonl", step=0)
    for step in range(1, 5):
        log.write(step, {"reward": step / 10})
    log.close()
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text() + '{"step": 5, "rew')  # killed during the write
    log = MetricsLog(tmp_path / "metrics.jsonl", step=2)
    log.write(3, {"reward": 0.33})
    log.close()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == [
        {"step": 1, "reward": 0.1},
        {"step": 2, "reward": 0.2},
        {"step": 3, "reward": 0.33},
    ]


def test_rows_of_a_curriculum_contain_their_stage(tmp_path: Path) -> None:
    from visenv.algos.trainer.metrics import MetricsLog

    log = MetricsLog(tmp_path / "metrics.jsonl", step=0, stage="look")
    log.write(1, {"reward": 0.5})
    log.close()
    row = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert row == {"stage": "look", "step": 1, "reward": 0.5}


def test_reduced_averages_the_times_of_an_episode_over_processes() -> None:
    from visenv.algos.trainer.metrics import reduced

    reports = [
        {"rollout/sandbox_wait_seconds": 1.0, "rollout/episodes": 8.0},
        {"rollout/sandbox_wait_seconds": 4.0, "rollout/episodes": 8.0},
    ]
    assert reduced(reports) == {"rollout/sandbox_wait_seconds": 2.5, "rollout/episodes": 16.0}
