"""Measures episodes per second with slow tools: the Collector and lock-step loops, same engine.

    python benchmarks/rollout.py [--policy vllm]

Episodes have 1 to 8 turns of log-normal length, each followed by a tool call of log-normal latency:
most take 20 ms, one in a hundred a second. The same episodes, with equal tokens and latencies, are
played in three ways, in turn:

- Collector: each episode continues as soon as its own reply or its own tool result is available;
- lock step: as in TRL's `GRPOTrainer._tool_call_loop`: one batch of turns, which waits for the
  slowest, then the tools one after another, then the next batch;
- lock step, tools at once: more favorable than TRL: a batch of turns, then all tools at once in
  threads.

Engines: a simulated one that gives each turn a token every few milliseconds, for any number of
    turns, as a GPU below its limit does; and the tiny model on this machine's CPU, with
    transformers or vLLM. Busy is the share of the time in which the engine had a turn to sample.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from typing_extensions import override

import visenv  # noqa: F401 - registers the environments
from visenv.policy import Policy, Session
from visenv.registration import load
from visenv.rollout import Collector, EpisodeSpec, ThreadExecutor
from visenv.rollout.stats import ConcurrencyGauge
from visenv.types import Image, Message, Reply, Sampling, StepResult, TurnRequest

EPISODES = 64
TURNS = 8
MEDIAN_LATENCY, P99_LATENCY = 0.020, 1.0
MEDIAN_TOKENS, P99_TOKENS = 24, 96
TOKEN_SECONDS = 0.010
ROUNDS = 3
# If vLLM's CPU build reads a prompt in two parts and requests have seeds, it crashes (0.31: a CPU's
# generator has no offset to reset), so that all prompts must fit into one part.
OPTIONS = {"kv_cache_memory_bytes": 256 * 2**20, "max_num_batched_tokens": 2**15}
VLLM = {"options": OPTIONS, "max_images": TURNS}
SPREAD = 2.326  # standard deviations from the median to the 99th percentile


class Plan(NamedTuple):
    """Describes an episode: the tokens of each turn, and the seconds of the tool call after it."""

    tokens: list[int]
    latencies: list[float]

    @classmethod
    def of(cls, seed: int) -> Plan:
        rng = np.random.default_rng(seed)
        turns = int(rng.integers(1, TURNS + 1))

        def draw(median: float, p99: float) -> list[float]:
            return list(median * np.exp(np.log(p99 / median) / SPREAD * rng.normal(size=turns)))

        tokens = [max(round(each), 1) for each in draw(MEDIAN_TOKENS, P99_TOKENS)]
        return cls(tokens, draw(MEDIAN_LATENCY, P99_LATENCY))


class Errand(gym.Env[Any, str]):
    """Plays the plan of its seed.

    Each tool returns an image, and the last answer ends the episode.
    """

    @override
    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[Any, dict[str, Any]]:
        assert seed is not None
        self._seed, self._turn = seed, 0
        self._plan = Plan.of(seed)
        return None, self._info()

    @override
    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(self._plan.latencies[self._turn])
        self._turn += 1
        return None, 1.0, self._turn == len(self._plan.tokens), False, self._info()

    def _info(self) -> dict[str, Any]:
        record = StepResult()
        if self._turn < len(self._plan.tokens):
            pixels = np.full((56, 56, 3), (self._seed + self._turn) % 256, np.uint8)
            shown = Message("user", ("What is this?", Image.from_pixels(pixels)))
            record = StepResult((shown,), (), TurnRequest(max_tokens=self._plan.tokens[self._turn]))
        return {"step": record, "aborted": "", "truncated_by": ""}


class Simulated(Policy[Session]):
    """Simulates an engine without limit: each turn gets a token every `TOKEN_SECONDS`."""

    @override
    def open(self, seed: int) -> Session:
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        tokens = request.max_tokens or 1
        await asyncio.sleep(tokens * TOKEN_SECONDS)
        return Reply("", np.zeros(tokens, np.int32), np.zeros(tokens, np.float32))


class Measured(NamedTuple):
    seconds: float
    busy: float
    tokens: int


# --------------------------------------------------------------------------- the three ways


def by_collector(policy: Policy[Any], seeds: range) -> Measured:
    collector = Collector(Errand, policy, concurrency=len(seeds), executor=ThreadExecutor())
    start = time.perf_counter()
    episodes = collector.episodes([EpisodeSpec(seed) for seed in seeds])
    seconds = time.perf_counter() - start
    assert all(episode.status == "terminated" for episode in episodes), episodes[0].failure
    report = collector.stats.take()
    collector.close()
    tokens = round(report["tokens_per_second"] * report["episodes"] / report["episodes_per_second"])
    return Measured(seconds, report["engine_busy"], tokens)


def by_lock_step(policy: Policy[Any], seeds: range, *, at_once: bool) -> Measured:
    gauge = ConcurrencyGauge()
    start = time.perf_counter()
    with ThreadPoolExecutor(len(seeds)) as threads:
        tools = threads.map if at_once else map
        tokens = asyncio.run(lock_step(policy, seeds, gauge, tools))
    seconds = time.perf_counter() - start
    return Measured(seconds, gauge.busy / seconds, tokens)


async def lock_step(policy: Policy[Any], seeds: range, gauge: ConcurrencyGauge, tools: Any) -> int:
    """Run TRL's loop, except that the conversation is not read again for each turn."""
    envs = [Errand() for _ in seeds]
    records = [env.reset(seed=seed)[1]["step"] for env, seed in zip(envs, seeds, strict=True)]
    own = [int(np.random.SeedSequence([seed, 0]).generate_state(1)[0]) for seed in seeds]
    sessions = [policy.open(seed) for seed in own]
    active = list(range(len(envs)))
    tokens = 0

    async def turn(index: int) -> Reply:
        record = records[index]
        sessions[index].observe(record.messages)
        sampling = Sampling(1.0, 512, own[index])
        reply: Reply = await policy.respond(sessions[index], record.request, sampling)
        return reply

    def step(index: int, reply: Reply) -> StepResult:
        record: StepResult = envs[index].step(reply.text)[-1]["step"]
        return record

    while active:
        with gauge:
            replies = await asyncio.gather(*(turn(index) for index in active))
        tokens += sum(len(reply.token_ids) for reply in replies)
        for index, record in zip(active, list(tools(step, active, replies)), strict=True):
            records[index] = record
        active = [index for index in active if records[index].request is not None]
    return tokens


# ---------------------------------------------------------------------------------- measuring

WAYS: dict[str, Callable[[Policy[Any], range], Measured]] = {
    "Collector": by_collector,
    "lock step (TRL)": partial(by_lock_step, at_once=False),
    "lock step, tools at once": partial(by_lock_step, at_once=True),
}


def compare(engine: str, policy: Policy[Any]) -> None:
    rounds = []
    for number in range(ROUNDS):
        seeds = range(1000 * number, 1000 * number + EPISODES)
        rounds.append({way: play(policy, seeds) for way, play in WAYS.items()})
    print(f"{engine}:")
    for way in WAYS:
        speed = statistics.median(EPISODES / each[way].seconds for each in rounds)
        busy = statistics.median(each[way].busy for each in rounds)
        tokens = statistics.median(each[way].tokens / each[way].seconds for each in rounds)
        ratio = statistics.median(each[way].seconds / each["Collector"].seconds for each in rounds)
        print(
            f"  {way:26} {speed:7.2f} episodes/s  {tokens:8.0f} tokens/s  "
            f"engine busy {busy:6.1%}   Collector is {ratio:.2f} times as fast"
        )


def tiny(name: str, folder: Path, options: dict[str, Any]) -> Policy[Any]:
    load("model", "tiny")(folder, lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny"), episodes=16)
    policy: Policy[Any] = load("policy", name)(folder, max_batch=EPISODES, **options)
    return policy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--policy", default="transformers", choices=["transformers", "vllm"])
    name = parser.parse_args().policy
    plans = [Plan.of(seed) for seed in range(EPISODES)]
    turns = [len(plan.tokens) for plan in plans]
    tokens = sum(sum(plan.tokens) for plan in plans)
    seconds = sum(sum(plan.latencies) for plan in plans)
    print(
        f"python {platform.python_version()}; {EPISODES} episodes at once, {ROUNDS} rounds; in the "
        f"first {sum(turns)} turns, at most {tokens} tokens (median {MEDIAN_TOKENS}, p99 "
        f"{P99_TOKENS}), {seconds:.1f} s of tools (median {MEDIAN_LATENCY * 1000:.0f} ms, p99 "
        f"{P99_LATENCY:.0f} s), an image of 56x56 a turn"
    )
    compare(f"simulated engine, {TOKEN_SECONDS * 1000:.0f} ms a token", Simulated())
    options: dict[str, Any] = {"threads": 1} if name == "transformers" else VLLM
    with tempfile.TemporaryDirectory() as folder:
        policy = tiny(name, Path(folder) / "tiny", options)
        compare(f"tiny model on the CPU, {name} {import_module(name).__version__}", policy)
        policy.close()


if __name__ == "__main__":
    main()
