"""Tests the report of a damaged or odd run: values of other types in every place, and odd files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.environments import few
from visenv.cli import main
from visenv.episodes import write_episodes
from visenv.types import Episode
from visenv.viewer import write_report

pytestmark = pytest.mark.attack("viewer: a damaged run gives a report without an error")

Document = Any
MakeEpisode = Callable[..., Episode]

OTHERS: tuple[Any, ...] = (
    *(None, True, 0, -1, 2.5, 10**400, 1e308, 5e-324, float("nan"), float("-inf")),
    *("", "text", "$x_{1}$ \\frac{", "\x1b[2J\u202e", "__proto__", "<script>", "a" * 300),
    *([], {}, [1, 2, 3], [None], [[0, 0], [1, 1]], {"a": {"b": []}}, {"__proto__": 1, "$": "x"}),
)
"""Values that replace the value of a field."""

RECIPE = {
    "name": "tiny",
    "folder": "runs/tiny",
    "model": {"name": "tiny"},
    "sampler": {"name": "transformers"},
    "environments": {"zoom": {"id": "visenv/ZoomVQA-v0", "options": {"preset": "tiny"}}},
    "phases": {"rl": {"algorithm": "grpo", "episodes": {"from": "Played"}}},
}
RUN = {
    "format": 1,
    "settings": {"command": "eval", "env": "visenv/ZoomVQA-v0", "option": {"stage": "tiny"}},
    "policy": {"model": "m"},
    "sessions": [{"started": "2026-01-01", "commit": "abc", "versions": {"numpy": "2"}}],
}
RESULTS = {
    "rows": [
        {"": "before", "accuracy": 0.5, "reward": [1.0, 0.5, 1.5], "episodes": 4},
        {"": "after", "accuracy": 0.75, "reward": [1.5, None, None], "episodes": 4},
    ],
    "seconds": {"warm-up": 12.5, "rl": 61.0},
}
METRICS = {"step": 3, "reward": 0.5, "loss": -0.25, "metrics/accuracy": 0.5, "terms/format": 1.0}


def places(document: Document, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value inside a document, as keys and indices."""
    inside: Any = ()
    if isinstance(document, dict):
        inside = document.items()
    elif isinstance(document, list):
        inside = enumerate(document)
    for key, value in inside:
        yield (*place, key)
        yield from places(value, (*place, key))


def changed(document: Document, place: tuple[Any, ...], value: Any) -> Document:
    """Return a copy of a document with another value in a place."""
    copy = deepcopy(document)
    *parents, last = place
    parent = copy
    for key in parents:
        parent = parent[key]
    parent[last] = value
    return copy


def each_changed(document: Document, count: int) -> Iterator[Document]:
    """Yield copies of a document, with `count` other values in each of its places."""
    number = 0
    for place in places(document):
        for _ in range(count):
            yield changed(document, place, OTHERS[number % len(OTHERS)])
            number += 1


def line(document: Document) -> str:
    return json.dumps(document) + "\n"


def data_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8").partition('type="application/json">')[2]
    data: dict[str, Any] = json.loads(text.partition("</script")[0])
    return data


@pytest.fixture(scope="module")
def saved(
    tmp_path_factory: pytest.TempPathFactory,
    make_episode: MakeEpisode,
    grounded: dict[str, Episode],
) -> tuple[Path, list[Document]]:
    """Return a folder with images, and the objects of episodes with zooms, points and spans."""
    folder = tmp_path_factory.mktemp("saved")
    write_episodes(folder / "episodes.jsonl", [make_episode(), *grounded.values()])
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    return folder, [json.loads(each) for each in lines]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_run_whose_fields_have_other_types_is_shown(
    data: st.DataObject, saved: tuple[Path, list[Document]], tmp_path: Path
) -> None:
    source, episodes = saved
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "rl").mkdir(parents=True)
    (folder / "images").symlink_to(source / "images")

    def drawn(document: Document, label: str) -> Document:
        for _ in range(data.draw(st.integers(0, 2), label=label)):
            place = data.draw(st.sampled_from(list(places(document)) or [()]), label=label)
            if place:
                document = changed(document, place, data.draw(st.sampled_from(OTHERS)))
        return document

    (folder / "recipe.json").write_text(line(drawn(RECIPE, "recipe")))
    (folder / "run.json").write_text(line(drawn(RUN, "run")))
    (folder / "results.json").write_text(line(drawn(RESULTS, "results")))
    (folder / "rl" / "metrics.jsonl").write_text(line(drawn(METRICS, "metrics")) + line(METRICS))
    chosen = data.draw(st.sampled_from(episodes))
    lines = line(drawn(chosen, "episode")) + line(episodes[0])
    (folder / "episodes.jsonl").write_text(lines)

    shown = data_of(write_report(folder))

    assert 1 <= shown["index"]["count"] <= 2
    # The other episode, the other step and the facts are there, whatever was changed.
    assert "sample" in shown["index"]["texts"]["id"]["values"]
    assert METRICS | {"phase": "rl"} in shown["runs"][0]["metrics"]


def odd_run(folder: Path, saved: tuple[Path, list[Document]], start: int, step: int) -> Path:
    """Write a run in which fields of every file are replaced.

    Args:
        folder: The folder of the run.
        saved: A folder with images, and the objects of episodes.
        start: Selects the values.
        step: 1 replaces every field, 2 every second one.
    """
    source, episodes = saved
    shutil.copytree(source / "images", folder / "images")
    rotated = OTHERS[start:] + OTHERS[:start]

    def changes(document: Document) -> Iterator[Document]:
        for number, place in list(enumerate(places(document)))[::step]:
            yield changed(document, place, rotated[number % len(rotated)])

    with (folder / "episodes.jsonl").open("w") as file:
        for number, episode in enumerate(episodes):
            file.write(line(episode))
            for document in changes(episode):
                document["seed"] = number if not isinstance(document, dict) else document["seed"]
                file.write(line(document))
    rows = [row for document in changes(RESULTS) for row in _rows(document)]
    (folder / "results.json").write_text(line({**RESULTS, "rows": rows}))
    (folder / "$phase_").mkdir()
    lines = [line(METRICS), *(line(each) for each in changes(METRICS)), '{"step": 9, "los']
    (folder / "$phase_" / "metrics.jsonl").write_text("".join(lines))
    (folder / "recipe.json").write_text(line(changed(RECIPE, ("model",), rotated[0])))
    (folder / "run.json").write_text(line(changed(RUN, ("settings", "env"), rotated[1])))
    return folder


def _rows(document: Document) -> list[Any]:
    rows = document.get("rows") if isinstance(document, dict) else None
    return rows if isinstance(rows, list) else [rows]


WALK = """
async () => {
  const faults = [];
  const attempt = async (name, act) => {
    try { await act(); } catch (error) { faults.push(`${name}: ${error.stack}`); }
  };
  const inDetail = (show) => () => {
    byId("detail").dataset.route = location.hash;
    return show();
  };
  for (const place of EVERYONE) {
    await attempt(`episode ${place}`, inDetail(() => showEpisode(place)));
    const found = placeOf(textOf("saved_in", place), numberOf("line", place));
    if (found !== place) faults.push(`the link of ${place} leads to ${found}`);
  }
  for (const [key] of severalMembers.slice(0, 5)) {
    await attempt(`group ${key}`, inDetail(() => showGroup(key)));
  }
  await attempt("groups", showGroups);
  await attempt("compare", showCompare);
  for (const column of COLUMNS) await attempt(`sort by ${column.name}`, () => sortBy(column));
  await attempt("columns", makeColumnsMenu);
  for (const fold of document.querySelectorAll("details")) {
    fold.open = true;
    fold.dispatchEvent(new Event("toggle"));
  }
  return faults;
}
"""


@pytest.mark.component("chromium")
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("start", "step"), few([(0, 2), (0, 1), (11, 1)], 1))
def test_page_of_an_odd_run_has_no_script_error(
    start: int,
    step: int,
    saved: tuple[Path, list[Document]],
    tmp_path: Path,
    opened: Callable[..., Any],
) -> None:
    page = write_report(odd_run(tmp_path, saved, start, step))
    data = data_of(page)
    assert data["index"]["count"] > 100
    assert len(data["problems"]) > 10
    found = opened(page)
    assert found.page.evaluate(WALK) == []
    assert found.complaints == []
    found.page.close()


@pytest.fixture
def run(make_episode: MakeEpisode, tmp_path: Path) -> Path:
    """Return a run with a phase, results and an episode."""
    folder = tmp_path / "run"
    write_episodes(folder / "episodes.jsonl", [make_episode()])
    (folder / "rl").mkdir()
    (folder / "rl" / "metrics.jsonl").write_text(line(METRICS))
    (folder / "results.json").write_text(line(RESULTS))
    (folder / "run.json").write_text(line(RUN))
    (folder / "recipe.json").write_text(line(RECIPE))
    return folder


FILES = ("episodes.jsonl", "results.json", "run.json", "recipe.json", "rl/metrics.jsonl", "images")
BREAKS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "pipe": os.mkfifo,
    "folder": lambda path: path.mkdir(),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "empty": lambda path: path.touch(),
    "not text": lambda path: path.write_bytes(b"\xff\xfe\x00\n" * 9),
    "nested": lambda path: path.write_bytes(b"[" * 100_000 + b"\n"),
    "half": lambda path: path.write_text('{"rows": [{"accura'),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("break_", BREAKS)
def test_file_that_is_broken_leaves_the_others_on_the_page(
    file: str, break_: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if (run / file).is_dir():
        shutil.rmtree(run / file)
    else:
        (run / file).unlink()
    BREAKS[break_](run / file)
    assert main(["view", str(run), "--no-open"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.endswith("report.html\n")
    data = data_of(run / "report.html")
    named = " ".join(data["problems"])
    silent = ("missing", "dangling link", "empty" if file.endswith("jsonl") else "missing")
    unread = break_ == "half" and file == "rl/metrics.jsonl"  # a run in progress writes such a line
    if break_ not in silent and not unread:
        assert Path(file).name in named
    if file == "images":
        assert "line 1" in named
    assert data["index"]["count"] == (file not in ("episodes.jsonl", "images"))
    assert bool(data["runs"][0]["results"]) == (file != "results.json")
    assert bool(data["runs"][0]["metrics"]) == (file != "rl/metrics.jsonl")
    chief = data["runs"][0]["facts"]["chief"]
    assert ("commit" in chief) == (file != "run.json")
    assert ("phases" in chief) == (file != "recipe.json")


def test_image_that_is_a_pipe_costs_its_episode_alone(run: Path, make_episode: MakeEpisode) -> None:
    odd = make_episode(zoomed=False)
    write_episodes(run / "evaluation" / "before" / "a.jsonl", [odd])
    (image, *_) = (run / "evaluation" / "before" / "images").iterdir()
    image.unlink()
    os.mkfifo(image)
    data = data_of(write_report(run))
    assert data["index"]["count"] == 1
    assert any("a.jsonl, line 1" in each and "a named pipe" in each for each in data["problems"])


def test_names_that_are_no_unicode_make_links(run: Path, make_episode: MakeEpisode) -> None:
    folder = Path(os.fsdecode(os.fsencode(run / "evaluation" / "before")))
    folder.mkdir(parents=True)
    write_episodes(folder / os.fsdecode(b"\xff$[x].jsonl"), [make_episode()])
    data = data_of(write_report(run))
    assert data["index"]["texts"]["saved_in"]["values"] == [
        "episodes",
        "evaluation/before/\\udcff$[x]",
    ]


def test_many_problems_of_a_file_are_counted(run: Path) -> None:
    with (run / "episodes.jsonl").open("a") as file:
        file.write("no episode\n" * 100)
    problems = data_of(write_report(run))["problems"]
    assert len(problems) == 21
    assert "line 2 holds no episode" in problems[0]
    assert problems[20].endswith("episodes.jsonl: 80 more problems")


def test_many_names_of_metrics_do_not_fill_the_memory(run: Path, make_episode: MakeEpisode) -> None:
    names = iter(range(10**6))
    episodes = [
        make_episode(metrics={f"m{next(names)}": 1.0 for _ in range(100)}) for _ in range(10)
    ]
    write_episodes(run / "episodes.jsonl", episodes)
    data = data_of(write_report(run))
    assert len(data["index"]["metrics"]) == 500
    assert data["problems"] == [
        "500 terms and metrics are not in the table of episodes, which has at most 500 of each"
    ]


def test_truth_of_a_huge_world_is_refused_before_its_masks_are_drawn(
    run: Path, grounded: dict[str, Episode]
) -> None:
    write_episodes(run / "episodes.jsonl", [grounded["ArgosImage"]])
    record = json.loads((run / "episodes.jsonl").read_text())
    record["ground_truth"]["fields"].update(width=200_000, height=200_000)
    (run / "episodes.jsonl").write_text(line(record))
    (problem,) = data_of(write_report(run))["problems"]
    assert "a frame of 200000x200000 pixels" in problem
