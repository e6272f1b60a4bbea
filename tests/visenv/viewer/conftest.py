"""Makes the files of a training run with the real library, and episodes by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from visenv.episodes import write_episodes
from visenv.makers import env_maker, make_policy
from visenv.rollout import Collector
from visenv.types import Answered, Episode, Event, Image, Message, ToolCalled, Turn, TurnTaken

if TYPE_CHECKING:
    from playwright.sync_api import Page

MakeEpisode = Callable[..., Episode]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder ``runs/<name>`` as the recipe writes it: phases, evaluations, results."""
    folder = tmp_path_factory.mktemp("runs") / "zoom_tiny"
    _play("oracle", range(3), 1, folder / "warm-up" / "episodes" / "step_000004.jsonl")
    _play("random", range(4), 2, folder / "rl" / "episodes" / "step_000002.jsonl")
    _play("oracle", range(4), 2, folder / "rl" / "episodes" / "step_000004.jsonl")
    _play("random", range(50, 55), 1, folder / "evaluation" / "before-SFT" / "scenes.jsonl")
    _play("oracle", range(50, 55), 1, folder / "evaluation" / "after-GRPO" / "scenes.jsonl")
    _log(folder / "warm-up", lambda step: {"loss": 3 / step, "learning_rate": 0.002})
    _log(folder / "rl", lambda step: {"reward": 1 + step / 4, "loss": -0.01, "kl": step / 1000})
    scores = {"before SFT": (0.0, 0.1, None), "after GRPO": (0.75, 1.9, 0.8)}
    rows = [
        {"": label, "accuracy": accuracy, "reward": reward, "hit": hit}
        for label, (accuracy, reward, hit) in scores.items()
    ]
    results = {"rows": rows, "seconds": {"warm-up": 12.5, "rl": 61.0}}
    (folder / "results.json").write_text(json.dumps(results))
    return folder


def _play(policy: str, seeds: range, size: int, path: Path) -> None:
    collector = Collector(env_maker("ZoomVQA-v0", ["preset=tiny"]), make_policy(policy))
    groups = collector.groups(seeds, size)
    collector.close()
    write_episodes(path, [episode for group in groups for episode in group])


def _log(phase: Path, metrics: Callable[[int], dict[str, float]]) -> None:
    lines = [json.dumps({"step": step, **metrics(step)}) for step in range(1, 5)]
    (phase / "metrics.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def grounded() -> dict[str, Episode]:
    """Return the oracle's episodes about an image and about a video, with points and spans."""
    episodes = {}
    for name in ("ArgosImage", "ArgosVideo"):
        collector = Collector(env_maker(f"{name}-v0", []), make_policy("oracle"))
        [[episodes[name]]] = collector.groups([0])
        collector.close()
    return episodes


@pytest.fixture(scope="session")
def make_episode() -> MakeEpisode:
    """Return a function that makes one-turn episodes that zoom to [10, 20, 50, 40] of 100 x 60."""
    view = Image.from_pixels(np.full((60, 100, 3), 90, np.uint8))
    crop = Image.from_pixels(np.full((20, 40, 3), 200, np.uint8))
    detail = {
        "image": "input_image",
        "keypoint": [30, 30],
        "shown_box": [10, 20, 50, 40],
        "box": [40, 80, 200, 160],
    }

    def make(
        text: str = "<answer>seven</answer>",
        reward: float = 1.0,
        accuracy: float | None = 1.0,
        sample_id: str = "sample",
        zoomed: bool = True,
        **fields: Any,
    ) -> Episode:
        zoom = ToolCalled(0, "zoom", {"keypoint": [30, 30]}, True, "", ("tool_result_1",), detail)
        first: tuple[Event, ...] = (TurnTaken(0, "look", None), *([zoom] if zoomed else []))
        asked = "Read the sign.\n<image_name> input_image </image_name>\n"
        opening = Message("user", (asked, view, "What does it say?"))
        result = Message("user", ("tool_result_1:\n", crop))
        turns = (
            Turn((opening,), "look", 0.0, first, "stop"),
            Turn((result,), text, reward, (TurnTaken(1, text, None), Answered(1, text)), "stop"),
        )
        given = {
            "terms": {"vqa": reward},
            "metrics": {} if accuracy is None else {"accuracy": accuracy},
            "question": "What does it say?",
            "answers": ("seven",),
            "status": "terminated",
            "kind": "text",
            "seed": 7,
            "group": 0,
            "member": 0,
        }
        return Episode("visenv/Test-v0", sample_id, turns=turns, **{**given, **fields})

    return make


class Opened(NamedTuple):
    """Holds a page in the browser, its requests, and its error messages."""

    page: Page
    requests: list[str]
    complaints: list[str]


@pytest.fixture(scope="module")
def opened(
    chromium: Path, run_folder: Path, grounded: dict[str, Episode]
) -> Iterator[Callable[..., Opened]]:
    """Yield a function that opens files in headless Chromium.

    Playwright keeps an event loop running in this thread, so episodes are played before it starts,
    and it ends with the module.
    """
    with ExitStack() as stack:
        context = stack.enter_context(_context(chromium))

        def open_file(path: Path, link: str = "", **size: Any) -> Opened:
            page = context.new_page()
            if size:
                page.set_viewport_size(size)
            found = Opened(page, [], [])
            page.on("request", lambda request: found.requests.append(request.url))
            page.on("pageerror", lambda error: found.complaints.append(str(error)))
            page.on("console", lambda message: found.complaints.append(message.text))
            page.goto(path.resolve().as_uri() + link)
            return found

        yield open_file


@contextmanager
def _context(chromium: Path) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    quiet = ("background-networking", "component-update", "sync")
    arguments = ["--disable-gpu", "--no-first-run", *(f"--disable-{each}" for each in quiet)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        context = browser.new_context()
        context.set_default_timeout(120_000)  # a page may wait long for a CPU core
        yield context
        browser.close()
