"""Tests the shared instance of a scorer: batches, caches, joins, retries and limits."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.visenv.scorers.doubles import BATCHES, RELEASE, Echo
from visenv import background
from visenv.errors import ConfigurationError, ServiceError
from visenv.scorers import Embed, Scorer, Verdict, digest
from visenv.scorers.backend import ServiceLimits
from visenv.scorers.batching import loop
from visenv.scorers.services import resolve

MODEL = "tests.visenv.scorers.doubles:ModelDouble"
INVARIANT = "tests.visenv.scorers.doubles:InvariantDouble"


def all_of(futures: list[Future[Verdict]]) -> list[Any]:
    wait(futures)
    return [future.result(0).value for future in futures]


def held() -> threading.Event:
    """Block the loop of scorers until the event is set, so that requests arrive together."""
    release, holds = threading.Event(), threading.Event()

    async def hold() -> None:
        holds.set()
        release.wait(60)

    loop.submit(hold())
    assert holds.wait()
    return release


# ----------------------------------------------------------------------------------------- batches


def test_64_concurrent_requests_reach_a_backend_of_16_in_4_batches(remote: Any, tag: str) -> None:
    scorer = remote(seconds=0.2, max_delay=60.0)  # only full batches are sent
    with ThreadPoolExecutor(64) as episodes:
        futures = list(episodes.map(lambda number: scorer.submit(Echo(number)), range(64)))
    assert all_of(futures) == list(range(64))
    assert [len(batch) for batch in BATCHES[tag]] == [16] * 4
    assert sorted(number for batch in BATCHES[tag] for number in batch) == list(range(64))


def test_batch_that_is_not_full_leaves_after_the_delay(remote: Any, tag: str) -> None:
    assert remote(max_delay=0.01).submit(Echo(1)).result().value == 1
    assert BATCHES[tag] == [[1]]


def test_requests_that_come_while_the_backend_is_busy_leave_together(remote: Any, tag: str) -> None:
    scorer = remote(max_delay=0.0, seconds=0.05)
    release = held()
    futures = [scorer.submit(Echo(number)) for number in range(6)]
    release.set()
    assert all_of(futures) == list(range(6))
    assert BATCHES[tag][0] == [0]  # the first request is sent alone
    assert BATCHES[tag][1:] == [[1, 2, 3, 4, 5]]


def test_service_has_no_more_batches_in_flight_than_allowed(remote: Any) -> None:
    scorer = remote(max_batch_size=1, max_concurrency=3, seconds=0.01)
    all_of([scorer.submit(Echo(number)) for number in range(20)])
    assert resolve(scorer).backend.most_in_flight == 3  # type: ignore[attr-defined]


def test_equal_handles_share_one_instance_and_different_ones_do_not(remote: Any, tag: str) -> None:
    one, other = remote(retries=1), remote(retries=1)
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert resolve(one) is resolve(other)
    assert resolve(one) is not resolve(remote(retries=2))
    assert one != "x"
    one.submit(Echo("a")).result()
    other.submit(Echo("a")).result()
    assert BATCHES[tag] == [["a"]]


def test_score_works_in_several_event_loops_and_blocks_none(remote: Any, tag: str) -> None:
    scorer = remote(seconds=0.02)

    async def episode(number: int) -> Any:
        return (await scorer.score(Echo(number))).value

    async def several(start: int) -> list[Any]:
        return await asyncio.gather(*(episode(start + each) for each in range(4)))

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda start: asyncio.run(several(start)), (0, 10, 20)))
    assert found == [list(range(start, start + 4)) for start in (0, 10, 20)]


def test_scorer_can_be_asked_inside_a_running_event_loop(remote: Any) -> None:
    async def notebook_cell() -> Any:
        return background.run(remote().score(Echo("jupyter"))).value

    assert asyncio.run(notebook_cell()) == "jupyter"


def test_plain_code_on_the_background_loop_can_wait_for_a_scorer(remote: Any) -> None:
    scorer = remote()

    async def plain_term_beside_an_async_one() -> Any:
        return scorer.submit(Echo("x")).result().value  # blocks only that loop

    assert background.run(plain_term_beside_an_async_one()) == "x"


# ------------------------------------------------------------------------------------------ caches


def test_verdict_names_its_model_and_the_digest_of_the_request(remote: Any, tag: str) -> None:
    verdict = remote().submit(Echo("a")).result()
    assert verdict == ("a", f"model of {tag}", digest(Echo("a")))


def test_cache_hits_never_reach_the_backend(remote: Any, tag: str, tmp_path: Path) -> None:
    scorer = remote(cache_dir=tmp_path)
    first = scorer.submit(Echo("array:5")).result()
    again = scorer.submit(Echo("array:5")).result()
    assert again.value.tolist() == first.value.tolist() == [0, 1, 2, 3, 4]
    scorer.close()  # frees the cache in memory, and keeps the file
    third = scorer.submit(Echo("array:5")).result()
    assert (third.value.dtype, third.value.tolist()) == (np.float32, [0, 1, 2, 3, 4])
    assert third[1:] == first[1:]
    assert BATCHES[tag] == [["array:5"]]
    counts = scorer.counts()
    assert (counts.requests, counts.disk_hits, counts.sent) == (1, 1, 0)


def test_value_none_is_cached(remote: Any, tag: str, tmp_path: Path) -> None:
    for _ in range(2):
        scorer = remote(cache_dir=tmp_path)
        assert [scorer.submit(Echo(None)).result().value for _ in range(2)] == [None, None]
        scorer.close()
    assert BATCHES[tag] == [[None]]


def test_options_of_the_transport_share_a_cache_and_others_do_not(
    remote: Any, tag: str, tmp_path: Path
) -> None:
    for options in ({}, {"seconds": 0.001}, {"timeout": 9.0}):
        remote(cache_dir=tmp_path, **options).submit(Echo("a")).result()
    assert BATCHES[tag] == [["a"]]
    remote(cache_dir=tmp_path, deterministic=True).submit(Echo("a")).result()
    assert BATCHES[tag] == [["a"], ["a"]]
    other = Scorer("tests.visenv.scorers.doubles:RemoteDouble", tag=tag + "2", cache_dir=tmp_path)
    assert other.submit(Echo("a")).result().model == f"model of {tag}2"
    assert BATCHES[tag + "2"] == [["a"]]


def test_equal_requests_in_flight_are_sent_once(remote: Any, tag: str) -> None:
    scorer = remote(seconds=0.05)
    release = held()
    futures = [scorer.submit(Echo("same")) for _ in range(8)]
    release.set()
    assert all_of(futures) == ["same"] * 8
    assert BATCHES[tag] == [["same"]]
    assert scorer.counts().joined == 7


def test_callers_cannot_change_each_others_values(remote: Any) -> None:
    scorer = remote(seconds=0.02)
    release = held()
    futures = [scorer.submit(Echo({"a": [1]})) for _ in range(2)]
    release.set()
    one, other = all_of(futures)
    one["a"].append(2)
    assert other == {"a": [1]}
    third = scorer.submit(Echo({"a": [1]})).result().value
    assert third == {"a": [1]}
    third["a"].append(3)
    assert scorer.submit(Echo({"a": [1]})).result().value == {"a": [1]}


def test_memory_is_bounded(remote: Any, tag: str) -> None:
    scorer = remote(memory_bytes=5000)
    for number in (1000, 1001, 1000):  # the cache has no room for both arrays of 4 kB
        scorer.submit(Echo(f"array:{number}")).result()
    assert len(BATCHES[tag]) == 3
    assert scorer.submit(Echo("array:5000")).result().value.shape == (5000,)


def test_cancelling_one_of_two_that_wait_leaves_the_other_its_verdict(remote: Any) -> None:
    scorer = remote(seconds=0.05)
    release = held()
    one, other = scorer.submit(Echo("x")), scorer.submit(Echo("x"))
    release.set()
    one.cancel()
    assert other.result().value == "x"
    with pytest.raises(CancelledError):
        one.result()


# ---------------------------------------------------------------------------------------- failures


def test_transient_failures_are_retried(remote: Any, tag: str) -> None:
    assert remote(retries=2).submit(Echo("transient:2")).result().value == "transient:2"
    assert len(BATCHES[tag]) == 3


@pytest.mark.parametrize(
    ("content", "options", "reason", "sent"),
    [
        ("transient:9", {"retries": 1}, "no verdict in 2 attempts; the last: busy", 2),
        (
            "hang",
            {"timeout": 0.05},
            "no verdict in 1 attempts; the last: no answer within 0.05 s",
            1,
        ),
        ("refuse", {"retries": 3}, "not for you", 1),
        ("error", {"retries": 3}, "RuntimeError: a bug in the model", 1),
        ("nan", {"retries": 3}, "ValueError: a number that is not finite: nan", 1),
        ("short", {"retries": 3}, "0 values for 1 requests", 1),
    ],
)
def test_failures_become_service_errors_that_name_the_scorer(
    remote: Any, tag: str, content: str, options: dict[str, Any], reason: str, sent: int
) -> None:
    scorer = remote(**options)
    with pytest.raises(ServiceError) as caught:
        scorer.submit(Echo(content)).result()
    assert (
        caught.value.boundary == scorer.name == f"tests.visenv.scorers.doubles:RemoteDouble:{tag}"
    )
    assert caught.value.reason == reason
    assert len(BATCHES[tag]) == sent


def test_failures_are_not_cached(remote: Any, tag: str, tmp_path: Path) -> None:
    scorer = remote(cache_dir=tmp_path)
    with pytest.raises(ServiceError):
        scorer.submit(Echo("transient:1")).result()
    assert scorer.submit(Echo("transient:1")).result().value == "transient:1"


@pytest.mark.parametrize("bad", ["error", "refuse", "short"])
def test_request_that_fails_does_not_fail_the_rest_of_its_batch(
    remote: Any, tag: str, bad: str
) -> None:
    scorer = remote(max_delay=0.2)
    release = held()
    futures = [scorer.submit(Echo(content)) for content in ("a", bad, "b")]
    release.set()
    assert futures[0].result().value == "a"
    assert futures[2].result().value == "b"
    with pytest.raises(ServiceError):
        futures[1].result()
    assert BATCHES[tag] == [["a", bad, "b"], ["a"], [bad], ["b"]]


def test_model_that_hangs_fails_its_batch_and_answers_again_when_it_is_free(
    tag: str, tmp_path: Path
) -> None:
    scorer = Scorer(MODEL, folder=str(tmp_path), tag=tag, timeout=0.1)
    with pytest.raises(ServiceError, match=r"no answer within 0\.1 s"):
        scorer.submit(Echo("hang")).result()
    with pytest.raises(ServiceError, match="still computing a batch that timed out"):
        scorer.submit(Echo("a")).result()
    RELEASE.set()
    while True:  # the thread ends some time after the event
        try:
            value = scorer.submit(Echo("b")).result().value
        except ServiceError:
            continue
        break
    assert value["value"] == "b"


def test_model_that_cannot_be_loaded_is_a_service_error(tmp_path: Path) -> None:
    scorer = Scorer(MODEL, folder=str(tmp_path), tag="unloadable")
    with pytest.raises(ServiceError, match="RuntimeError: no weights"):
        scorer.submit(Echo("a")).result()


def test_request_that_the_backend_does_not_answer_is_refused(remote: Any) -> None:
    with pytest.raises(ConfigurationError, match="answers Echo, not Embed"):
        remote().submit(Embed("x")).result()


# ------------------------------------------------------------------------------------- rate limits


@pytest.mark.parametrize(
    ("limit", "passed"), [({"requests_per_minute": 3}, 3), ({"tokens_per_minute": 250}, 2)]
)
def test_rate_limits_hold_requests_back(
    remote: Any, tag: str, limit: dict[str, int], passed: int
) -> None:
    # Each request costs 100 tokens. The next one has to wait for 20 s or longer.
    scorer = remote(**limit)
    futures = [scorer.submit(Echo(number)) for number in range(5)]
    done = wait(futures[:passed]).done
    assert len(done) == passed
    background.run(asyncio.sleep(0.1))
    assert [future.done() for future in futures] == [True] * passed + [False] * (5 - passed)
    for future in futures:
        future.cancel()


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
@pytest.mark.parametrize("limit", [0, -1.0])
def test_rate_limit_that_lets_nothing_pass_is_refused(name: str, limit: float) -> None:
    with pytest.raises(ConfigurationError, match="above 0, or None"):
        ServiceLimits(**{name: limit})  # type: ignore[arg-type]


def test_request_above_the_token_limit_is_sent_all_the_same(remote: Any) -> None:
    assert remote(tokens_per_minute=10).submit(Echo("a")).result().value == "a"


# ------------------------------------------------------------------------------- deterministic mode


@pytest.mark.parametrize(
    ("backend", "deterministic", "batches"),
    [
        (MODEL, False, [["a", "b", "c"]]),
        (MODEL, True, [["a"], ["b"], ["c"]]),
        (INVARIANT, True, [["a", "b", "c"]]),
    ],
)
def test_deterministic_models_get_one_request_at_a_time_unless_they_need_not(
    backend: str, deterministic: bool, batches: list[list[str]], tag: str, tmp_path: Path
) -> None:
    options: Any = {"max_batch_size": 3, "max_delay": 60.0}  # only full batches are sent
    scorer = Scorer(backend, deterministic=deterministic, folder=str(tmp_path), tag=tag, **options)
    release = held()
    futures = [scorer.submit(Echo(content)) for content in "abc"]
    release.set()
    values = all_of(futures)
    assert BATCHES[tag] == batches
    assert {value["batch"] for value in values} == {len(batches[0])}
    assert len(list(tmp_path.iterdir())) == 1
    assert resolve(scorer).backend.deterministic is deterministic  # type: ignore[attr-defined]
