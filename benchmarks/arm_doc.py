"""Measures oracle episodes of `visenv/ArmDoc-v0`: milliseconds, and memory over many episodes.

    python benchmarks/arm_doc.py
    python benchmarks/arm_doc.py --memory 10000 --preset tiny

An episode consists of the overview of a generated report, a query or a page by number, and the
verdict. Each document is played twice in a row: cold, when it is drawn and rendered for the first
time, and warm, as for the other members of a group. The baseline in the same run draws the report,
renders as many pages and pastes them with pypdfium2 and Pillow only: without environment, search or
cache.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import platform
import statistics
import time
from importlib.metadata import version
from typing import Any

import gymnasium as gym
import PIL.Image
import pypdfium2

import visenv  # noqa: F401 - registers the environments
from benchmarks.memory import memory_mib
from visenv.registration import load
from visenv.rollout import EpisodeSpec, play
from visenv.worlds.reports.drawing import draw_report
from visenv.worlds.reports.report import write_report

BOUND = 150.0
"""Milliseconds, on one core."""


def episode(env: gym.Env[Any, str], policy: Any, seed: int) -> float:
    """Play an episode; return its processor time in milliseconds."""
    start = time.process_time()
    done = asyncio.run(play(env, policy, EpisodeSpec(seed)))
    assert done.reward == 1.5, (done.reward, done.reason, done.failure)
    return 1000 * (time.process_time() - start)


def plain(seed: int) -> float:
    """Draw a report, render all pages small and five large, paste them; return the milliseconds."""
    start = time.process_time()
    document = pypdfium2.PdfDocument(io.BytesIO(draw_report(write_report(seed))))
    small = [page.render(scale=375 / 842).to_pil() for page in document]
    large = [document[k].render(scale=1120 / 842).to_pil() for k in range(min(5, len(document)))]
    for pages in (small, large):
        whole = PIL.Image.new("RGB", (sum(page.width for page in pages), pages[0].height))
        left = 0
        for page in pages:
            whole.paste(page, (left, 0))
            left += page.width
    document.close()
    return 1000 * (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=60, help="documents to time")
    parser.add_argument("--memory", type=int, default=0, help="episodes of the memory test")
    parser.add_argument("--preset", default="train", help="preset of the memory test")
    arguments = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in ("pypdfium2", "reportlab"))
    print(f"python {platform.python_version()}, {versions}, load {os.getloadavg()[0]:.2f}")
    env = gym.make("visenv/ArmDoc-v0")
    policy = load("policy", "oracle")()
    episode(env, policy, 0)  # imports
    times = [
        (episode(env, policy, seed), episode(env, policy, seed), plain(seed))
        for seed in range(1, arguments.episodes + 1)
    ]
    cold, warm, bare = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"oracle episode, warm: {warm:6.1f} ms of one core, median (bound {BOUND:.0f})")
    print(f"oracle episode, cold: {cold:6.1f} ms; largest {max(each[0] for each in times):.0f}")
    print(f"pypdfium2 and Pillow: {bare:6.1f} ms; cold / bare = {cold / bare:.2f}")
    env = gym.make("visenv/ArmDoc-v0", preset=arguments.preset)
    for number in range(1, arguments.memory + 1):
        episode(env, policy, number)
        if number in (100, 1000) or number % 2500 == 0:
            print(
                f"after {number:6} episodes ({arguments.preset}): {memory_mib():.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
