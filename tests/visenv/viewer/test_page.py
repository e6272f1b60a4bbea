"""Tests the page in headless Chromium: opened from a file, filtered, sorted, with its episodes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pytest

from visenv.episodes import read_episodes, write_episodes
from visenv.records import UnknownRecord
from visenv.types import (
    Episode,
    Failure,
    Image,
    Message,
    Segment,
    ToolCalled,
    TurnSpan,
    Video,
)
from visenv.verifier import Referred
from visenv.viewer import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.component("chromium")

MakeEpisode = Callable[..., Episode]
Open = Callable[..., Any]

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<!--<script>",
    "\ud800 half a pair, \u2028 and \x00 \x1b[31m",
    "/*script*/ /*data*/ ${1} `",
    '"],"',
)


@pytest.fixture(scope="module")
def written(run_folder: Path) -> Path:
    """Write the report of the run, and return its path."""
    return write_report(run_folder)


@pytest.fixture(scope="module")
def report(opened: Open, written: Path) -> Any:
    """Return the report of the run, opened once."""
    return opened(written)


@pytest.fixture
def run(report: Any) -> Iterator[Page]:
    """Yield the open report with the unfiltered list of episodes."""
    page: Page = report.page
    visit(page, "#/overview")
    visit(page, "#/episodes")
    page.locator("#list .row").nth(28).wait_for()
    yield page
    assert_quiet(report)


def assert_quiet(found: Any) -> None:
    """Check that the page reported no errors, and requested only files."""
    assert found.complaints == []
    assert found.requests
    assert [url for url in found.requests if not url.startswith("file://")] == []


def visit(page: Page, link: str) -> None:
    """Follow a link inside the report."""
    page.evaluate("link => { location.hash = link; }", link)


def cells(page: Page, column: str) -> list[str]:
    """Return a column of the table of episodes."""
    found: list[str] = page.locator(f"#list [data-column='{column}']").all_inner_texts()
    return found


def choose(page: Page, **values: str) -> None:
    for name, value in values.items():
        field = page.locator(f"#filters [name={name}]")
        if name in ("low", "high", "text"):
            field.fill(value)
        else:
            field.select_option(value)


def open_row(page: Page, row: int = 0) -> Locator:
    """Open an episode from the list."""
    page.locator("#list .row").nth(row).click()
    page.locator("#detail .verdict").wait_for()
    return page.locator("#detail")


def played(path: Path) -> list[Episode]:
    return list(read_episodes(path))


def test_overview_shows_facts_results_curves_and_saved_files(run: Page) -> None:
    visit(run, "#/overview")
    assert run.locator("#name").inner_text() == "zoom_tiny"
    facts = run.locator("#facts").inner_text().split("\n")
    assert facts[facts.index("steps") + 1] == "8"
    assert facts[facts.index("training time") + 1] == "73.5 s"
    found = [row.locator("td").all_inner_texts() for row in run.locator("#results tbody tr").all()]
    assert found == [
        ["before SFT", "0.000", "0.100", "–"],
        ["after GRPO", "0.750", "1.900", "0.800"],
    ]
    assert run.locator("h3").all_inner_texts() == ["warm-up 4 steps, 13 s", "rl 4 steps, 61 s"]
    saved = [row.locator("td").all_inner_texts() for row in run.locator("#saved tbody tr").all()]
    assert {row[0]: row[1] for row in saved}["rl/step_000002"] == "8"
    run.locator("#saved a", has_text="rl/step_000002").click()
    assert run.locator("#list .row").count() == 8


def test_curve_has_a_point_for_each_step_and_rises_where_the_values_do(run: Page) -> None:
    line = run.locator("[data-curve=reward] .raw").get_attribute("points") or ""
    points = [tuple(map(float, point.split(","))) for point in line.split()]
    # The steps 1 to 4 are evenly spaced from 40 to 330, and so are their values 1.25 to 2, so y
    # falls by equal parts.
    assert [x for x, _ in points] == pytest.approx([40, 136.7, 233.3, 330], abs=0.1)
    falls = [one[1] - other[1] for one, other in pairwise(points)]
    assert falls == pytest.approx([falls[0]] * 3, abs=0.11)
    assert falls[0] > 20


def test_curves_unfold(run: Page) -> None:
    visit(run, "#/overview")
    assert run.locator("[data-curve=kl]").count() == 0
    run.locator("#curves details", has_text="1 more").nth(1).locator("summary").click()
    assert run.locator("[data-curve=kl] figcaption span").inner_text() == "0.0040"


def test_filters_by_outcome(run: Page, run_folder: Path) -> None:
    files = sorted(run_folder.glob("*/episodes/*.jsonl"))
    files += sorted(run_folder.glob("evaluation/*/*.jsonl"))
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
        assert cells(run, "outcome") == [outcome] * count
        assert run.locator("#count").inner_text() == f"{count} of 29 episodes"


def test_filters_by_number_file_tool_and_text(run: Page) -> None:
    everything = [float(each) for each in cells(run, "reward")]
    choose(run, low="0.5", high="2.05")
    fits = [r for r in everything if 0.5 <= r <= 2.05]
    assert [float(each) for each in cells(run, "reward")] == fits
    choose(run, low="", high="", saved_in="warm-up/step_000004")
    assert cells(run, "saved_in") == ["warm-up/step_000004"] * 3
    choose(run, text="LOOK CLOSER")  # a word of the turns, which are in a file beside the page
    run.locator("#list .row").nth(2).wait_for()
    choose(run, text="words that nobody wrote")
    assert run.locator("#none").is_visible()
    choose(run, text="", saved_in="", tool="zoom")
    zoomed = run.locator("#list .row").count()
    choose(run, tool="", measure="metrics/zoomed", low="1")
    assert 0 < run.locator("#list .row").count() <= zoomed < 29
    run.locator("button[type=reset]").click()
    run.locator("#list .row").nth(28).wait_for()


def test_sorts_by_a_column_and_keeps_the_order_in_the_link(run: Page) -> None:
    everything = [float(each) for each in cells(run, "reward")]
    head = run.locator("#list th button", has_text="Reward")
    head.click()
    assert [float(each) for each in cells(run, "reward")] == sorted(everything, reverse=True)
    assert run.url.endswith("#/episodes?sort=-reward")
    head.click()
    assert [float(each) for each in cells(run, "reward")] == sorted(everything)
    visit(run, "#/episodes?sort=answer&outcome=right")
    run.locator("#list th[aria-sort=ascending]", has_text="Answer").wait_for()
    assert cells(run, "answer") == sorted(cells(run, "answer"))
    assert set(cells(run, "outcome")) == {"right"}


def test_link_with_an_unknown_measure_shows_all(run: Page) -> None:
    visit(run, "#/episodes?measure=metrics/gone&low=0.5&outcome=right")
    run.locator("#count", has_text="of 29 episodes").wait_for()
    assert set(cells(run, "outcome")) == {"right"}
    assert run.locator("#list .row").count() > 0


def test_columns_that_tell_nothing_apart_are_left_out(run: Page) -> None:
    titles = run.locator("#list th").all_inner_texts()
    assert titles[:2] == ["Outcome", "Reward"]  # no column for the file of the episodes
    assert "Question" not in titles  # all values are equal
    assert "question What colour" in run.locator("#constants").inner_text()


def test_episode_opens_turn_by_turn_with_its_images(run: Page, run_folder: Path) -> None:
    choose(run, saved_in="evaluation/after-GRPO/scenes")
    episode = played(run_folder / "evaluation" / "after-GRPO" / "scenes.jsonl")[0]

    detail = open_row(run)

    turns = detail.locator(".bubble.policy > pre").all_inner_texts()
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
    assert "sampling" in detail.locator(".bubble.policy").first.inner_text()


def test_terms_times_weights_add_up_to_the_reward(run: Page, run_folder: Path) -> None:
    choose(run, saved_in="evaluation/after-GRPO/scenes")
    episode = played(run_folder / "evaluation" / "after-GRPO" / "scenes.jsonl")[0]
    detail = open_row(run)
    lines = [row.locator("td").all_inner_texts() for row in detail.locator(".reward tr").all()]
    paid = {line[0]: float(line[3]) for line in lines if len(line) == 4}
    assert paid == pytest.approx(
        {n: episode.term_weights[n] * (episode.terms[n] or 0) for n in episode.terms}, abs=1e-3
    )
    assert lines[-1] == ["reward", f"{episode.reward:.3f}"]
    assert sum(paid.values()) == pytest.approx(episode.reward, abs=2e-3)


def test_link_to_an_episode_opens_it(opened: Open, run_folder: Path) -> None:
    episode = played(run_folder / "rl" / "episodes" / "step_000004.jsonl")[5]
    found = opened(write_report(run_folder), "#/episode/rl%2Fstep_000004/5")
    found.page.locator("#detail .verdict").wait_for()
    assert str(episode.seed) in found.page.locator("#detail aside").inner_text()
    visit(found.page, "#/episode/rl%2Fgone/5")
    found.page.locator("#detail .empty", has_text="There is no episode rl/gone").wait_for()
    assert_quiet(found)
    found.page.close()


def test_keyboard_leads_through_list_and_episodes(run: Page) -> None:
    run.keyboard.press("j")
    run.keyboard.press("ArrowDown")
    run.keyboard.press("k")
    run.keyboard.press("j")
    run.keyboard.press("Enter")
    run.locator("#detail .crumbs", has_text="2 of 29").wait_for()
    run.keyboard.press("n")
    run.locator("#detail .crumbs", has_text="3 of 29").wait_for()
    run.keyboard.press("p")
    run.locator("#detail .crumbs", has_text="2 of 29").wait_for()
    run.keyboard.press("Escape")
    run.locator("#list").wait_for()
    run.keyboard.press("/")
    run.locator("#filters [name=text]:focus").wait_for()
    run.keyboard.type("jj")
    assert run.locator("#filters [name=text]").input_value() == "jj"
    run.keyboard.press("Escape")
    run.keyboard.press("?")
    assert run.locator("#keys").is_visible()
    run.locator("#keys button").click()
    run.keyboard.press("t")
    assert run.locator("html").get_attribute("data-theme") == "dark"
    run.keyboard.press("t")
    assert run.locator("html").get_attribute("data-theme") == "light"


def test_boxes_lie_on_the_source_image_where_they_were_cut(run: Page, run_folder: Path) -> None:
    choose(run, saved_in="evaluation/after-GRPO/scenes")
    episode = played(run_folder / "evaluation" / "after-GRPO" / "scenes.jsonl")[1]
    (call,) = [event for event in episode.events if isinstance(event, ToolCalled)]
    left, top, right, bottom = call.detail["shown_box"]

    detail = open_row(run, 1)

    source = detail.locator(".picture").first
    box = source.locator("rect.zoom")
    assert [box.get_attribute(name) for name in ("x", "y", "width", "height")] == [
        str(left),
        str(top),
        str(right - left),
        str(bottom - top),
    ]
    # On the screen, 96 view pixels have the width of the drawn image.
    on_image = source.locator("img").bounding_box()
    drawn = box.bounding_box()
    assert on_image
    assert drawn
    scale = on_image["width"] / 96
    assert drawn["x"] - on_image["x"] == pytest.approx(left * scale, abs=1.5)
    assert drawn["y"] - on_image["y"] == pytest.approx(top * scale, abs=1.5)
    assert drawn["width"] == pytest.approx((right - left) * scale, abs=3)
    # The oracle zooms in on the target, so the truth lies inside; it has its own color.
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
    """Yield a function that writes episodes to their own folder and opens its report."""
    pages = []

    def show(*episodes: Episode, metrics: str = "") -> Page:
        write_episodes(tmp_path / "episodes.jsonl", episodes)
        (tmp_path / "metrics.jsonl").write_text(metrics)
        found = opened(write_report(tmp_path))
        pages.append(found)
        page: Page = found.page
        if episodes:
            visit(page, "#/episodes")
            page.locator("#list .row").first.wait_for()
        return page

    yield show
    for found in pages:
        assert_quiet(found)
        found.page.close()


@pytest.mark.attack("viewer: no text of an episode becomes markup or runs a script")
def test_texts_of_policies_and_data_sets_are_only_ever_text(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    def hostile(text: str) -> Episode:
        truth = UnknownRecord(text, {text: [text, {text: text}]})
        words: dict[str, Any] = {"question": text, "answers": (text,), "ground_truth": truth}
        return make_episode(text, **words, terms={text: 1.0}, sample_id=text)

    page = page_of(*map(hostile, HOSTILE))
    for number, text in enumerate(HOSTILE):
        detail = open_row(page, number)
        turn = detail.locator(".bubble.policy > pre").nth(1)
        units = len(text.encode("utf-16-le", "surrogatepass")) // 2  # as in JavaScript
        assert turn.evaluate("pre => pre.textContent.length") == units
        assert detail.locator("img").count() == 2
        visit(page, "#/episodes")
    assert page.evaluate("window.hacked") is None
    assert page.locator("script").count() == 2


def test_points_lie_on_the_masks_of_what_they_name(
    page_of: Callable[..., Page], grounded: dict[str, Episode]
) -> None:
    episode = grounded["ArgosImage"]
    (referred,) = [event for event in episode.events if isinstance(event, Referred)]
    picture = open_row(page_of(episode)).locator(".picture")
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


def test_frames_of_a_video_stand_under_a_bar_with_its_events(
    page_of: Callable[..., Page], grounded: dict[str, Episode]
) -> None:
    episode = grounded["ArgosVideo"]
    (referred,) = [event for event in episode.events if isinstance(event, Referred)]
    film = open_row(page_of(episode)).locator(".film")
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
    unknown = make_episode(reward=float("nan"), metrics={"iou": float("nan")})
    page = page_of(unknown, make_episode(reward=-0.5))
    assert cells(page, "reward") == ["not finite", "-0.500"]
    choose(page, low="-1")
    assert cells(page, "reward") == ["-0.500"]
    page.locator("button[type=reset]").click()
    page.locator("#list .row").nth(1).wait_for()
    row = open_row(page).locator(".facts tr", has_text="iou")
    assert row.locator("td").nth(1).inner_text() == "not finite"


def test_ways_to_end_have_their_outcomes(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    page = page_of(
        make_episode(accuracy=0.5),
        make_episode(accuracy=0.4),
        make_episode(accuracy=None),
        make_episode(status="truncated", reason="turns"),
        make_episode(reward=0.0, status="aborted", failure=Failure("service", "judge", "no reply")),
    )
    assert cells(page, "outcome") == ["right", "wrong", "finished", "truncated", "aborted"]
    assert "aborted: judge: no reply" in open_row(page, 4).locator("aside").inner_text()


def test_episodes_are_paged_and_loaded_on_demand(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    page = page_of(*(make_episode(sample_id=f"s{index:04}") for index in range(700)))
    assert page.locator("#count").inner_text() == "700 episodes"
    assert page.locator("#list .row").count() == 50
    page.locator("#pages button").nth(1).click()
    assert cells(page, "id")[:2] == ["s0050", "s0051"]
    visit(page, "#/episodes?page=14")
    page.locator("#list .row", has_text="s0699").click()
    page.locator("#detail aside", has_text="s0699").wait_for()
    assert page.evaluate("[...loaded.keys()].filter(key => key.startsWith('episodes'))") == [
        "episodes-21"
    ]


def test_system_prompt_is_folded_and_code_keeps_its_lines(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    episode = make_episode()
    code = "for place in range(3):\n    print(place)"
    first = episode.turns[0]
    run_code = ToolCalled(0, "python", {"code": code, "limit": 5}, True)
    messages = (Message("system", ("You are careful. " * 50,)), *first.messages)
    turns = (replace(first, messages=messages, events=(run_code,)), *episode.turns[1:])
    detail = open_row(page_of(replace(episode, turns=turns)))
    system = detail.locator("details.system")
    assert system.get_attribute("open") is None
    assert system.locator("small").inner_text() == "850 characters"
    block = detail.locator(".events pre")
    assert block.inner_text() == code
    assert block.evaluate("block => getComputedStyle(block).whiteSpace") == "pre-wrap"


def test_turn_shows_tokens_logprobs_times_and_advantage(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    logprobs = np.array([0, -1, -3, 0, -0.5], np.float32)
    mask = np.array([False, True, True, False, True])
    spans = (TurnSpan(0, 1, 3, "stop"), TurnSpan(1, 4, 5, "stop"))
    ids = np.arange(5, dtype=np.int32)
    segment = Segment(ids, mask, logprobs, 0 * ids, spans, (), (99,), 1.0, "p")
    first, last = make_episode().turns
    first = replace(first, sampling_seconds=1.5, env_seconds=0.05, advantage=-0.75)
    episode = replace(make_episode(), turns=(first, last), segments=(segment,))
    heads = open_row(page_of(episode)).locator(".bubble.policy > b")
    # The mean of -1 and -3.
    assert heads.nth(0).inner_text().split("\n") == [
        "policy, turn 1",
        "tokens 2",
        "logprob −2",
        "sampling 1.5 s",
        "env 50 ms",
        "advantage −0.750",
    ]
    assert heads.nth(0).locator(".likelihoods rect").count() == 2
    assert "tokens 1" in heads.nth(1).inner_text()


def test_group_shows_members_side_by_side_with_what_differs(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    texts = ("it is seven", "it is nine", "it is seven")
    rewards = (1.0, 0.0, 0.5)
    members = [
        make_episode(text, reward, group=2, member=member, term_weights={"vqa": 1.0})
        for member, (text, reward) in enumerate(zip(texts, rewards, strict=True))
    ]
    page = page_of(*members, make_episode(group=3))
    visit(page, "#/groups")
    assert page.locator("#group-list .row").count() == 1  # a group of one episode is not compared
    page.locator("#group-list .row").click()
    page.locator(".side-by-side").wait_for()
    heads = page.locator(".member-head").all_inner_texts()
    assert [each.split("\n")[0] for each in heads] == ["member 0", "member 1", "member 2"]
    table = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in page.locator(".member-table tbody tr").all()
    }
    # The mean is 0.5.
    assert table["reward − mean"] == ["+0.500", "−0.500", "0"]
    assert table["vqa × 1"] == ["1", "0", "0.500"]
    assert "turns" not in table  # all values are equal
    # The reference is the best member; words that it lacks are marked in the others.
    assert page.locator(".member-turn mark").all_inner_texts() == ["nine"]
    page.locator(".member-head button").first.click()
    page.locator(".member-head", has_text="reference").filter(has_text="member 1").wait_for()
    assert page.locator(".member-turn mark").all_inner_texts() == ["seven", "seven"]
    page.keyboard.press("Escape")
    page.locator("#group-list").wait_for()


def test_advantages_of_a_group_are_those_that_were_saved(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    def credited(member: int, advantage: float) -> Episode:
        episode = make_episode(reward=float(member), member=member)
        turns = [replace(turn, advantage=advantage) for turn in episode.turns]
        return replace(episode, turns=tuple(turns))

    page = page_of(credited(0, -1.25), credited(1, 1.25))
    assert cells(page, "advantage") == ["−1.250", "+1.250"]
    visit(page, "#/group/episodes%2F0")
    row = page.locator(".member-table tr", has_text="advantage")
    row.wait_for()
    assert row.locator("td").all_inner_texts() == ["−1.250", "+1.250"]


def test_keyboard_turns_pages_of_groups(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    page = page_of(*(make_episode(group=index // 2, member=index % 2) for index in range(120)))
    visit(page, "#/groups")
    rows = page.locator("#group-list .row")
    rows.nth(49).wait_for()
    page.keyboard.press("n")
    page.locator("#groups", has_text="51–60 of 60").wait_for()
    assert rows.count() == 10
    page.keyboard.press("p")
    page.locator("#groups", has_text="1–50 of 60").wait_for()


def aborted(make_episode: MakeEpisode, **fields: Any) -> Episode:
    """Return an episode whose judge did not reply, which has the reward 0."""
    failure = Failure("service", "judge", "no reply")
    return make_episode(reward=0.0, status="aborted", failure=failure, terms={}, **fields)


def test_aborted_members_count_in_no_mean_of_a_group(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    page = page_of(
        make_episode(reward=1.0, member=0),
        make_episode(reward=0.5, accuracy=0.0, member=1),
        aborted(make_episode, member=2),
    )
    assert cells(page, "reward") == ["1.000", "0.500", "–"]
    visit(page, "#/overview")
    saved = page.locator("#saved tbody td").all_inner_texts()
    # (1 + 0.5 + 0) / 3, as in an evaluation; one of three is right.
    assert saved[:4] == ["episodes", "3 (1 aborted)", "0.500", "33 %"]
    visit(page, "#/groups")
    row = page.locator("#group-list tbody td")
    # The rewards differ from their mean by 0.25.
    assert row.all_inner_texts()[1:4] == ["0.750", "0.250", "1/2"]
    assert page.locator("#group-list circle").count() == 2
    visit(page, "#/group/episodes%2F0")
    table = page.locator(".member-table tr")
    table.filter(has_text="reward − mean").wait_for()
    shown = {line.locator("th").first.inner_text(): line for line in table.all()[1:]}
    assert shown["reward"].locator("td").all_inner_texts() == ["1", "0.500", "–"]
    assert shown["reward − mean"].locator("td").all_inner_texts() == ["+0.250", "−0.250", "–"]


def test_aborted_episodes_count_as_0_in_a_comparison(
    opened: Open, make_episode: MakeEpisode, tmp_path: Path
) -> None:
    write_episodes(
        tmp_path / "one" / "episodes.jsonl",
        [make_episode(seed=0), make_episode(seed=1), make_episode(seed=2)],
    )
    write_episodes(
        tmp_path / "two" / "episodes.jsonl",
        [make_episode(seed=0), make_episode(reward=0.5, seed=1), aborted(make_episode, seed=2)],
    )
    found = opened(write_report(tmp_path / "one", tmp_path / "two"), "#/compare")
    page = found.page
    means = [row.locator("td").all_inner_texts() for row in page.locator(".means tbody tr").all()]
    assert means[1] == ["aborted (count as 0)", "0", "1", ""]
    assert means[2] == ["reward", "1", "0.500", "−0.500"]  # (1 + 0.5 + 0) / 3
    said = page.locator("#compare h2 small").all_inner_texts()
    assert said == ["3 pairs of episodes (3 samples): 0 better, 2 worse, 1 equal"]
    assert page.locator("#pair-list td:first-child").all_inner_texts() == ["−1", "−0.500", "0"]
    assert_quiet(found)
    page.close()


def test_aborted_episodes_count_in_the_metrics_of_their_kind(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    page = page_of(
        make_episode(kind="a", terms={"box": 1.0}),
        make_episode(kind="b", terms={"text": 0.5}),
        *(aborted(make_episode, kind=kind) for kind in "aac"),
    )
    visit(page, "#/overview")
    titles = page.locator("#saved thead th").all_inner_texts()
    shown = dict(zip(titles, page.locator("#saved tbody td").all_inner_texts(), strict=True))
    # Of the kind "a" two are aborted; no episode of the kind "c" was played.
    assert (shown["box"], shown["text"]) == ("0.250", "0.250")
    assert shown["Reward"] == "0.400"


def test_runs_are_compared_sample_by_sample(
    opened: Open, make_episode: MakeEpisode, tmp_path: Path
) -> None:
    for name, rewards in (("one", (0.0, 1.0, 1.0)), ("two", (1.0, 1.0, 0.5))):
        folder = tmp_path / name
        episodes = [
            make_episode(f"by {name}", reward, sample_id=f"s{number}", seed=number)
            for number, reward in enumerate(rewards)
        ]
        write_episodes(folder / "episodes.jsonl", episodes)
        settings = {"format": 1, "settings": {"policy": name, "env": "e"}, "sessions": []}
        (folder / "run.json").write_text(json.dumps(settings))
    found = opened(write_report(tmp_path / "one", tmp_path / "two"), "#/compare")
    page = found.page
    means = [row.locator("td").all_inner_texts() for row in page.locator(".means tbody tr").all()]
    # (0 + 1 + 1) / 3 = 0.667 and (1 + 1 + 0.5) / 3 = 0.833.
    assert means[:2] == [["episodes", "3", "3", ""], ["reward", "0.667", "0.833", "+0.167"]]
    said = page.locator("#compare").inner_text()
    assert "3 pairs of episodes (3 samples): 1 better, 1 worse, 1 equal" in said
    assert page.locator("#settings tbody tr").all_inner_texts() == ["policy\tone\ttwo"]
    changes = page.locator("#pair-list td:first-child").all_inner_texts()
    assert changes == ["+1", "−0.500", "0"]
    page.locator("#pair-list .row").first.click()
    page.locator(".side-by-side").wait_for()
    labels = ["A: one: episodes", "B: two: episodes"]
    assert page.locator(".member-head a").all_inner_texts() == labels
    # The policies differ, so the page shows the difference and no advantage.
    assert page.locator(".member-table th").all_inner_texts()[:4] == ["", *labels, "B − A"]
    rows = [row.locator("th, td").all_inner_texts() for row in member_rows(page)]
    assert rows == [
        ["reward", "0", "1", "+1"],
        ["answer", "by one", "by two", ""],
        ["vqa", "0", "1", "+1"],
    ]
    assert "Equal for both episodes: outcome = right" in page.locator(".members").inner_text()
    # The crop of each episode is drawn on its image: [10, 20, 50, 40].
    crops = page.locator(".member-look rect").evaluate_all(
        "all => all.map(each => [...'x,y,width,height'.split(',')].map(x => each.getAttribute(x)))"
    )
    assert crops == [["10", "20", "40", "20"]] * 2
    first = page.locator(".opening summary").inner_text()
    assert first == "First messages (the same for both episodes)"
    visit(page, "#/episode/episodes/2")  # a link of the report before the comparison
    page.locator("#detail .crumbs", has_text="one: episodes, line 3").wait_for()
    visit(page, "#/group/episodes%2F0")
    page.locator(".side-by-side").wait_for()
    assert_quiet(found)
    page.close()


def test_pairs_of_repeats_are_counted_apart_from_samples(
    opened: Open, make_episode: MakeEpisode, tmp_path: Path
) -> None:
    for run in ("a", "b"):  # two runs in folders of one name
        episodes = [
            make_episode(seed=seed, group=seed, member=member, reward=float(run == "b"))
            for seed in range(2)
            for member in range(3)
        ]
        write_episodes(tmp_path / run / "zoom" / "episodes.jsonl", episodes)
    found = opened(write_report(tmp_path / "a" / "zoom", tmp_path / "b" / "zoom"), "#/compare")
    page = found.page
    said = page.locator("#compare h2 small").all_inner_texts()
    assert said == ["6 pairs of episodes (2 samples): 6 better, 0 worse, 0 equal"]
    files = page.locator("#compare label").first.locator("option").all_inner_texts()
    assert files == ["zoom: episodes", "zoom (2): episodes"]
    assert page.locator("#name").inner_text() == "zoom and zoom (2)"
    page.locator("#pair-list .row").first.click()
    page.locator(".side-by-side").wait_for()
    rows = [row.locator("th, td").all_inner_texts() for row in member_rows(page)]
    assert rows[0] == ["reward", "0", "1", "+1"]
    assert_quiet(found)
    page.close()


def member_rows(page: Page) -> list[Locator]:
    rows: list[Locator] = page.locator(".member-table tbody tr").all()
    return rows


def test_filters_by_kind_tool_and_event(
    page_of: Callable[..., Page], make_episode: MakeEpisode
) -> None:
    failed = ToolCalled(0, "measure", {}, False, "no ruler", (), {}, 0)
    first, last = make_episode().turns
    turns = (replace(first, events=(failed,)), last)
    page = page_of(
        make_episode(kind="text", sample_id="zoomed"),
        replace(make_episode(kind="colour", sample_id="measured"), turns=turns),
        make_episode(kind="colour", sample_id="idle", zoomed=False),
    )
    expected = {
        ("kind", "text"): ["zoomed"],
        ("kind", "colour"): ["measured", "idle"],
        ("tool", "zoom"): ["zoomed"],
        ("tool", "measure"): ["measured"],
        ("tool", "measure (failed)"): ["measured"],
        ("event", "ToolCalled"): ["zoomed", "measured"],
        ("event", "Answered"): ["zoomed", "measured", "idle"],
    }
    page.locator("#columns summary").click()
    page.locator("#columns label", has_text="Sample").locator("input").check()
    for (name, value), samples in expected.items():
        choose(page, **{name: value})
        assert cells(page, "id") == samples
        page.locator("button[type=reset]").click()
        page.locator("#list .row").nth(2).wait_for()
    choose(page, kind="colour", event="ToolCalled")
    assert cells(page, "id") == ["measured"]


def test_images_of_a_compared_run_are_shown_whatever_its_folder_is_called(
    opened: Open, make_episode: MakeEpisode, tmp_path: Path
) -> None:
    other = tmp_path / "50%25 #2? a b"
    for folder in (tmp_path / "one", other):
        write_episodes(folder / "episodes.jsonl", [make_episode()])
    path = write_report(tmp_path / "one", other)
    found = opened(path, f"#/episode/{quote(f'{other.name}: episodes', safe='')}/0")
    picture = found.page.locator("#detail img").first
    picture.scroll_into_view_if_needed()
    picture.evaluate("image => image.decode()")
    assert picture.evaluate("image => image.naturalWidth") == 100
    assert_quiet(found)
    found.page.close()


@pytest.mark.parametrize(
    "link",
    [
        *("#/overview", "#/episodes", "#/groups", "#/compare"),
        *("#/group/rl%2Fstep_000002%2F1", "#/episode/rl%2Fstep_000004/1"),
    ],
)
def test_page_is_not_wider_than_a_phone(opened: Open, run_folder: Path, link: str) -> None:
    found = opened(write_report(run_folder), link, width=390, height=844)
    page = found.page
    page.locator(".view:not([hidden])").wait_for()
    page.locator(".view:not([hidden]) > *").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if link == "#/episodes":  # each episode is a card with all columns
        card = page.locator("#list .row").first
        inside = card.bounding_box()
        assert inside
        boxes = [cell.bounding_box() for cell in card.locator("td").all()]
        for box, after in pairwise([*boxes, None]):
            assert box
            assert box["x"] >= inside["x"]
            assert box["x"] + box["width"] <= inside["x"] + inside["width"] + 1
            # Cells neither overlap nor run over the edge.
            assert after is None or (
                box["x"] + box["width"] <= after["x"] + 1
                or box["y"] + box["height"] <= after["y"] + 1
            )
        runs_over = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1).length"
        assert card.locator("td").evaluate_all(runs_over) == 0
    page.close()


def test_page_of_a_rewritten_report_asks_to_reload(
    opened: Open, make_episode: MakeEpisode, tmp_path: Path
) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [make_episode()])
    page = opened(write_report(tmp_path), "#/episodes").page
    write_report(tmp_path)  # while the page is open
    page.locator("#list .row").click()
    page.locator("#detail .empty", has_text="Reload the page if the report").wait_for()
    page.reload()
    page.locator("#detail .verdict").wait_for()
    page.close()


def test_run_without_episodes_shows_its_curves_alone(
    page_of: Callable[..., Page], tmp_path: Path
) -> None:
    lines = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": None}, {"step": 3, "loss": 2.0}]
    page = page_of(metrics="".join(json.dumps(line) + "\n" for line in lines))
    assert page.locator("#tabs a").all_inner_texts() == ["Overview"]
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
    visit(page, "#/episodes")
    open_row(page)
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


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("the red sign", "the red sign", []),
        ("the red sign", "the blue sign", ["red"]),
        ("zoom in, then read", "then read", ["zoom in,"]),
        ("read", "read it again", []),
        ("a b c d", "b x d", ["a", "c"]),
        ("all new words", "", ["all new words"]),
        ("", "gone", []),
    ],
)
def test_words_that_differ_by_hand(
    run: Page, text: str, reference: str, expected: list[str]
) -> None:
    pieces = run.evaluate("([one, other]) => differing(one, other)", [text, reference])
    assert "".join(piece["text"] for piece in pieces) == text
    assert [piece["text"].strip() for piece in pieces if piece["differs"]] == expected


@pytest.mark.parametrize("seed", range(3))
def test_words_of_any_text_stay_as_they_are(run: Page, seed: int) -> None:
    rng = np.random.default_rng(seed)
    letters = np.array(list("ab <>\n\t\u00e9\u4e2d\U0001f600\ud800"))
    texts = ["".join(rng.choice(letters, size)) for size in (0, 5, 80, 900)]
    for one in texts:
        for other in texts:
            pieces = run.evaluate(
                "([a, b]) => differing(a, b).map(p => p.text).join('') === a", [one, other]
            )
            assert pieces


@pytest.mark.attack("viewer: no text of an episode becomes markup or runs a script")
@pytest.mark.parametrize(
    "link", ["#/episodes?sort=gone&columns=no&page=99", "#/%", "#/group/%E0%A4%A", "#/pair/a"]
)
def test_link_may_hold_anything(opened: Open, written: Path, link: str) -> None:
    found = opened(written, link)
    found.page.locator(".view:not([hidden])").wait_for(state="attached")
    visit(found.page, "#/episodes")
    found.page.locator("#list .row").nth(28).wait_for()
    assert_quiet(found)
    found.page.close()


def test_report_without_its_folder_shows_a_message(
    opened: Open, make_episode: MakeEpisode, tmp_path: Path
) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [make_episode(), make_episode(reward=0.5)])
    path = write_report(tmp_path)
    shutil.rmtree(tmp_path / "report")
    page = opened(path, "#/episodes").page
    page.locator("#list .row").first.click()
    page.locator("#detail .empty", has_text="The folder report belongs beside the page").wait_for()
    visit(page, "#/episodes?text=seven")
    page.locator("#count", has_text="the texts of the turns cannot be read").wait_for()
    assert page.locator("#list .row").count() == 2
    page.close()
