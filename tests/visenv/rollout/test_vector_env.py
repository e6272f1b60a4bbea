"""Tests the pool with thread workers: subsets, no lock step, failures that affect no neighbor.

No time is measured: slow calls wait at a gate that the test opens.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from tests.waiting import LIMIT
from visenv.env import EpisodeLimits
from visenv.errors import ConfigurationError, EpisodeOverError, VisenvError
from visenv.registration import register
from visenv.rollout import EnvResult, EpisodePool, ResetRequest
from visenv.rollout.vector_requests import nothing_new
from visenv.testing import toy
from visenv.testing.toy import OPENED, REACHED, SumTruth
from visenv.types import Aborted, Image, Sample, StepResult

ADD = "<tool>\nname: add\namount: 3\n</tool>"
ERROR = "<tool>\nname: trouble\nkind: error\n</tool>"
SERVICE = "<tool>\nname: trouble\nkind: service\n</tool>"
ANSWER = "<answer>0</answer>"


def make(count: int = 3, **options: Any) -> EpisodePool:
    pool = gym.make_vec(toy.register(), num_envs=count, trouble=True, **options)
    assert isinstance(pool, EpisodePool)
    return pool


@pytest.fixture
def pool() -> Iterator[EpisodePool]:
    made = make()
    yield made
    made.close()


@pytest.fixture
def gate() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield name
    OPENED[name].set()


def waiting(gate: str) -> str:
    return f"<tool>\nname: trouble\nkind: wait\ngate: {gate!r}\n</tool>".replace("'", '"')


def total(result: EnvResult) -> str:
    return result.observation["text"]


def test_make_vec_makes_the_pool(pool: EpisodePool) -> None:
    assert pool.num_envs == 3
    assert pool.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert pool.spec is not None
    assert pool.spec.id == toy.ENV_ID
    assert pool.spec.kwargs["trouble"] is True


def test_group_is_one_seed_for_all(pool: EpisodePool) -> None:
    observation, infos = pool.reset(seed=[7, 7, 7])
    assert pool.observation_space.contains(observation)
    assert len(set(observation["text"])) == 1
    assert observation["images"] == ((), (), ())
    alone, _ = toy.make().reset(seed=7)
    assert observation["text"][0] == alone["text"]
    assert isinstance(infos["step"][2], StepResult)
    assert list(infos["aborted"]) == ["", "", ""]
    assert infos["_step"].all()


@pytest.mark.parametrize(
    "seed",
    [
        np.array([7, 7, 7]),
        np.array([7, 7, 7], np.uint8),
        (7, 7, 7),
        [np.int64(7)] * 3,
        np.full((3, 3), 7)[0],
    ],
    ids=["array", "uint8", "tuple", "numpy integers", "row"],
)
def test_reset_takes_one_seed_for_each_environment(pool: EpisodePool, seed: Any) -> None:
    observation, _ = pool.reset(seed=seed)
    assert observation["text"] == (toy.make().reset(seed=7)[0]["text"],) * 3
    results = pool.reset_at([0, 1, 2], seeds=seed)
    assert {total(result) for result in results.values()} == set(observation["text"])


def test_reset_takes_a_numpy_integer_as_one_seed(pool: EpisodePool) -> None:
    for seed in (7, np.int64(7)):
        texts = pool.reset(seed=seed)[0]["text"]  # type: ignore[arg-type]
        assert len(set(texts)) == 3
        group = pool.reset_at([0, 1, 2], seeds=seed)  # type: ignore[arg-type]
        assert {total(result) for result in group.values()} == {toy.make().reset(seed=7)[0]["text"]}
    assert texts == pool.reset(seed=7)[0]["text"]


@pytest.mark.parametrize(
    "seed",
    [
        np.array([7, 7]),
        np.full((3, 1), 7),
        np.array(7.5),
        np.array([7.0, 7.0, 7.0]),
        [7, 7],
        [7, 7, "7"],
        [7, 7, True],
        "777",
        b"777",
        {0: 7, 1: 7, 2: 7},
        7.0,
        True,
    ],
)
def test_reset_refuses_other_seeds(pool: EpisodePool, seed: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"3 environments need one seed, or 3 seeds"):
        pool.reset(seed=seed)
    with pytest.raises(ConfigurationError, match=r"3 environments need one seed, or 3 seeds"):
        pool.reset_at([0, 1, 2], seeds=seed)


def test_seed_spreads_to_unrelated_ones(pool: EpisodePool) -> None:
    texts = [pool.reset(seed=seed)[0]["text"] for seed in (0, 1, 0)]
    assert texts[0] == texts[2]
    assert len({*texts[0], *texts[1]}) == 6, "neighbouring seeds share no task"


def test_full_step_is_batched(pool: EpisodePool) -> None:
    pool.reset(seed=[7, 7, 7])
    observation, rewards, terminations, truncations, infos = pool.step([ADD, ANSWER, SERVICE])
    assert pool.observation_space.contains(observation)
    assert observation["text"] == ("<result>\ntotal 3\n</result>", "", "")
    assert rewards.dtype == np.float64
    assert terminations.dtype == truncations.dtype == np.bool_
    assert rewards.tolist() == [0.0, 0.0, 0.0]
    assert terminations.tolist() == [False, True, False]
    assert truncations.tolist() == [False, False, True]
    assert infos["aborted"].tolist() == ["", "", "search: the server is down"]


def test_finished_environment_waits_for_its_reset(pool: EpisodePool) -> None:
    pool.reset(seed=[7, 7, 7])
    pool.step([ANSWER, ADD, ADD])
    with pytest.raises(EpisodeOverError, match="Environment 0 waits for a reset"):
        pool.step([ADD, ADD, ADD])
    observation, rewards, terminations, truncations, infos = pool.step([None, ADD, ADD])
    assert observation["text"][:2] == ("", "<result>\ntotal 6\n</result>")
    assert [rewards[0], terminations[0], truncations[0], infos["_step"][0]] == [0] * 4
    options = {"reset_mask": np.array([True, False, False])}
    observation, infos = pool.reset(seed=[9, None, None], options=options)
    assert observation["text"][0].startswith("Add ")
    assert observation["text"][1:] == ("", "")
    assert infos["_step"].tolist() == [True, False, False]
    assert list(options) == ["reset_mask"], "the caller's options are left alone"
    assert "total 9" in pool.step([ADD, ADD, ADD])[0]["text"][1]


def test_subset_of_any_kind_is_stepped(pool: EpisodePool) -> None:
    started = pool.reset_at([2, 0], seeds=[4, 5])
    assert set(started) == {0, 2}
    assert total(started[2]) == toy.make().reset(seed=4)[0]["text"]
    assert not started[0].over
    assert "total 3" in total(pool.step_at({2: ADD})[2])
    assert "total 6" in total(pool.step_at({2: ADD, 0: ADD})[2])
    assert pool.step_at({}) == {}
    with pytest.raises(EpisodeOverError, match="Environment 1"):
        pool.step_at({1: ADD})


def test_slow_environment_does_not_delay_others(pool: EpisodePool, gate: str) -> None:
    pool.reset(seed=0)
    pool.submit({0: waiting(gate), 1: ADD})
    assert REACHED[gate].wait(LIMIT)
    # Environment 0 stays inside its tool until the gate opens below.
    assert set(pool.ready()) == {1}
    for turn in range(2, 4):
        assert f"total {3 * turn}" in total(pool.step_at({1: ADD})[1])
    assert pool.step_at({2: ANSWER})[2].terminated
    assert set(pool.reset_at([2], 1)) == {2}
    assert pool.ready(timeout=0) == {}
    OPENED[gate].set()
    assert f"passed {gate}" in total(pool.ready()[0])


def test_results_that_arrive_while_others_are_awaited_are_kept(
    pool: EpisodePool, gate: str
) -> None:
    pool.reset(seed=0)
    pool.submit({0: ADD, 1: waiting(gate)})
    assert REACHED[gate].wait(LIMIT)
    pool.step_at({2: ADD})
    pool.submit({2: ResetRequest(seed=3)})
    OPENED[gate].set()
    results: dict[int, EnvResult] = {}
    while len(results) < 3:
        results |= pool.ready()
    assert "total 3" in total(results[0])
    assert "passed" in total(results[1])
    assert total(results[2]) == toy.make().reset(seed=3)[0]["text"]


def test_wait_without_a_submitted_step_is_refused(pool: EpisodePool) -> None:
    assert pool.ready() == {}


def test_exception_ends_its_own_episode_only(pool: EpisodePool) -> None:
    pool.reset(seed=[7, 7, 7])
    pool.step([ADD, ADD, ADD])
    results = pool.step_at({1: ERROR, 2: ADD})
    failed, other = results[1], results[2]
    assert (failed.reward, failed.terminated, failed.truncated) == (0.0, False, True)
    assert failed.observation == nothing_new()
    assert failed.info["aborted"] == "RuntimeError: a bug in a tool"
    record = failed.info["step"]
    assert record.events == (Aborted(1, "RuntimeError", "a bug in a tool"),)
    assert (record.request, failed.info.keys()) == (None, other.info.keys())
    assert "total 6" in total(other)
    assert "total 6" in total(pool.step_at({0: ADD})[0])
    with pytest.raises(EpisodeOverError, match="Environment 1"):
        pool.step_at({1: ADD})
    assert not pool.reset_at([1], 7)[1].over
    assert "total 3" in total(pool.step_at({1: ADD})[1])


def test_late_reply_is_never_taken_for_the_next(pool: EpisodePool, gate: str) -> None:
    pool.reset(seed=0)
    (old,) = (thread for thread in pool_threads() if thread.name == "visenv-pool-0")
    pool.timeout = 0.05  # only for the call that hangs
    pool.submit({0: waiting(gate)})
    pool.timeout = None
    late = pool.ready()[0]
    assert late.truncated
    assert late.info["aborted"] == "timeout: no reply within 0.05 s."
    assert late.info["step"].events == (Aborted(0, "timeout", "no reply within 0.05 s."),)
    pool.reset_at([0], 5)
    second = f"{gate} again"
    pool.submit({0: waiting(second)})
    OPENED[gate].set()
    old.join(LIMIT)  # its late reply has arrived, while the next call still runs
    assert not old.is_alive()
    assert pool.ready(timeout=0) == {}
    OPENED[second].set()
    assert f"passed {second}" in total(pool.ready()[0])


def test_timeout_counts_for_one_environment_only(pool: EpisodePool, gate: str) -> None:
    pool.reset(seed=0)
    pool.submit({1: waiting(gate)})
    pool.timeout = 0.05
    pool.submit({0: waiting(gate)})
    assert set(pool.ready()) == {0}
    OPENED[gate].set()
    assert "passed" in total(pool.ready()[1])


@pytest.mark.parametrize(
    ("requests", "error", "says"),
    [
        ({3: ADD}, ConfigurationError, "0 to 2, got 3"),
        ({-1: ResetRequest()}, ConfigurationError, "0 to 2, got -1"),
        ({0: b"x"}, TypeError, "a string, got bytes"),
        ({0: None}, TypeError, "a string, got NoneType"),
    ],
)
def test_request_that_is_invalid_sends_nothing(
    pool: EpisodePool, requests: Any, error: type[Exception], says: str
) -> None:
    pool.reset(seed=0)
    with pytest.raises(error, match=says):
        pool.submit({1: ADD, **requests})
    assert pool.ready(timeout=0) == {}
    assert "total 3" in total(pool.step_at({1: ADD})[1])


def test_result_must_be_taken_before_the_next_request(pool: EpisodePool) -> None:
    pool.reset(seed=0)
    pool.submit({0: ADD})
    with pytest.raises(ConfigurationError, match="result of environment 0 with ready"):
        pool.submit({0: ADD})
    pool.ready()
    pool.submit({0: ADD})


def test_refused_options_raise_and_leave_the_environments_in_place(pool: EpisodePool) -> None:
    with pytest.raises(ConfigurationError, match="procedural: pass a seed"):
        pool.reset(options={"index": 3})
    pool.submit({0: ResetRequest(options={"row": 3})})
    with pytest.raises(ConfigurationError, match="row"):
        pool.ready()
    with pytest.raises(EpisodeOverError):
        pool.step_at({0: ADD})
    assert not pool.reset_at([0])[0].over


def test_options_for_each(pool: EpisodePool) -> None:
    samples = [Sample(str(n), f"question {n}", ground_truth=SumTruth(add=(n, n))) for n in range(3)]
    observation, _ = pool.reset(options=[{"sample": sample} for sample in samples])
    assert observation["text"] == ("question 0", "question 1", "question 2")
    started = pool.reset_at([1, 2], options=[None, {"sample": samples[0]}])
    assert total(started[2]) == "question 0"
    with pytest.raises(ConfigurationError, match="need one seed, or 3 seeds"):
        pool.reset(seed=[1, 2])
    with pytest.raises(ConfigurationError, match="Expected 3 actions, got 1"):
        pool.step([ADD])


def test_statistics_are_right_on_top(pool: EpisodePool) -> None:
    counted = RecordEpisodeStatistics(pool)
    counted.reset(seed=[7, 7, 7])  # type: ignore[arg-type]
    numbers = toy.make().reset(seed=7)[0]["text"]
    first, second = map(int, re.findall(r"\d+", numbers))
    counted.step([ADD, ADD, ADD])
    *_, infos = counted.step([f"<answer>{first + second}</answer>", ADD, ADD])
    # 0.8 for the right total + 0.2 for a successful tool call, after two turns.
    assert infos["episode"]["r"][0] == pytest.approx(1.0)
    assert infos["episode"]["l"][0] == 2
    assert infos["_episode"].tolist() == [True, False, False]
    *_, infos = counted.step([None, ADD, ADD])
    assert "episode" not in infos, "one that waits is not counted twice"
    counted.reset(options={"reset_mask": np.array([True, False, False])})
    *_, infos = counted.step([ANSWER, ADD, ADD])
    # The first has played one turn of its new episode; the others reach their limit of four turns.
    assert infos["episode"]["l"].tolist() == [1, 4, 4]
    assert counted.episode_count == 4


def test_rendering_asks_everyone() -> None:
    pool = make(2, render_mode="ansi")
    pool.reset(seed=[1, 1])
    frames = pool.render()
    assert pool.render_mode == "ansi"
    assert len(frames) == 2
    assert frames[0].startswith("[user]\nAdd ")
    pool.submit({0: ADD})
    with pytest.raises(ConfigurationError, match="ready"):
        pool.render()
    pool.close()


def test_images_stay_arrays() -> None:
    pool = make(2)
    picture = Image.from_pixels(np.full((4, 5, 3), 7, np.uint8))
    shown, blank = Sample("s", "q", (picture, picture)), Sample("t", "q")
    observation, _ = pool.reset(options=[{"sample": shown}, {"sample": blank}])
    assert pool.observation_space.contains(observation)
    assert observation["text"] == ("q<image><image>", "q")
    assert [image.shape for image in observation["images"][0]] == [(4, 5, 3)] * 2
    assert observation["images"][1] == ()
    observation["images"][0][0][:] = 0
    assert observation["images"][0][1].min() == picture.pixels.min() == 7
    pool.close()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"num_envs": 0}, "num_envs must be at least 1"),
        ({"workers": "fibre"}, "no kind of worker called 'fibre'"),
        ({"turns": 0}, "at least 1 turn"),
        ({"render_mode": "human"}, "render_mode must be one of"),
    ],
)
def test_options_that_are_invalid_are_refused_immediately(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        gym.make_vec(toy.register(), **{"num_envs": 2, **options})


def test_environment_that_cannot_be_made_gives_the_reason() -> None:
    with pytest.raises(VisenvError, match="unexpected keyword argument 'color'"):
        gym.make_vec(toy.register(), num_envs=2, color="red")


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["thread", "process"])
def test_call_and_attributes_reach_every_environment(workers: str) -> None:
    pool = make(2, workers=workers)
    pool.reset(seed=[7, 7])
    pool.step_at({1: ADD})
    assert pool.get_attr("turn") == pool.call("turn") == (0, 1)
    assert pool.call("get_wrapper_attr", name="turn") == (0, 1)
    assert pool.call("get_wrapper_attr", "turns_left") == (4, 3)
    pool.set_attr("limits", EpisodeLimits(turns=1))
    assert [limits.turns for limits in pool.get_attr("limits")] == [1, 1]
    pool.set_attr("limits", [EpisodeLimits(turns=2), EpisodeLimits(turns=3)])
    _, _, _, truncated, infos = pool.step([ADD, ADD])
    assert infos["truncated_by"].tolist() == ["", ""]
    *_, truncated, infos = pool.step([ADD, ADD])
    assert truncated.tolist() == [True, True]
    with pytest.raises(ConfigurationError, match="need 2 values, got 3"):
        pool.set_attr("limits", [1, 2, 3])
    pool.close()


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["thread", "process"])
def test_call_that_fails_raises_with_its_traceback_and_keeps_the_environments(
    workers: str,
) -> None:
    pool = make(2, workers=workers)
    pool.reset(seed=[7, 7])
    pool.step_at({1: ADD})
    with pytest.raises(VisenvError, match=r"(?s)Environment 0 failed.*AttributeError.*no_such"):
        pool.get_attr("no_such")
    with pytest.raises(VisenvError, match=r"(?s)Environment 0 failed.*in random_answer"):
        pool.call("random_answer", None)
    assert "total 6" in total(pool.step_at({1: ADD})[1])
    pool.submit({0: ADD})
    with pytest.raises(ConfigurationError, match="ready"):
        pool.call("turn")
    pool.close()


def test_unexpected_exception_is_logged_with_its_traceback(
    pool: EpisodePool, caplog: pytest.LogCaptureFixture
) -> None:
    pool.reset(seed=0)
    pool.step_at({1: ERROR})
    (logged,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert logged.startswith("Environment 1 failed and is replaced: RuntimeError: a bug in a tool")
    assert 'raise RuntimeError("a bug in a tool")' in logged
    caplog.clear()
    pool.step_at({0: SERVICE})
    assert caplog.records == [], "a failure that is raised on purpose replaces no environment"


def test_wrapper_that_truncates_ends_the_episode() -> None:
    pool = make(2, max_episode_steps=1)
    pool.reset(seed=[7, 7])
    results = pool.step_at({0: ADD, 1: ANSWER})
    assert (results[0].terminated, results[0].truncated, results[0].over) == (False, True, True)
    assert results[1].terminated
    with pytest.raises(EpisodeOverError, match="Environment 0 waits for a reset"):
        pool.step_at({0: ADD})
    assert not pool.reset_at([0], 7)[0].over
    pool.close()


def test_environment_of_plain_gym_register_has_a_pool() -> None:
    env_id = "visenv-testing/Plain-v0"
    if env_id not in gym.registry:
        gym.register(env_id, "visenv.testing.toy:make")
    pool = EpisodePool(env_id, 2, turns=1)
    assert pool.reset(seed=[7, 7])[0]["text"] == (toy.make().reset(seed=7)[0]["text"],) * 2
    assert pool.step([ADD, ADD])[3].tolist() == [True, True]
    pool.close()


def test_register_takes_options_of_gymnasium() -> None:
    env_id = "visenv-testing/OneStep-v0"
    if env_id not in gym.registry:
        register(env_id, "visenv.testing.toy:make", max_episode_steps=1)
    pool = gym.make_vec(env_id, num_envs=1)
    assert isinstance(pool, EpisodePool)
    pool.reset(seed=[7])
    assert pool.step([ADD])[3].tolist() == [True]
    pool.close()


EARLIER: set[threading.Thread] = set()
"""Threads that the pools of other tests have left.

They are not compared by their numbers, which the system uses again.
"""


@pytest.fixture(autouse=True)
def earlier_threads() -> None:
    EARLIER.clear()
    EARLIER.update(threading.enumerate())


def pool_threads() -> list[threading.Thread]:
    return [
        each
        for each in threading.enumerate()
        if each.name.startswith("visenv-pool") and each not in EARLIER
    ]


def test_close_leaves_no_thread(gate: str) -> None:
    before = pool_threads()
    pool = make()
    pool.reset(seed=0)
    assert len(pool_threads()) == len(before) + 3
    pool.step_at({0: ERROR, 1: ADD})
    pool.close(grace=LIMIT)
    pool.close()
    assert pool_threads() == before
    with pytest.raises(EpisodeOverError, match="closed"):
        pool.reset(seed=0)


def test_close_leaves_a_hanging_thread_behind_which_then_ends(gate: str) -> None:
    pool = make(1)
    pool.reset(seed=0)
    pool.submit({0: waiting(gate)})
    assert REACHED[gate].wait(LIMIT)
    hanging = pool_threads()
    pool.close(grace=0.0)
    OPENED[gate].set()
    for thread in hanging:
        thread.join(LIMIT)
        assert not thread.is_alive()


def test_unregistered_name_is_no_entry_point() -> None:
    from visenv.rollout import vector_entry_points

    with pytest.raises(AttributeError, match="no attribute 'visenv/Nothing-v0'"):
        getattr(vector_entry_points, "visenv/Nothing-v0")
