"""Tests `EpisodeJournal`: a killed run loses no finished episode and uses none twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.algos import toy
from tests.environments import few
from tests.programs import run_python
from visenv.algos.trainer.episode_sources import RolloutSource
from visenv.algos.trainer.journal import EpisodeJournal
from visenv.errors import RunError
from visenv.rollout import Collector
from visenv.types import Episode, Failure

RUN = {"algorithm": "GRPO", "seed": 11}
GROUPS, SIZE, SEED = 3, 4, 11

pytestmark = pytest.mark.component("torch")


@pytest.fixture
def episodes() -> list[Episode]:
    """Return three groups of two episodes, with tokens and images."""
    collector = Collector(toy.Echo, toy.ToyPolicy())
    return [episode for group in collector.groups(range(3), 2) for episode in group]


def journal(folder: Path, **options: Any) -> EpisodeJournal:
    return EpisodeJournal(folder, RUN, **{"exact": False, **options})


def by_place(episodes: list[Episode]) -> dict[tuple[int, int], Episode]:
    return {(each.group, each.member): each for each in episodes}


def test_journal_is_read_by_the_next_run(episodes: list[Episode], tmp_path: Path) -> None:
    written = journal(tmp_path)
    for episode in episodes:
        written.add(4, episode).result()
    read, kept, *_ = journal(tmp_path).read(4)
    assert (read, kept) == (by_place(episodes), None)  # with identical log-probabilities and images
    assert journal(tmp_path).read(5)[:2] == ({}, None)
    written.finish(4, {2: episodes[4:6], 0: episodes[0:1]}).result()
    assert journal(tmp_path).read(4).kept == [episodes[4:6], episodes[0:1]]


def test_journal_returns_the_metrics_and_the_time_of_a_step(
    episodes: list[Episode], tmp_path: Path
) -> None:
    written = journal(tmp_path)
    written.add(0, episodes[0]).result()
    written.finish(0, {0: episodes[:1]}, {"rollout/groups": 3.0}, seconds=7.5).result()
    read = journal(tmp_path).read(0)
    assert (read.report, read.seconds) == ({"rollout/groups": 3.0}, 7.5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_journal_drops_an_incomplete_line_and_does_not_continue_it(
    data: Any, episodes: list[Episode], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    written = journal(folder)
    written.add(0, episodes[0]).result()
    path = folder / "step_000000" / "episodes_0.jsonl"
    first = path.stat().st_size
    written.add(0, episodes[1]).result()
    size = data.draw(st.integers(first, path.stat().st_size - 1))
    path.write_bytes(path.read_bytes()[:size])  # killed during the write
    again = journal(folder)
    assert again.read(0).episodes == by_place(episodes[:1])
    again.add(0, episodes[2]).result()
    assert again.read(0).episodes == by_place([episodes[0], episodes[2]])


@pytest.mark.parametrize("damage", ["a line of rubbish", "no image", "another image", "no kept"])
def test_unreadable_line_counts_as_not_finished(
    episodes: list[Episode], tmp_path: Path, damage: str
) -> None:
    written = journal(tmp_path)
    for episode in episodes:
        written.add(0, episode).result()
    written.finish(0, {0: episodes[:2]}).result()
    folder = tmp_path / "step_000000"
    images = sorted((folder / "images").iterdir())
    lost = next(each for each in episodes if each.images[0].sha256 == images[0].stem).group
    if damage == "a line of rubbish":
        path = folder / "episodes_0.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([lines[0], b"\xff{[\x00\n", *lines[1:]]))
        lost = -1
    elif damage == "no image":
        images[0].unlink()
    elif damage == "another image":
        images[0].write_bytes(images[1].read_bytes())
    else:
        (folder / "kept_0_of_1.json").write_text("[[[0, 9]]]")
        lost = -1
    read, kept, *_ = journal(tmp_path).read(0)
    assert read == by_place([each for each in episodes if each.group != lost])
    assert (kept is None) == (damage == "no kept" or lost == 0)


def test_aborted_episodes_are_tried_again(episodes: list[Episode], tmp_path: Path) -> None:
    turns = tuple(replace(turn, reward=0.0) for turn in episodes[0].turns)
    failure = Failure("service", "judge", "away")
    aborted = replace(episodes[0], turns=turns, status="aborted", failure=failure)
    written = journal(tmp_path)
    written.add(0, aborted).result()
    written.add(0, episodes[1]).result()
    written.finish(0, {0: [aborted, episodes[1]]}).result()
    assert journal(tmp_path).read(0)[:2] == (by_place(episodes[1:2]), None)


def test_step_of_batched_sampling_is_read_completely_or_not_at_all(
    episodes: list[Episode], tmp_path: Path
) -> None:
    written = journal(tmp_path, exact=True)
    written.add(0, episodes[0]).result()
    assert journal(tmp_path, exact=True).read(0)[:2] == ({}, None)
    # The episode was removed, so that it does not mix with new ones.
    assert journal(tmp_path).read(0)[:2] == ({}, None)
    written.add(0, episodes[0]).result()
    written.finish(0, {0: episodes[:1]}).result()
    assert journal(tmp_path, exact=True).read(0)[:2] == (by_place(episodes[:1]), [episodes[:1]])


def test_processes_write_apart_and_read_all(episodes: list[Episode], tmp_path: Path) -> None:
    for rank in range(2):
        written = journal(tmp_path, rank=rank, count=2)
        written.add(0, episodes[rank]).result()
        written.finish(0, {0: [episodes[rank]]}).result()
    for rank in range(2):
        read, kept, *_ = journal(tmp_path, rank=rank, count=2).read(0)
        assert (read, kept) == (by_place(episodes[:2]), [[episodes[rank]]])
    # A run with another number of processes selects again, from the episodes of all old processes.
    assert journal(tmp_path).read(0)[:2] == (by_place(episodes[:2]), None)


def test_journal_of_steps_in_a_checkpoint_is_removed(
    episodes: list[Episode], tmp_path: Path
) -> None:
    written = journal(tmp_path)
    for step in (8, 9, 10, 11):
        written.add(step, episodes[0]).result()
    written.prune(10)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "run.json",
        "step_000010",
        "step_000011",
    ]


def test_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    journal(tmp_path)
    journal(tmp_path)
    with pytest.raises(RunError, match="a run with other settings"):
        EpisodeJournal(tmp_path, {**RUN, "seed": 12})


# ----------------------------------------------------------------------- kill -9 at any moment

_KILLED = """
import json, os, signal, sys
from pathlib import Path

from tests.algos import toy
from visenv import episodes, files
from visenv.episodes import files as episode_files
from visenv.algos.trainer import journal
from visenv.algos.trainer.episode_sources import RolloutSource
from visenv.rollout import Collector

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def counting(function, calls, last=kill):
    count = 0
    def called(*arguments, **options):
        nonlocal count
        count += 1
        if count == calls:
            last(*arguments) if last is not kill else kill()
        return function(*arguments, **options)
    return called

def half_a_line(path, episode):
    episodes.append_episode(path, episode)
    os.truncate(path, path.stat().st_size - 40)
    kill()

def run(folder, point, calls):
    on_episode, on_reset = (lambda episode: None), (lambda seed: None)
    if point == "reset":
        on_reset = counting(on_reset, calls)
    if point == "finished":
        on_episode = counting(on_episode, calls)
    if point == "line":
        journal.append_episode = counting(episodes.append_episode, calls, half_a_line)
    if point == "image":
        episode_files._write_image = counting(episode_files._write_image, calls)
    if point == "decided":
        journal.EpisodeJournal.finish = counting(journal.EpisodeJournal.finish, calls)
    policy = toy.ToyPolicy()
    collector = Collector(lambda: toy.Echo(on_reset=on_reset), policy, concurrency=5)
    episode_source = RolloutSource(collector, policy, 3, 4, 11)
    run_settings = {"algorithm": "GRPO", "seed": 11}
    episode_source.journal = journal.EpisodeJournal(folder, run_settings, exact=False)
    for step in range(2):
        episode_source.groups(step, on_episode)

for name, (point, calls) in json.loads(sys.argv[2]).items():
    child = os.fork()
    if child == 0:
        run(Path(sys.argv[1]) / name, point, calls)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL, name
"""

# There are 2 steps of 12 episodes with one image each.
POINTS: dict[str, tuple[str, int]] = {
    "in the first reset": ("reset", 1),
    "in the last reset": ("reset", 24),
    "after the first episode": ("finished", 1),
    "in the middle of a step": ("finished", 6),
    "after the last of a step": ("finished", 12),
    "in the first line": ("line", 1),
    "in a line": ("line", 17),
    "in an image": ("image", 4),
    "before it is decided": ("decided", 1),
    "before the last is decided": ("decided", 2),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that has, for each point, the journal of a run that was killed there."""
    folder = tmp_path_factory.mktemp("killed")
    done = run_python("-c", _KILLED, folder, json.dumps(POINTS))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("exact", few([True, False], 1))
@pytest.mark.parametrize("point", POINTS)
def test_killed_run_continues_with_its_saved_episodes(
    killed: Path, tmp_path: Path, point: str, exact: bool
) -> None:
    import shutil

    folder = Path(shutil.copytree(killed / point, tmp_path / "journal"))
    had = {
        (step, *place)
        for step in range(2)
        for place in EpisodeJournal(killed / point, RUN, exact=False).read(step).episodes
    }
    whole = [journal(killed / point).read(step).kept is not None for step in range(2)]

    def run(folder: Path) -> tuple[Any, list[int]]:
        resets: list[int] = []
        policy = toy.ToyPolicy()
        collector = Collector(lambda: toy.Echo(on_reset=resets.append), policy, concurrency=5)
        episode_source = RolloutSource(collector, policy, GROUPS, SIZE, SEED)
        episode_source.journal = EpisodeJournal(folder, RUN, exact=exact)
        return [episode_source.groups(step, lambda _: None) for step in range(2)], resets

    groups, resets = run(folder)
    straight, all_resets = run(tmp_path / "straight")
    assert groups == straight  # no episode is lost or duplicated, and the order is the same
    kept = [place for place in had if whole[place[0]] or not exact]
    assert len(resets) == len(all_resets) - len(kept)
    # All episodes that were played are available to the next run.
    assert run(folder) == (straight, [])


def test_killed_run_has_what_it_had_finished(killed: Path) -> None:
    counts = {
        point: sum(len(journal(killed / point).read(step).episodes) for step in range(2))
        for point in POINTS
    }
    assert counts["in the first reset"] == counts["in the first line"] == 0
    assert counts["in a line"] == 16
    assert counts["before the last is decided"] == 24
    # Episodes whose completion was reported are on disk, and perhaps later ones too.
    assert 1 <= counts["after the first episode"] <= 12
    assert 6 <= counts["in the middle of a step"] <= 12
    assert counts["after the last of a step"] == counts["before it is decided"] == 12
