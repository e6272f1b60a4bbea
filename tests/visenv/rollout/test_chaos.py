"""Tests the collector under failures: it repeats a failed episode in a new environment.

Other episodes go on. The only time limits are those that a hanging call must reach.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from tests.visenv.rollout.time_limits import limit_only_calls_that_wait
from tests.waiting import LIMIT
from visenv.env import Observation
from visenv.errors import ConfigurationError, DataError, PolicyError, ServiceError
from visenv.policy import Policy, Session
from visenv.rollout import (
    Collector,
    EpisodeSpec,
    Executor,
    InlineExecutor,
    ProcessExecutor,
    ThreadExecutor,
)
from visenv.testing import toy
from visenv.testing.toy import OPENED
from visenv.types import (
    Episode,
    Failure,
    Image,
    Message,
    Reply,
    Sampling,
    StepResult,
    TurnRequest,
)

ADD = "<tool>\nname: add\namount: 3\n</tool>"
ANSWER = "<answer>3</answer>"
EXECUTORS: dict[str, Callable[[], Executor]] = {
    "inline": InlineExecutor,
    "threads": ThreadExecutor,
}


def trouble(kind: str, gate: str = "") -> str:
    return f"<tool>\nname: trouble\nkind: {kind}\ngate: {gate!r}\n</tool>".replace("'", '"')


class ByMember(Policy[Session]):
    """Replies in the episode of member n with the n-th script, in whatever order they begin.

    Args:
        *scripts: The turns of each member; a turn that is an exception is raised.
        again: The turns of an episode that is played again; by default they are the same.
    """

    def __init__(
        self, *scripts: Sequence[str | Exception], again: Sequence[str | Exception] = ()
    ) -> None:
        self.scripts = {seed_of(member): script for member, script in enumerate(scripts)}
        self.again = again
        self.seeds: list[int] = []

    @override
    def open(self, seed: int) -> Session:
        session: Any = Session()
        is_first = seed not in self.seeds
        session.script = iter(self.scripts[seed] if is_first or not self.again else self.again)
        self.seeds.append(seed)
        return session  # type: ignore[no-any-return]

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        turn = next(session.script)  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        if isinstance(turn, Exception):
            raise turn
        return Reply.of_text(turn)


def seed_of(member: int) -> int:
    """Return the seed with which the policy plays a member of the group in `played`."""
    return EpisodeSpec(7, 0, member).policy_seed


class Recorded(gym.Wrapper[Any, Any, Any, Any]):
    """Records its calls; a failing step is recorded by the kind of its failure."""

    def __init__(self, env: gym.Env[Observation, str]) -> None:
        super().__init__(env)
        self.calls: list[str] = []

    @override
    def step(self, action: str) -> Any:
        kinds = (kind for kind in ("error", "service") if f"kind: {kind}" in action)
        self.calls.append(next(kinds, "step"))
        return self.env.step(action)

    @override
    def reset(self, **arguments: Any) -> Any:
        self.calls.append("reset")
        return self.env.reset(**arguments)

    @override
    def close(self) -> None:
        self.calls.append("close")
        self.env.close()


def played(collector: Collector, count: int = 3) -> list[Episode]:
    episodes = collector.episodes([EpisodeSpec(7, 0, member) for member in range(count)])
    collector.close()
    return episodes


def name_of(episode: Episode) -> str:
    assert episode.failure is not None
    return episode.failure.name


def toy_sample() -> str:
    """Return the id of the sample in `played`."""
    env = toy.make()
    env.reset(seed=7)
    return env.unwrapped.sample.id  # type: ignore[attr-defined, no-any-return]


# ---------------------------------------------------------------------------- environments


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> Executor:
    return EXECUTORS[request.param]()


@pytest.mark.parametrize(
    ("kind", "reason", "is_replaced"),
    [
        ("error", "RuntimeError: a bug in a tool", True),
        ("service", "search: the server is down", False),
    ],
)
def test_collector_plays_a_failed_episode_again(
    executor: Executor, kind: str, reason: str, is_replaced: bool
) -> None:
    made: list[Recorded] = []

    def make() -> gym.Env[Observation, str]:
        made.append(Recorded(toy.make(trouble=True)))
        return made[-1]

    well = [ADD, ANSWER]
    policy = ByMember(well, [ADD, trouble(kind)], well, again=well)
    collector = Collector(make, policy, executor=executor, retries=1)
    episodes = played(collector)
    assert [episode.status for episode in episodes] == ["terminated"] * 3
    assert [episode.member for episode in episodes] == [0, 1, 2]
    (broken,) = (each for each in made if each.calls.count("step") and kind in each.calls)
    after = broken.calls[broken.calls.index(kind) + 1 :]
    # A bug may leave any state behind; a failed service leaves the environment unchanged.
    assert after[0] == ("close" if is_replaced else "reset")
    # The second attempt has the same seeds, so it is the same episode.
    assert len(set(policy.seeds)) == 3
    counts = collector.stats.take()
    assert (counts["retries"], counts["episodes"]) == (1, 3)
    assert counts["aborted/" + reason.partition(":")[0]] == 1


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("error", "RuntimeError: a bug in a tool"), ("service", "search: the server is down")],
)
def test_permanent_failure_is_kept_as_aborted(executor: Executor, kind: str, reason: str) -> None:
    policy = ByMember([ADD, trouble(kind)])
    collector = Collector(partial(toy.make, trouble=True), policy, executor=executor, retries=2)
    (episode,) = played(collector, 1)
    assert (episode.status, str(episode.failure), episode.reward) == ("aborted", reason, 0.0)
    assert episode.segments == ()
    assert (episode.sample_id, episode.env_id) == (toy_sample(), "Adder")
    counts = collector.stats.take()
    assert (counts["retries"], counts["aborted/" + name_of(episode)]) == (2, 3)


def test_hang_is_left_behind_within_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_only_calls_that_wait(monkeypatch)
    policy = ByMember([trouble("wait", "hang")], [ADD, ANSWER])
    executor = ThreadExecutor(timeout=0.2)
    collector = Collector(partial(toy.make, trouble=True), policy, executor=executor)
    hung, well = collector.episodes([EpisodeSpec(7), EpisodeSpec(7, 0, 1)])
    assert hung.failure == Failure("timeout", "timeout", "act took longer than 0.2 s.")
    assert (hung.sample_id, well.status) == (toy_sample(), "terminated")
    OPENED["hang"].set()
    collector.close()
    executor.close(grace=LIMIT)
    assert not any(worker.alive for worker in executor._workers)


def test_environment_that_does_not_come_up_in_time_aborts() -> None:
    opened = OPENED["birth"]

    def make() -> gym.Env[Observation, str]:
        opened.wait()
        return toy.make()

    collector = Collector(make, ByMember([ANSWER]), executor=ThreadExecutor(start_timeout=0.05))
    (episode,) = collector.episodes([EpisodeSpec(0)])
    opened.set()
    assert episode.failure == Failure(
        "timeout", "timeout", "making the environment took longer than 0.05 s."
    )
    assert (episode.env_id, episode.sample_id) == ("", "")
    collector.close()


@pytest.mark.slow
def test_process_that_dies_or_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_only_calls_that_wait(monkeypatch)
    well = [ADD, ANSWER]
    policy = ByMember([ADD, trouble("exit")], [trouble("wait")], well, again=well)
    executor = ProcessExecutor(timeout=0.2)
    collector = Collector(partial(toy.make, trouble=True), policy, executor=executor, retries=1)
    assert [episode.status for episode in played(collector)] == ["terminated"] * 3
    counts = collector.stats.take()
    assert (counts["aborted/worker"], counts["aborted/timeout"], counts["retries"]) == (1, 1, 2)


@pytest.mark.parametrize("where", [InlineExecutor, ThreadExecutor])
def test_options_that_are_impossible_are_refused_immediately(where: type[Executor]) -> None:
    collector = Collector(partial(toy.make, turns=0), ByMember([ANSWER]), executor=where())
    with pytest.raises(ConfigurationError, match="at least 1 turn"):
        played(collector)


def test_limit_must_be_one() -> None:
    with pytest.raises(ConfigurationError, match="above 0 seconds, got 0"):
        ThreadExecutor(timeout=0)


def test_function_that_makes_the_environment_must_reach_the_process() -> None:
    lock = threading.Lock()

    def make() -> gym.Env[Observation, str]:
        with lock:
            return toy.make()

    collector = Collector(make, ByMember([ANSWER]), executor=ProcessExecutor())
    with pytest.raises(ConfigurationError, match="cannot be sent to a process"):
        played(collector)


# ------------------------------------------------------------------------ images of any size


class Showing(gym.Env[Any, str]):
    """Shows in each episode the next image, and ends after one turn."""

    def __init__(self, *images: Image) -> None:
        self._images = iter(images)

    @override
    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        message = Message("user", ("look", next(self._images)))
        return None, {
            "step": StepResult((message,), (), TurnRequest()),
            "aborted": "",
            "truncated_by": "",
        }

    @override
    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return None, 1.0, True, False, {"step": StepResult(), "aborted": "", "truncated_by": ""}


class Looking(ByMember):
    """Reads every pixel, as a model does."""

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        (image,) = (each for message in session.messages for each in message.images)
        return Reply.of_text(image.sha256)


def test_image_too_large_to_decode_aborts_and_is_not_tried_again(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.png"
    PIL.Image.new("1", (10_000, 9_000)).save(bomb)  # 90 million pixels in a few kilobytes
    images = (Image.from_file(bomb), Image.from_pixels(np.zeros((1, 1, 3), np.uint8)))
    collector = Collector(partial(Showing, *images), Looking(), retries=3)
    large, small = played(collector, 2)
    assert large.failure is not None
    assert (large.failure.source, large.failure.name) == ("data", "ImageError")
    reason = large.failure.reason
    assert "at most 89,478,485 pixels are decoded" in reason
    assert small.status == "terminated"
    assert collector.stats.take()["retries"] == 0


@pytest.mark.slow
def test_large_image_comes_through_from_another_process() -> None:
    pixels = np.arange(3000 * 2000 * 3, dtype=np.uint32).astype(np.uint8).reshape(3000, 2000, 3)
    executor = ProcessExecutor()
    make = partial(_sized, 3000, 2000)
    (episode,) = played(Collector(make, Looking(), executor=executor), 1)
    assert episode.turns[0].text == Image.from_pixels(pixels).sha256


def _sized(height: int, width: int) -> gym.Env[Any, str]:
    size = height * width * 3
    pixels = np.arange(size, dtype=np.uint32).astype(np.uint8).reshape(height, width, 3)
    return Showing(Image.from_pixels(pixels))


# ---------------------------------------------------------------------------- policies


@pytest.mark.parametrize(
    ("error", "name"),
    [(PolicyError("no engine"), "PolicyError"), (ServiceError("engine", "away"), "engine")],
)
def test_engine_that_fails_is_asked_again(error: Exception, name: str) -> None:
    policy = ByMember([ADD, error], again=[ADD, ANSWER])
    collector = Collector(toy.make, policy, retries=1)
    (episode,) = played(collector, 1)
    assert episode.status == "terminated"
    assert collector.stats.take()[f"aborted/{name}"] == 1


def test_dead_engine_is_put_right_once_for_all_whom_it_failed() -> None:
    revived: list[int] = []

    async def revive() -> None:
        await asyncio.sleep(0)
        revived.append(1)

    policy = ByMember(*[[PolicyError("dead")] for _ in range(6)], again=[ANSWER])
    collector = Collector(toy.make, policy, retries=1, revive=revive)
    episodes = played(collector, 6)
    assert {episode.status for episode in episodes} == {"terminated"}
    assert revived == [1]


def test_engine_that_cannot_be_put_right_aborts() -> None:
    async def revive() -> None:
        raise PolicyError("no memory")

    collector = Collector(toy.make, ByMember([PolicyError("dead")]), retries=1, revive=revive)
    (episode,) = played(collector, 1)
    assert episode.failure == Failure("policy", "PolicyError", "dead")


# ---------------------------------------------------------- one result per place, in order


class Stub(gym.Env[Any, str]):
    """Raises in `reset` a fixed number of times for each seed; the seed selects the exception."""

    left: ClassVar[Counter[int]] = Counter()
    errors: ClassVar[tuple[type[Exception] | None, ...]] = (None, RuntimeError, DataError, None)

    @override
    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[Any, dict[str, Any]]:
        assert seed is not None
        error = self.errors[seed % 4]
        if error is not None and self.left[seed] > 0:
            self.left[seed] -= 1
            raise error("trouble")
        request = TurnRequest() if seed % 2 == 0 else None
        started = StepResult((), (), request, truncated_by="" if request else "x")
        return None, {"step": started, "aborted": "", "truncated_by": started.truncated_by}

    @override
    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return None, 1.0, True, False, {"step": StepResult(), "aborted": "", "truncated_by": ""}


class Shuffling(Policy[Session]):
    """Replies with the empty text after a random number of turns of the event loop."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        for _ in range(self.rng.integers(5)):
            await asyncio.sleep(0)
        return Reply.of_text("")


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=12, unique=True),
    st.integers(1, 4),
    st.integers(0, 2),
    st.integers(0, 100),
)
def test_places_are_answered_once_and_in_order(
    given_places: list[tuple[int, int]], concurrency: int, retries: int, seed: int
) -> None:
    Stub.left = Counter(dict.fromkeys(range(8), 2))
    places = [
        EpisodeSpec(number, group, index) for index, (number, group) in enumerate(given_places)
    ]
    ended: list[tuple[int, int, int]] = []
    collector = Collector(
        Stub, Shuffling(seed), concurrency=concurrency, executor=InlineExecutor(), retries=retries
    )
    episodes = collector.episodes(
        places, lambda each: ended.append((each.seed, each.group, each.member))
    )
    collector.close()
    told = [(place.seed, place.group, place.member) for place in places]
    assert [(each.seed, each.group, each.member) for each in episodes] == told
    assert sorted(ended) == sorted(told)
    counts = collector.stats.take()
    assert counts.get("episodes", 0) == len(places)
    aborted = [each for each in episodes if each.status == "aborted"]
    assert {name_of(each) for each in aborted} <= {"RuntimeError", "DataError"}
    assert counts.get("aborted/DataError", 0) == sum(name_of(e) == "DataError" for e in aborted)


@pytest.fixture(autouse=True)
def _no_gate_stays_closed() -> Iterator[None]:
    yield
    for gate in OPENED.values():
        gate.set()
