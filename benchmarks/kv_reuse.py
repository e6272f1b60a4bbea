"""Measures the benefit of keeping keys and values between the turns of an episode.

The same episodes (an image and a question in every turn, a fixed number of sampled tokens) are
played in three ways in one run: by `TransformersPolicy`; by the same policy, which is reset before
every turn, so that it reads the whole conversation again; and by `model.generate` of transformers,
which always reads it again. Each way is timed several times in turn, and the best time counts. CPU
seconds are those of this process, which depend little on other load of the machine.

    python benchmarks/kv_reuse.py --episodes 64 --turns 4
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
import transformers
import tyro

import visenv  # noqa: F401 - registers the environments
from visenv.policies.tokens.qwen_vl import require_qwen_vl
from visenv.policies.transformers import (
    TokenSession,
    TransformersPolicy,
    build_tiny,
    collect_texts,
)
from visenv.types import Image, Message, Sampling, TurnRequest

QUESTION = "\nWhat colour are the stripes on the sign?"


class Cost(NamedTuple):
    wall: float
    cpu: float


class Workload(NamedTuple):
    episodes: int
    turns: int
    tokens: int
    side: int


def shown(work: Workload, episode: int, turn: int) -> Image:
    rng = np.random.default_rng([episode, turn])
    return Image.from_pixels(rng.integers(0, 256, (work.side, work.side, 3), dtype=np.uint8))


def play(policy: TransformersPolicy, work: Workload, *, forget: bool) -> None:
    """Play all episodes concurrently with the policy."""

    async def episode(seed: int) -> None:
        session: TokenSession = policy.open(seed)
        for turn in range(work.turns):
            session.observe([Message("user", (shown(work, seed, turn), QUESTION))])
            if forget:
                session.stream.memory = None
            await policy.respond(session, TurnRequest(), Sampling(1.0, work.tokens))

    async def all_episodes() -> None:
        await asyncio.gather(*map(episode, range(work.episodes)))

    asyncio.run(all_episodes())


def generate(folder: Path, work: Workload) -> Callable[[], None]:
    """Return a function that plays the same conversations with stock transformers, padded left."""
    policy = TransformersPolicy(folder)  # only for tokenizer, template and image processor
    codec = policy.codec
    template, vocabulary = codec.template, codec.vocabulary
    encoder = require_qwen_vl(codec.family).images
    model: Any = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    suppressed = np.flatnonzero(codec.banned).tolist()

    def show(stream: list[int], image: Image, turn: int) -> None:
        ended = turn > 0 and stream[-1] == template.end_id
        said = [Message("user", (image, QUESTION))]
        length = encoder.span(image, 0, template.image_id).length
        for token in template.increment(said, "", turn > 0, ended).token_ids:
            stream += [token] * (length if token == template.image_id else 1)

    def say(streams: list[list[int]], images: list[list[Image]]) -> None:
        width = max(map(len, streams))
        ids = torch.tensor([[template.end_id] * (width - len(one)) + one for one in streams])
        mask = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in streams])
        patches = encoder.encode([image for own in images for image in own])
        generated = model.generate(
            input_ids=ids,
            attention_mask=mask,
            mm_token_type_ids=(ids == template.image_id).long(),
            pixel_values=torch.cat([one.values for one in patches]),
            image_grid_thw=torch.tensor([one.grid for one in patches]),
            do_sample=True,
            top_k=0,
            max_new_tokens=work.tokens,
            suppress_tokens=suppressed,
        )
        for stream, row in zip(streams, generated[:, width:].tolist(), strict=True):
            ends = [at for at, token in enumerate(row) if not vocabulary.bytes[token]]
            stream.extend([*row[: ends[0]], template.end_id] if ends else row)

    def run() -> None:
        torch.manual_seed(0)
        streams: list[list[int]] = [[] for _ in range(work.episodes)]
        images: list[list[Image]] = [[] for _ in range(work.episodes)]
        for turn in range(work.turns):
            for episode, stream in enumerate(streams):
                images[episode].append(shown(work, episode, turn))
                show(stream, images[episode][-1], turn)
            say(streams, images)

    return run


def timed(run: Callable[[], None]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def main(
    episodes: int = 64,
    turns: int = 4,
    tokens: int = 24,
    side: int = 64,
    repeats: int = 3,
    threads: int = 1,
) -> None:
    """Play in all three ways; print episodes and tokens per second, and the ratios."""
    torch.set_num_threads(threads)
    work = Workload(episodes, turns, tokens, side)
    with tempfile.TemporaryDirectory() as name:
        texts = collect_texts(lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny"), episodes=16)
        folder = build_tiny(Path(name), texts)
        policy = TransformersPolicy(folder, max_batch=episodes)
        ways = {
            "keys and values kept": lambda: play(policy, work, forget=False),
            "read anew every turn": lambda: play(policy, work, forget=True),
            "transformers generate": generate(folder, work),
        }
        costs: dict[str, list[Cost]] = {way: [] for way in ways}
        for _ in range(repeats + 1):  # the first round warms up
            for way, run in ways.items():
                costs[way].append(timed(run))
    best = {
        way: Cost(min(c.wall for c in own[1:]), min(c.cpu for c in own[1:]))
        for way, own in costs.items()
    }
    ours = best["keys and values kept"]
    print(f"{episodes} episodes, {turns} turns, {tokens} tokens and one {side} px image in each")
    for way, cost in best.items():
        per_second = f"{episodes / cost.wall:7.1f} episodes/s"
        per_second += f"{episodes * turns * tokens / cost.wall:8.0f} tokens/s"
        ratios = f"wall {cost.wall / ours.wall:.2f} x, CPU seconds {cost.cpu / ours.cpu:.2f} x ours"
        print(f"{way:22}{per_second}   {ratios}")


if __name__ == "__main__":
    tyro.cli(main)
