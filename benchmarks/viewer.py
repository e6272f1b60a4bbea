"""Measures the speed of the report page with many episodes, in headless Chromium.

    python benchmarks/viewer.py                      # 20,000 episodes, the limits of the issue
    python benchmarks/viewer.py --episodes 2000

Episodes of ZoomVQA are played, and repeated with different samples, answers, rewards and turns
until there are enough. Then the page is written, and opened from its file several times:

- **first view**: from the start of the navigation until the first page of rows has been painted;
- **a filter, a sort**: from the input until the visible rows have been painted. The texts of the
  turns have been loaded before, in the background after the first view; that time is also printed.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from visenv.episodes import write_episodes
from visenv.makers import env_maker, make_policy
from visenv.rollout import Collector
from visenv.types import Answered, Episode
from visenv.viewer import write_report

GROUP_SIZE = 8
WORDS = ["look", "sign", "stripes", "crop", "left", "right", "corner", "orange", "shape", "read"]

FIRST_VIEW = """
const wait = () => document.querySelector('#list .row')
  ? requestAnimationFrame(() => setTimeout(() => { window.firstView = performance.now(); }))
  : requestAnimationFrame(wait);
requestAnimationFrame(wait);
"""

TIMED = """
([name, value]) => new Promise((resolve) => {
  const start = performance.now();
  if (name === 'sort') [...document.querySelectorAll('#list th button')].find((each) => each.textContent === value).click();
  else {
    const field = document.querySelector(`#filters [name="${name}"]`);
    field.value = value;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
})
"""  # noqa: E501

ACTIONS = (
    ("outcome", "right"),
    ("tool", "zoom"),
    ("event", "Malformed"),
    ("low", "0.5"),
    ("text", "orange corner"),
    ("text", "words that nobody wrote"),
    ("sort", "Reward"),
    ("sort", "Answer"),
)


def episodes(count: int) -> Iterator[Episode]:
    """Yield episodes in groups of one sample, each with different texts."""
    collectors = [
        Collector(env_maker("ZoomVQA-v0", ["preset=tiny"]), make_policy(name))
        for name in ("oracle", "random")
    ]
    played = [each for one in collectors for [each] in one.groups(range(16))]
    for collector in collectors:
        collector.close()
    rng = np.random.default_rng(0)
    for number in range(count):
        group, member = divmod(number, GROUP_SIZE)
        source = played[int(rng.integers(len(played)))]
        thought = " ".join(rng.choice(WORDS, 90))
        turns = tuple(
            replace(turn, text=f"{turn.text} {thought} {number}", reward=float(rng.random()))
            for turn in source.turns
        )
        answered = Answered(len(turns) - 1, f"{rng.choice(WORDS)} {number}")
        turns = (*turns[:-1], replace(turns[-1], events=(*turns[-1].events, answered)))
        yield replace(
            source,
            sample_id=f"scene-{group}",
            seed=group,
            group=group,
            member=member,
            question=f"What colour are the stripes on sign {group}?",
            turns=turns,
            segments=(),
        )


def measured(report: Path, chromium: Path, rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of the first view, of the texts, and of each action, by name."""
    from playwright.sync_api import sync_playwright

    times: dict[str, list[float]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--disable-gpu"])
        for _ in range(rounds):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.add_init_script(FIRST_VIEW)
            page.goto(f"{report.resolve().as_uri()}#/episodes")
            wait_for(page, "window.firstView")
            add(times, "first view", page.evaluate("window.firstView"))
            wait_for(page, "textsAreThere()")
            add(times, "all texts are loaded", page.evaluate("performance.now()"))
            for action in ACTIONS:
                add(times, f"{action[0]}: {action[1]}", page.evaluate(TIMED, list(action)))
                page.evaluate("document.querySelector('#filters').reset()")
                page.wait_for_timeout(150)
            page.close()
        browser.close()
    return times


def wait_for(page: Any, condition: str) -> None:
    """Wait for a condition; the page's policy forbids playwright's own method, which uses eval."""
    while not page.evaluate(condition):
        time.sleep(0.01)


def add(times: dict[str, list[float]], name: str, value: Any) -> None:
    times.setdefault(name, []).append(float(value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    settings = parser.parse_args()
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise SystemExit("Chromium is missing: make chromium")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        write_episodes(folder / "episodes.jsonl", episodes(settings.episodes))
        start = time.perf_counter()
        report = write_report(folder)
        written = time.perf_counter() - start
        beside = sum(path.stat().st_size for path in (folder / "report").iterdir())
        print(f"{settings.episodes} episodes, {platform.machine()}, {settings.rounds} rounds")
        print(f"written in {written:.1f} s: the page has {report.stat().st_size / 1e6:.1f} MB, ")
        print(f"the parts beside it {beside / 1e6:.1f} MB")
        print(f"{'milliseconds':<34} median    most")
        for name, values in measured(report, Path(found), settings.rounds).items():
            print(f"{name:<34} {statistics.median(values):6.0f}  {max(values):6.0f}")


if __name__ == "__main__":
    main()
