"""The page in headless Chromium: opened from a file, filtered, an episode unfolded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from visenv.episodes import read_episodes, write_episodes
from visenv.records import UnknownRecord
from visenv.types import Episode, Failure, Image, ToolCalled, Video
from visenv.verifier import Referred
from visenv.viewer import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.component("chromium")

MakeEpisode = Callable[..., Episode]
Open = Callable[[Path], Any]

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<!--<script>",
    "\ud800 half a pair, \u2028 and \x00 \x1b[31m",
    "/*script*/ /*data*/ ${1} `",
    '"],"',
)


@pytest.fixture(scope="module")
def report(opened: Open, run_folder: Path) -> Any:
    """The report of the run, opened once."""
    return opened(write_report(run_folder))


@pytest.fixture
def run(report: Any) -> Iterator[Page]:
    """The open report, nothing filtered or unfolded."""
    page: Page = report.page
    page.locator("button[type=reset]").click()
    page.locator("#list .row").nth(28).wait_for()
    yield page
    assert_quiet(report)


def assert_quiet(found: Any) -> None:
    """Nothing was complained of on the console, and nothing asked for but files."""
    assert found.complaints == []
    assert found.requests
    assert [url for url in found.requests if not url.startswith("file://")] == []


def rows(page: Page) -> list[list[str]]:
    """The cells of the table of episodes."""
    texts = "rows => rows.map(row => [...row.children].map(cell => cell.innerText))"
    cells: list[list[str]] = page.locator("#list .row").evaluate_all(texts)
    return cells


def choose(page: Page, **values: str) -> None:
    for name, value in values.items():
        field = page.locator(f"#filters [name={name}]")
        if name in ("file", "outcome"):
            field.select_option(value)
        else:
            field.fill(value)


def unfold(page: Page, row: int = 0) -> Locator:
    page.locator("#list .row").nth(row).click()
    return page.locator(".detail").first


def played(path: Path) -> list[Episode]:
    return list(read_episodes(path))


def test_shows_results_curves_and_every_episode(run: Page, run_folder: Path) -> None:
    assert run.locator("h1").inner_text() == "zoom_tiny"
    assert run.locator("#summary").inner_text() == "8 steps logged, 29 episodes saved."
    cells = [row.locator("td").all_inner_texts() for row in run.locator("#results tbody tr").all()]
    assert cells == [
        ["before SFT", "0.000", "0.100", "–"],
        ["after GRPO", "0.750", "1.900", "0.800"],
    ]
    assert run.locator("h3").all_inner_texts() == [
        "warm-up 4 steps, 13 s",
        "rl 4 steps, 61 s",
    ]
    assert len(rows(run)) == 29


def test_a_curve_has_a_point_for_each_step_and_rises_where_the_values_do(run: Page) -> None:
    line = run.locator("[data-curve=reward] .raw").get_attribute("points") or ""
    points = [tuple(map(float, point.split(","))) for point in line.split()]
    # Steps 1 to 4 lie evenly from 40 to 330; 1.25, 1.5, 1.75, 2 rise: y falls by equal parts.
    assert [x for x, _ in points] == pytest.approx([40, 136.7, 233.3, 330], abs=0.1)
    falls = [one[1] - other[1] for one, other in pairwise(points)]
    assert falls == pytest.approx([falls[0]] * 3, abs=0.11)
    assert falls[0] > 20


def test_the_other_curves_unfold(run: Page) -> None:
    assert run.locator("[data-curve=kl]").count() == 0
    run.locator("details", has_text="1 more").nth(1).locator("summary").click()
    assert run.locator("[data-curve=kl] figcaption span").inner_text() == "0.0040"


def test_filters_by_outcome(run: Page, run_folder: Path) -> None:
    files = sorted(run_folder.glob("*/episodes/*.jsonl")) + sorted(run_folder.glob("eval*/*.jsonl"))
    episodes = [episode for path in files for episode in played(path)]
    done = [episode for episode in episodes if episode.status == "terminated"]
    right = sum(episode.metrics["accuracy"] >= 0.5 for episode in done)
    expected = {
        "right": right,
        "wrong": len(done) - right,
        "truncated": len(episodes) - len(done),
    }
    assert min(expected.values()) > 0
    for outcome, count in expected.items():
        choose(run, outcome=outcome)
        assert [row[-1] for row in rows(run)] == [outcome] * count
        assert run.locator("#count").inner_text() == f"{count} of 29"


def test_filters_by_reward_file_and_text(run: Page) -> None:
    everything = [float(row[6]) for row in rows(run)]
    choose(run, low="0.5", high="2.05")
    assert [float(row[6]) for row in rows(run)] == [r for r in everything if 0.5 <= r <= 2.05]
    choose(run, low="", high="", file="warm-up/step_000004")
    assert [row[0] for row in rows(run)] == ["warm-up/step_000004"] * 3
    choose(run, text="LOOK CLOSER")
    assert len(rows(run)) == 3
    choose(run, text="words that nobody wrote")
    assert rows(run) == []
    assert run.locator("#none").is_visible()
    run.locator("button[type=reset]").click()
    run.locator("#list .row").nth(28).wait_for()


def test_an_episode_unfolds_turn_by_turn_with_its_images(run: Page, run_folder: Path) -> None:
    choose(run, file="evaluation/after-GRPO")
    episode = played(run_folder / "evaluation" / "after-GRPO.jsonl")[0]

    detail = unfold(run)

    turns = detail.locator(".bubble.policy pre").all_inner_texts()
    assert turns == [turn.text for turn in episode.turns]
    assert detail.locator(".prefix").all_inner_texts() == [t.request.prefill for t in episode.turns]
    assert detail.locator(".events li > b").all_inner_texts() == ["ToolCalled", "Answered"]
    assert detail.locator(".picture code").all_inner_texts() == ["input_image", "tool_result_1"]
    facts = detail.locator("aside").inner_text()
    assert all(name in facts for name in (*episode.terms, *episode.metrics, "answers"))
    for image in detail.locator("img").all():
        image.scroll_into_view_if_needed()
        image.evaluate("image => image.decode()")
        assert image.evaluate("image => image.naturalWidth") == 96
    run.locator("#list .row").first.press("Enter")
    assert run.locator(".detail").count() == 0


def test_the_boxes_lie_on_the_source_image_where_they_were_cut(run: Page, run_folder: Path) -> None:
    choose(run, file="evaluation/after-GRPO")
    episode = played(run_folder / "evaluation" / "after-GRPO.jsonl")[1]
    (call,) = [event for event in episode.events if isinstance(event, ToolCalled)]
    left, top, right, bottom = call.detail["shown_box"]

    detail = unfold(run, 1)

    source = detail.locator(".picture").first
    box = source.locator("rect.zoom")
    assert [box.get_attribute(name) for name in ("x", "y", "width", "height")] == [
        str(left),
        str(top),
        str(right - left),
        str(bottom - top),
    ]
    # On the screen: 96 view pixels are as wide as the image is drawn.
    on_image = source.locator("img").bounding_box()
    drawn = box.bounding_box()
    assert on_image
    assert drawn
    scale = on_image["width"] / 96
    assert drawn["x"] - on_image["x"] == pytest.approx(left * scale, abs=1.5)
    assert drawn["y"] - on_image["y"] == pytest.approx(top * scale, abs=1.5)
    assert drawn["width"] == pytest.approx((right - left) * scale, abs=3)
    # The oracle zooms onto the target: the truth lies inside, and is drawn in its own colour.
    assert source.locator("figcaption").inner_text().split("\n")[-1].endswith("detail box")
    for truth in source.locator("rect.truth").all():
        inner = truth.bounding_box()
        assert inner
        assert drawn["x"] - 2 <= inner["x"]
        assert inner["x"] + inner["width"] <= drawn["x"] + drawn["width"] + 2
    assert source.locator("rect.truth").count() == 2
    assert detail.locator(".picture").nth(1).locator("rect").count() == 0


@pytest.fixture
def page_of(opened: Open, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Writes episodes to a folder of their own and opens its report."""
    pages = []

    def show(*episodes: Episode, metrics: str = "") -> Page:
        write_episodes(tmp_path / "episodes.jsonl", episodes)
        (tmp_path / "metrics.jsonl").write_text(metrics)
        found = opened(write_report(tmp_path))
        pages.append(found)
        page: Page = found.page
        return page

    yield show
    for found in pages:
        assert_quiet(found)
        found.page.close()


def test_what_a_policy_or_a_data_set_wrote_is_only_ever_text(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    def hostile(text: str) -> Episode:
        truth = UnknownRecord(text, {text: [text, {text: text}]})
        words: dict[str, Any] = {"question": text, "answers": (text,), "ground_truth": truth}
        return make_episode(text, **words, terms={text: 1.0}, sample_id=text)

    page = page_of(*map(hostile, HOSTILE))
    for number, text in enumerate(HOSTILE):
        detail = unfold(page, number)
        turn = detail.locator(".bubble.policy pre").nth(1)
        units = len(text.encode("utf-16-le", "surrogatepass")) // 2  # as JavaScript counts
        assert turn.evaluate("pre => pre.textContent.length") == units
        assert detail.locator("img").count() == 2
        page.locator("#list .row").nth(number).click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("script").count() == 2


def test_points_lie_on_the_masks_of_what_they_name(
    page_of: Callable[..., Page], grounded: dict[str, Episode]
) -> None:
    episode = grounded["ArgosImage"]
    (referred,) = [event for event in episode.events if isinstance(event, Referred)]
    picture = unfold(page_of(episode)).locator(".picture")
    points, masks = picture.locator("circle.point.hit"), picture.locator("path.mask")
    assert points.count() == len(referred.points) > 0
    assert masks.count() == len({point.label for point in referred.points})
    on_image = picture.locator("img").bounding_box()
    assert on_image
    scale = on_image["width"] / referred.native_size[0]
    for number, point in enumerate(referred.points):
        box = points.nth(number).bounding_box()
        assert box
        assert box["x"] + box["width"] / 2 - on_image["x"] == pytest.approx(point.x * scale, abs=2)
        assert box["y"] + box["height"] / 2 - on_image["y"] == pytest.approx(point.y * scale, abs=2)
    assert all(
        point.label in picture.locator("figcaption").inner_text() for point in referred.points
    )


def test_the_frames_of_a_video_stand_under_a_bar_with_its_events(
    page_of: Callable[..., Page], grounded: dict[str, Episode]
) -> None:
    episode = grounded["ArgosVideo"]
    (referred,) = [event for event in episode.events if isinstance(event, Referred)]
    film = unfold(page_of(episode)).locator(".film")
    count = len(episode.videos[0].frames)
    names = film.locator(".picture code").all_inner_texts()
    assert names == [f"frame {number}" for number in range(1, count + 1)]
    ticks = film.locator(".ticks").bounding_box()
    assert ticks
    for number, span in enumerate(referred.spans):
        said = film.locator(".track i.hit").nth(number)
        assert said.get_attribute("title") == (
            f"frames {span.start_frame} to {span.end_frame}: {span.description}"
        )
        bar = said.bounding_box()
        assert bar
        assert span.start_frame
        assert span.end_frame
        step = ticks["width"] / count
        left, width = (span.start_frame - 1) * step, (span.end_frame - span.start_frame + 1) * step
        assert bar["x"] - ticks["x"] == pytest.approx(left, abs=2)
        assert bar["width"] == pytest.approx(width, abs=2)
    assert film.locator(".track i.truth").count() == len(episode.ground_truth.events)
    frames = [point.frame for point in referred.points]
    for number, picture in enumerate(film.locator(".picture").all(), start=1):
        assert picture.locator("circle.hit").count() == frames.count(number)


def test_rewards_that_are_not_finite_say_so_and_fit_no_range(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    page = page_of(make_episode(reward=float("nan")), make_episode(reward=-0.5))
    assert [row[6] for row in rows(page)] == ["not finite", "-0.500"]
    choose(page, low="-1")
    assert [row[6] for row in rows(page)] == ["-0.500"]


def test_each_way_to_end_has_its_outcome(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    page = page_of(
        make_episode(accuracy=0.5),
        make_episode(accuracy=0.4),
        make_episode(accuracy=None),
        make_episode(status="truncated", reason="turns"),
        make_episode(reward=0.0, status="aborted", failure=Failure("service", "judge", "no reply")),
    )
    outcomes = [row[-1] for row in rows(page)]
    assert outcomes == ["right", "wrong", "finished", "truncated", "aborted"]
    assert "aborted: judge: no reply" in unfold(page, 4).locator("aside").inner_text()


def test_many_episodes_come_in_portions_and_the_selection_is_stated(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    page = page_of(*(make_episode(sample_id=str(index)) for index in range(5000)))
    assert (
        "5000 episodes saved; this page holds an even selection of 600"
        in page.locator("#summary").inner_text()
    )
    assert len(rows(page)) == 100
    page.locator("#more").click()
    assert page.locator("#list .row").count() == 200
    assert page.locator("#count").inner_text() == "600 of 600"


def test_a_run_without_episodes_shows_its_curves_alone(
    page_of: Callable[..., Page], tmp_path: Path
) -> None:
    lines = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": None}, {"step": 3, "loss": 2.0}]
    page = page_of(metrics="".join(json.dumps(line) + "\n" for line in lines))
    assert page.locator("#episodes").is_hidden()
    assert page.locator("#results").is_hidden()
    line = page.locator("[data-curve=loss] .raw").get_attribute("points") or ""
    assert len(line.split()) == 2
    assert "NaN" not in line


def test_hidden_frames_play_under_a_slider(
    opened: Open, make_episode: MakeEpisode, tmp_path: Path
) -> None:
    episode = make_episode()
    pictures = [Image.from_pixels(np.full((4, 4, 3), level, np.uint8)) for level in (10, 20, 30)]
    video = Video(tuple(pictures), (0.05, 0.10, 0.15))
    detail = {"actions": [[0.5, 0.0], [-1.0, 0.25], [0.0, 1.0]], "goals": {"bowl on plate": True}}
    call = ToolCalled(1, "act", {}, True, "", (), detail, 3)
    last = replace(episode.turns[1], events=(call,), hidden_frames=(video,))
    write_episodes(tmp_path / "episodes.jsonl", [replace(episode, turns=(episode.turns[0], last))])
    found = opened(write_report(tmp_path))
    page = found.page
    unfold(page)
    strip = page.locator(".hidden-frames")
    strip.wait_for()
    assert strip.locator("code").text_content() == "0.15 s  +0.00 +1.00"
    assert strip.locator(".goal.met").is_visible()
    strip.locator("input").fill("0")
    assert strip.locator("code").text_content() == "0.05 s  +0.50 +0.00"
    assert not strip.locator(".goal.met").is_visible()
    source = strip.locator("img").get_attribute("src")
    assert source == f"images/{pictures[0].sha256}.png"
    assert_quiet(found)
