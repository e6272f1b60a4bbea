"""Tests environments and engines as Ray actors, on a local Ray, against those in this process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest
from typing_extensions import override

from tests.visenv.rollout.time_limits import limit_only_calls_that_wait
from tests.waiting import LIMIT
from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import EnginePolicy, Session
from visenv.registration import load
from visenv.rollout import Collector, EpisodeSpec, InlineExecutor, Replicas
from visenv.scorers import Generate, Scorer, digest
from visenv.testing import toy
from visenv.types import (
    Failure,
    Image,
    ImageSpan,
    Message,
    PlaceholderRun,
    Reply,
    Sampling,
    Segment,
    StepResult,
    TurnRequest,
    TurnSpan,
)

pytestmark = [pytest.mark.component("ray"), pytest.mark.timeout(600)]

ADD = "<tool>\nname: add\namount: 3\n</tool>"
TROUBLE = "<tool>\nname: trouble\nkind: {}\n</tool>"
ANSWER = "<answer>3</answer>"


@pytest.fixture(scope="module")
def executor() -> Iterator[Any]:
    """Yield a function that makes executors on a Ray started for this file."""
    ray = pytest.importorskip("ray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of Ray about its next versions
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=100 * 2**20,
            _system_config={
                "memory_monitor_refresh_ms": 0,  # Ray kills no actor to free memory
                "worker_register_timeout_seconds": 600,  # and no actor that starts slowly
            },
        )
    # The actors cannot import this file, so its classes are pickled by value.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    from visenv.rollout.ray_executor import RayExecutor

    yield partial(RayExecutor, num_cpus=0.1)
    ray.shutdown()


def played(executor: Any, *turns: str, count: int = 2, **options: Any) -> Any:
    collector = Collector(
        partial(toy.make, trouble=True),
        load("policy", "scripted")(list(turns)),
        executor=executor,
        concurrency=2,
        **options,
    )
    episodes = collector.episodes([EpisodeSpec(7, 0, member) for member in range(count)])
    collector.close()
    return episodes, collector.stats.take()


def test_episodes_are_those_that_are_played_here(executor: Any) -> None:
    far, _ = played(executor(), ADD, ANSWER, count=4)
    here, _ = played(InlineExecutor(), ADD, ANSWER, count=4)
    assert far == here


def test_episodes_beyond_the_cpus_of_a_cluster_are_played_by_the_actors_that_have_one(
    executor: Any,
) -> None:
    # 2 CPUs allow two actors at a time. A wait for `start_timeout` would exceed the time limit of
    # the test.
    made = executor(num_cpus=1, start_timeout=3600.0)
    collector = Collector(
        toy.make, load("policy", "scripted")([ADD, ANSWER]), executor=made, concurrency=6
    )
    episodes = collector.episodes([EpisodeSpec(7, 0, member) for member in range(6)])
    assert [episode.failure for episode in episodes] == [None] * 6
    collector.close()


def test_actor_that_dies_is_replaced(executor: Any) -> None:
    ((episode,), counts) = played(executor(), ADD, TROUBLE.format("exit"), count=1)
    assert episode.failure.source == "worker"
    assert episode.failure.reason.startswith("the actor has ended")
    assert (episode.status, episode.turns[0].text) == ("aborted", ADD)
    assert counts["aborted/worker"] == 1


def test_actor_that_hangs_is_killed(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_only_calls_that_wait(monkeypatch)
    made = executor(timeout=0.2)
    ((episode,), _) = played(made, TROUBLE.format("wait"), count=1)
    assert episode.failure == Failure("timeout", "timeout", "act took longer than 0.2 s.")
    made.close(grace=LIMIT)
    assert not any(worker.alive for worker in made._workers)


def test_images_of_files_over_there_arrive_as_bytes(executor: Any, tmp_path: Path) -> None:
    from visenv.rollout.ray_executor import _sendable

    path = tmp_path / "there.png"
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    PIL.Image.fromarray(pixels).save(path)
    message = Message("user", ("look", Image.from_file(path)))
    (sent,) = _sendable(StepResult((message,))).messages
    path.unlink()
    assert np.array_equal(sent.images[0].pixels, pixels)
    assert sent.parts[0] == "look"


def test_environment_that_an_actor_cannot_make_gives_the_reason(executor: Any) -> None:
    collector = Collector(
        partial(gym.make, "visenv-testing/Nothing-v0"),
        load("policy", "scripted")([ANSWER]),
        executor=executor(),
    )
    (episode,) = collector.episodes([EpisodeSpec(0)])
    collector.close()
    assert episode.status == "aborted"
    assert episode.failure is not None
    assert episode.failure.name == "NamespaceNotFound"


# ------------------------------------------------------------------------------------ engines

PLACEHOLDER = 99


class ParrotSession(Session):
    """Holds the tokens of a conversation, as a model would: shown and sampled ones."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.tokens: list[int] = []
        self.turns: list[TurnSpan] = []
        self.images: list[ImageSpan] = []
        self.versions: dict[int, int] = {}

    @override
    def segments(self) -> tuple[Segment, ...]:
        sampled = np.isin(np.arange(len(self.tokens)), list(self.versions))
        versions = np.array([self.versions.get(k, 0) for k in range(len(self.tokens))], np.int32)
        return (
            Segment(
                token_ids=np.array(self.tokens, np.int32),
                loss_mask=sampled,
                logprobs=np.where(sampled, -0.5, 0.0).astype(np.float32),
                policy_version=versions,
                turns=tuple(self.turns),
                images=tuple(self.images),
                placeholder_ids=(PLACEHOLDER,),
                temperature=1.0,
                processor="parrot",
            ),
        )


class Parrot(EnginePolicy[ParrotSession]):
    """Replies with tokens of its seed and its weights; `max_tokens` selects other behavior."""

    def __init__(self) -> None:
        self.version = 0
        self.stale = False
        self.sum = 0.0
        self.endless = self.cancelled = 0

    @override
    def open(self, seed: int) -> ParrotSession:
        return ParrotSession(seed)

    @override
    async def respond(
        self, session: ParrotSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        if sampling.max_tokens == 1:
            raise PolicyError("The context of 1 token is full.")
        if sampling.max_tokens == 2:
            await self._wait_for_ever()
        if sampling.max_tokens == 4:
            return Reply.of_text(f"{self.endless} begun, {self.cancelled} cancelled")
        if sampling.max_tokens == 3:
            os._exit(1)
        for image in (each for message in session.messages for each in message.images):
            session.images.append(
                ImageSpan(image.sha256, (PlaceholderRun(len(session.tokens), 1),), PLACEHOLDER, 4)
            )
            session.tokens.append(PLACEHOLDER)
        start = len(session.tokens)
        session.tokens += [session.seed % 50, int(self.sum) % 50]
        session.versions |= {start: self.version, start + 1: self.version}
        session.turns.append(TurnSpan(len(session.turns), start, start + 2, "stop"))
        reply = Reply.of_text(ADD if len(session.turns) == 1 else ANSWER)
        session.said(reply)
        return reply

    async def _wait_for_ever(self) -> None:
        self.endless += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    @override
    def load(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        self.sum, self.stale = 0.0, True
        for name, weight in weights:
            if name == "unknown":
                raise PolicyError("There is no weight unknown.")
            self.sum += float(weight.sum())
        self.version, self.stale = version, False

    @override
    def sleep(self) -> None:
        self.stale = True

    @override
    def wake(self) -> None:
        pass


ENDLESS = -1


class Held(dict[int, Any]):
    """Holds the sessions of an engine; access to `ENDLESS` waits until a file is removed."""

    def __init__(self, sessions: dict[int, Any], barrier: Path) -> None:
        super().__init__(sessions)
        self.barrier = barrier

    @override
    def __getitem__(self, number: int) -> Any:
        while number == ENDLESS and self.barrier.exists():
            time.sleep(0.01)
        return super().__getitem__(number)


def hold_segments(actor: Any, barrier: Path) -> None:
    """Replace the sessions of an engine; runs in its actor."""
    actor._sessions = Held(actor._sessions, barrier)


@pytest.fixture(scope="module")
def engine(executor: Any) -> Iterator[Any]:
    from visenv.rollout.ray_engine import RayEngine

    made = RayEngine(Parrot, num_cpus=0.1, timeout=600.0)
    yield made
    made.close()


def weights(*names: str) -> Iterator[tuple[str, Any]]:
    torch = pytest.importorskip("torch")
    for name in names:
        yield name, torch.ones(100, 3)


def asked(engine: Any, max_tokens: int) -> Reply:
    session = engine.open(5)
    session.observe([Message("user", ("hello",))])
    reply: Reply = asyncio.run(engine.respond(session, TurnRequest(), Sampling(1.0, max_tokens, 5)))
    return reply


def test_engine_in_an_actor_samples_the_same_as_in_this_process(engine: Any) -> None:
    here = Parrot()
    for each in (here, engine):
        each.load(weights("a", "b"), version=3)
    assert (engine.version, engine.stale) == (3, False)
    played = []
    for policy in (here, Replicas([engine, engine])):
        collector = Collector(toy.make, policy)
        played.append(collector.groups(range(3), 2))
        collector.close()
    assert played[0] == played[1]
    (segment,) = played[1][0][0].segments
    assert segment.token_ids.tolist()[1] == 2 * 300 % 50
    assert set(segment.policy_version.tolist()) == {3}


def test_images_reach_the_engine(engine: Any, tmp_path: Path) -> None:
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    path = tmp_path / "here.png"
    PIL.Image.fromarray(pixels).save(path)
    session = engine.open(5)
    session.observe([Message("user", ("look", Image.from_file(path)))])
    path.unlink()
    asyncio.run(engine.respond(session, TurnRequest(), Sampling()))
    (segment,) = session.segments()
    assert segment.images[0].sha256 == Image.from_pixels(pixels).sha256


def test_refusal_of_the_engine_is_raised_here(engine: Any) -> None:
    with pytest.raises(PolicyError, match="The context of 1 token is full"):
        asked(engine, 1)
    with pytest.raises(PolicyError, match="no weight unknown"):
        engine.load(weights("a", "unknown", "b"), version=4)
    assert engine.stale
    engine.load(weights("a"), version=4)
    assert (engine.version, engine.stale) == (4, False)
    engine.sleep()
    assert engine.stale
    engine.wake()
    engine.load(weights("a"), version=5)


def test_cancelling_here_aborts_over_there(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        session = engine.open(5)
        turn = asyncio.create_task(engine.respond(session, TurnRequest(), Sampling(1.0, 2)))
        while await asyncio.to_thread(counted) != "1 begun, 0 cancelled":
            assert not turn.done()
        turn.cancel()
        await asyncio.wait({turn})
        assert turn.cancelled()

    def counted() -> str:
        return asked(engine, 4).text

    asyncio.run(run())
    while counted() != "1 begun, 1 cancelled":
        pass
    assert asked(engine, 9).text == ADD  # the engine still works
    monkeypatch.setattr(engine, "_timeout", 0.2)
    with pytest.raises(PolicyError, match=r"took longer than 0\.2 s"):
        asked(engine, 2)


def test_tokens_that_do_not_come_are_an_error_and_do_not_block_the_loop(
    engine: Any, tmp_path: Path
) -> None:
    async def fetch() -> None:
        session = engine.open(5)
        await engine.respond(session, TurnRequest(), Sampling())
        session.number = ENDLESS
        fetching = asyncio.create_task(session.fetch_segments())
        for _ in range(10):
            await asyncio.sleep(0)  # a blocked loop would not come here before the time limit
        assert not fetching.done()
        fetching.cancel()
        session._timeout = 0.2
        with pytest.raises(PolicyError, match=r"tokens of an episode took longer than 0\.2 s"):
            await session.fetch_segments()

    ray = pytest.importorskip("ray")
    barrier = tmp_path / "barrier"
    barrier.touch()
    ray.get(engine._actor.__ray_call__.remote(hold_segments, barrier))
    try:
        asyncio.run(fetch())
    finally:
        barrier.unlink()


def test_engine_that_ray_would_restart_by_itself_is_refused() -> None:
    from visenv.rollout.ray_engine import RayEngine

    with pytest.raises(ConfigurationError, match="max_restarts: an actor that Ray restarts"):
        RayEngine(Parrot, max_restarts=-1)


def test_engine_that_dies_comes_back_with_the_next_weights(engine: Any) -> None:
    with pytest.raises(PolicyError, match="actor has ended"):
        asked(engine, 3)
    assert engine.stale
    with pytest.raises(PolicyError, match="actor has ended"):
        asked(engine, 9)
    engine.load(weights("a"), version=6)
    assert (engine.version, engine.stale) == (6, False)
    assert asked(engine, 9).text == ADD


class Asker:
    """Builds a handle in its own process, as environments do from their options."""

    def __init__(self, file: str) -> None:
        self.scorer = Scorer("recorded", file=file)

    def ask(self) -> Any:
        return self.scorer.submit(Generate(())).result(LIMIT).value

    def close(self) -> None:
        """Do nothing."""


def test_scorers_of_an_actor_are_those_of_the_process_that_started_it(
    executor: Any, tmp_path: Path
) -> None:
    from visenv.rollout.ray_executor import RayEnvHost

    file = tmp_path / "replies.jsonl"
    row = {"digest": digest(Generate(())), "model": "m", "value": {"text": "yes"}}
    file.write_text(json.dumps(row) + "\n")
    scorer = Scorer("recorded", file=str(file))
    make: Any = partial(Asker, str(file))
    host = RayEnvHost(make, {"num_cpus": 0.1})
    assert host.open() is None
    assert host.call("ask", {}) == {"text": "yes"}
    assert scorer.counts().sent == 1  # the request was sent from this process
    host.close()
    scorer.close()
