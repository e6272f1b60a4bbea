"""Tests steps over rows: they account for every line, and a kill loses nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from tests.programs import run_python
from visenv.curation.journal import CurationJournal, RowOutcome, dropped, kept
from visenv.curation.lines import JsonLines, Row, row_line, write_lines
from visenv.curation.places import place_lines, place_of
from visenv.curation.step import CurationStep, StepReport, journal_path, seed_of
from visenv.errors import ConfigurationError, DataError, PolicyError


class Halves(CurationStep):
    """Keeps even numbers, halved, and drops odd ones; records the numbers that it receives."""

    name = "halves"

    def __init__(self, divisor: int = 2, limit: int | None = None) -> None:
        self.divisor = divisor
        self.limit = limit
        self.asked: list[str] = []

    @override
    def settings(self) -> dict[str, Any]:
        return {"divisor": self.divisor}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        if self.limit is not None and len(self.asked) >= self.limit:
            raise KeyboardInterrupt
        self.asked.append(row["id"])
        number = row.get("number")
        if not isinstance(number, int):
            raise DataError("no number")
        await asyncio.sleep((7 * number % 5) / 2000)  # the rows finish in another order
        if number % self.divisor:
            return dropped("odd")
        return kept({"id": row["id"], "number": number // self.divisor})


class Firsts(CurationStep):
    """Keeps the first row of each color, so a result depends on the rows before it."""

    name = "firsts"
    in_order = True

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.asked: list[str] = []

    @override
    async def decide(self, row: Row) -> RowOutcome:
        self.asked.append(row["id"])
        if row["colour"] in self.seen:
            return dropped("again")
        self.seen.add(row["colour"])
        return kept(row)

    @override
    def begin(self) -> None:
        self.seen.clear()

    @override
    def remember(self, row: Row, outcome: RowOutcome) -> None:
        if outcome.status == "kept":
            self.seen.add(row["colour"])


def write(path: Path, rows: list[Row]) -> JsonLines:
    write_lines(path, rows)
    return JsonLines(path)


def numbers(path: Path, count: int) -> JsonLines:
    return write(path, [{"id": f"n{number}", "number": number} for number in range(count)])


def written(out: Path) -> list[Row]:
    return [json.loads(line) for line in out.read_text().splitlines()]


# ---------------------------------------------------------------------------- accounting


def test_kept_rows_in_the_order_of_the_input_and_the_counts_beside_them(tmp_path: Path) -> None:
    out = tmp_path / "out" / "halves.jsonl"
    bar: list[None] = []
    lines = numbers(tmp_path / "in.jsonl", 40)
    account = Halves().run(lines, out, concurrency=7, on_line=lambda: bar.append(None))
    assert account == StepReport(lines=40, kept=20, dropped={"odd": 20}, failed={}, rows=20)
    assert [row["number"] for row in written(out)] == list(range(20))
    assert json.loads((tmp_path / "out/halves.summary.json").read_text()) == account._asdict()
    assert len(bar) == len(lines) == 40


HOSTILE: list[tuple[bytes, str]] = [
    (b"nonsense", "not JSON"),
    (b"[1, 2]", "must be an object, got list"),
    (b"null", "must be an object, got NoneType"),
    (b'{"number": 2}', "no id"),
    (b'{"id": "", "number": 2}', "no id"),
    (b'{"id": true, "number": 2}', "no id"),
    (b'{"id": ["a"], "number": 2}', "no id"),
    (b'{"id": "good", "number": 2}', "the id 'good' is already used on line 1"),
    (b'{"id": "words", "number": "two"}', "no number"),
    (b'{"id": "\xff\xfe"}', "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b'{"id": "torn", "numb', "not JSON"),
]


def test_lines_are_accounted_for_whatever_they_hold(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines = [b'{"id": "good", "number": 4}', b"", *(content for content, _ in HOSTILE)]
    path.write_bytes(b"\n".join(lines))  # the last line has no line end
    step = Halves()
    account = step.run(JsonLines(path), out)
    assert account == (13, 1, {}, {"cannot be read": 12}, 1)
    journal = CurationJournal(journal_path(out), step.name, step.settings())
    errors = [journal.outcome(line).detail.get("error", "") for line in JsonLines(path)]
    journal.close()
    for error, (_, expected) in zip(errors[1:], HOSTILE, strict=True):
        assert expected in error
    assert errors[1].startswith("in.jsonl:3: ")  # the empty line counts as a line of the file


def test_row_called_like_a_line_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"id": "line 2", "number": 2}\nnonsense\n{"id": 7, "number": 4}\n')
    assert [line.id for line in JsonLines(path)] == ["line 2", "line 2'", "7"]
    assert Halves().run(JsonLines(path), tmp_path / "out.jsonl").lines == 3


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_do_not_make_reading_raise(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.mktemp("rows") / "in.jsonl"
    path.write_bytes(content)
    lines = JsonLines(path)
    found = list(lines)
    assert len(found) == len(lines) == sum(1 for each in content.split(b"\n") if each.strip())
    assert len({line.id for line in found}) == len(found)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no file of rows"):
        JsonLines(tmp_path / "no.jsonl")


def test_images_are_named_relative_to_each_file(tmp_path: Path) -> None:
    class Same(CurationStep):
        name = "same"

        @override
        async def decide(self, row: Row) -> RowOutcome:
            return kept(row)

    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / "in.jsonl"
    saved_name = f"{'0' * 64}.png"
    (tmp_path / "a" / "p.png").write_bytes(b"picture")
    (tmp_path / "a" / saved_name).write_bytes(b"saved")
    rows = [{"id": 1, "images": ["p.png", saved_name]}, {"id": 2, "images": "p.png"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    beside, out = tmp_path / "a" / "same.jsonl", tmp_path / "b" / "out.jsonl"
    Same().run(JsonLines(path), beside)
    Same().run(JsonLines(path), out)
    assert written(beside) == rows
    copied = f"images/{hashlib.sha256(b'picture').hexdigest()}.png"
    assert written(out)[0]["images"] == [copied, f"images/{saved_name}"]
    assert (tmp_path / "b" / copied).read_bytes() == b"picture"
    assert [line.row["images"] for line in JsonLines(out)] == [
        [str(tmp_path / "b" / copied), str(tmp_path / "b/images" / saved_name)],
        "p.png",  # not a list of paths: unchanged
    ]


# ---------------------------------------------------------------------------- resuming


def test_stopped_run_continues(tmp_path: Path) -> None:
    lines, out = numbers(tmp_path / "in.jsonl", 10), tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        Halves(limit=4).run(lines, out, concurrency=1)
    assert not out.exists()
    step = Halves()
    account = step.run(lines, out, concurrency=1)
    assert step.asked == [f"n{number}" for number in range(4, 10)]
    whole = tmp_path / "whole.jsonl"
    assert Halves().run(lines, whole) == account
    assert whole.read_bytes() == out.read_bytes()
    again = Halves()
    assert again.run(lines, out) == account
    assert again.asked == []


@pytest.mark.parametrize("keep", [0.0, 0.001, 0.3, 0.77, 0.999, 1.0])
def test_journal_cut_anywhere_is_repaired(tmp_path: Path, keep: float) -> None:
    """Check that after any cut of the journal the output is equal byte for byte."""
    lines, out = numbers(tmp_path / "in.jsonl", 8), tmp_path / "out.jsonl"
    Halves().run(lines, out, concurrency=1)
    whole, journal = out.read_bytes(), journal_path(out)
    written_whole = journal.read_bytes()
    journal.write_bytes(written_whole[: round(keep * len(written_whole))])
    Halves().run(lines, out, concurrency=1)
    assert out.read_bytes() == whole
    assert journal.read_bytes() == written_whole


def test_failed_rows_are_tried_again_and_changed_ones_done_again(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows: list[Row] = [{"id": "a", "number": 2}, {"id": "b"}, {"id": "c", "number": 6}]
    assert Halves().run(write(path, rows), out).failed == {"cannot be read": 1}
    rows[1]["number"], rows[2]["number"] = 4, 7
    step = Halves()
    assert step.run(write(path, rows), out) == (3, 2, {"odd": 1}, {}, 2)
    assert sorted(step.asked) == ["b", "c"]
    assert [row["number"] for row in written(out)] == [1, 2]


def test_rows_that_are_added_or_gone_are_taken_as_they_are_now(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    Halves().run(numbers(path, 4), out)
    step = Halves()
    lines = write(path, [{"id": f"n{number}", "number": number} for number in (9, 2, 0)])
    assert step.run(lines, out) == (3, 2, {"odd": 1}, {}, 2)
    assert step.asked == ["n9"]
    assert [row["id"] for row in written(out)] == ["n2", "n0"]


def test_change_reaches_all_that_follow_where_the_order_counts(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows: list[Row] = [{"id": f"{n}", "colour": color} for n, color in enumerate("rrgbg")]
    Firsts().run(write(path, rows), out)
    assert [row["id"] for row in written(out)] == ["0", "2", "3"]
    rows.append({"id": "5", "colour": "b"})
    step = Firsts()
    step.run(write(path, rows), out)
    step.run(write(path, rows), out)  # a step that is used again starts from the beginning
    assert step.asked == ["5"]
    assert [row["id"] for row in written(out)] == ["0", "2", "3"]
    rows[2]["colour"] = "x"
    step = Firsts()
    step.run(write(path, rows), out)
    assert step.asked == ["2", "3", "4", "5"]
    assert [row["id"] for row in written(out)] == ["0", "2", "3", "4"]


def test_removed_row_makes_room_where_the_order_counts(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows: list[Row] = [{"id": f"{n}", "colour": color} for n, color in enumerate("grgb")]
    Firsts().run(write(path, rows), out)
    assert [row["id"] for row in written(out)] == ["0", "1", "3"]
    Firsts().run(write(path, rows[1:]), out)
    assert [row["id"] for row in written(out)] == ["1", "2", "3"]
    step = Firsts()
    step.run(JsonLines(path), out)
    assert step.asked == []


def test_kill_does_not_stop_a_change_from_reaching_what_follows(tmp_path: Path) -> None:
    class Killed(Firsts):
        @override
        async def decide(self, row: Row) -> RowOutcome:
            if row["id"] == "1":
                raise KeyboardInterrupt
            return await super().decide(row)

    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows: list[Row] = [{"id": f"{n}", "colour": color} for n, color in enumerate("grgb")]
    Firsts().run(write(path, rows), out)
    rows[0]["colour"] = "r"
    lines = write(path, rows)
    with pytest.raises(KeyboardInterrupt):
        Killed().run(lines, out)
    step = Firsts()
    step.run(lines, out)
    assert step.asked == ["1", "2", "3"]
    assert [row["id"] for row in written(out)] == ["0", "2", "3"]  # 1 is red, as 0 is
    step = Firsts()
    step.run(lines, out)
    assert step.asked == []


def test_row_that_cannot_be_remembered_is_done_again(tmp_path: Path) -> None:
    class Reading(Firsts):
        @override
        def remember(self, row: Row, outcome: RowOutcome) -> None:
            raise DataError("its image is gone")

        @override
        async def decide(self, row: Row) -> RowOutcome:
            raise DataError("its image is gone")

    lines, out = write(tmp_path / "in.jsonl", [{"id": "a", "colour": "r"}]), tmp_path / "o.jsonl"
    assert Firsts().run(lines, out).kept == 1
    assert Reading().run(lines, out).failed == {"cannot be read": 1}


def test_input_is_not_written_over(tmp_path: Path) -> None:
    lines = numbers(tmp_path / "in.jsonl", 3)
    with pytest.raises(ConfigurationError, match="both the input and the output"):
        Halves().run(lines, tmp_path / "." / "in.jsonl")
    assert len(written(lines.path)) == 3


def test_error_of_the_step_itself_reaches_the_caller(tmp_path: Path) -> None:
    class Broken(CurationStep):
        name = "broken"

        @override
        async def decide(self, row: Row) -> RowOutcome:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Broken().run(numbers(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl")


def test_model_without_a_reply_fails_the_row(tmp_path: Path) -> None:
    class Mute(CurationStep):
        name = "mute"

        @override
        async def decide(self, row: Row) -> RowOutcome:
            raise PolicyError("the server is down")

    account = Mute().run(numbers(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl")
    assert account == (3, 0, {}, {"no reply": 3}, 0)


# ---------------------------------------------------------------------------- the journal


def test_step_with_other_settings_needs_another_file(tmp_path: Path) -> None:
    lines, out = numbers(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    Halves().run(lines, out)
    for other in (Halves(divisor=3), Firsts()):
        with pytest.raises(ConfigurationError, match="Name another file, or delete it"):
            other.run(lines, out)
    assert written(out)


@pytest.mark.parametrize(
    "content",
    [b"not json\n", b"two lines\nof a letter", b"no line end", b"{}\n{}\n", b"[1]\n", b"7\n"],
)
def test_file_of_something_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match="is not a journal"):
        CurationJournal(path, "step", {})
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: b"{" + line[2:],
        lambda line: line.replace(b'"kept"', b'"kepd"'),
        lambda line: line.replace(b'"digest"', b'"dgest"'),
        lambda line: b"7\n",
        lambda line: b"\0" * 9 + b"\n",
        *(
            lambda line, change=change: json.dumps(json.loads(line) | change).encode() + b"\n"
            for change in ({"rows": ["x"]}, {"rows": [[1]]}, {"reason": [1]}, {"detail": 5})
        ),
    ],
)
def test_journal_that_is_damaged_inside_gives_the_line(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    out = tmp_path / "out.jsonl"
    Halves().run(numbers(tmp_path / "in.jsonl", 3), out, concurrency=1)
    header, first, *rest = journal_path(out).read_bytes().splitlines(keepends=True)
    journal_path(out).write_bytes(b"".join([header, spoil(first), *rest]))
    with pytest.raises(DataError, match=f"damaged at byte {len(header)}"):
        Halves().run(JsonLines(tmp_path / "in.jsonl"), out)


def test_newer_version_of_the_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"journal": 2, "step": "step", "settings": {}}\n')
    with pytest.raises(DataError, match="format 2; this version reads 1"):
        CurationJournal(path, "step", {})


def test_journal_allows_one_run_at_a_time(tmp_path: Path) -> None:
    journal = CurationJournal(tmp_path / "a.jsonl", "step", {})
    with pytest.raises(ConfigurationError, match="Another run writes to"):
        CurationJournal(tmp_path / "a.jsonl", "step", {})
    journal.close()
    CurationJournal(tmp_path / "a.jsonl", "step", {}).close()


def test_text_of_any_kind_survives(tmp_path: Path) -> None:
    texts = ["\ud800 half a pair", "\0\x1f\u2028\n", "<image>", "é" * 3]
    journal = CurationJournal(tmp_path / "a.jsonl", "step", {"text": texts[0]})
    line = row_line({"id": "\udfff", "texts": texts})
    journal.add(line, kept({"id": "a", "texts": texts}, said=texts))
    journal.close()
    journal = CurationJournal(tmp_path / "a.jsonl", "step", {"text": texts[0]})
    assert journal.outcome(line) == kept({"id": "a", "texts": texts}, said=texts)
    journal.close()


# ---------------------------------------------------------------------------- kill -9

KILLED = """
import asyncio, itertools, os, signal, sys
from pathlib import Path
from visenv.curation.journal import kept
from visenv.curation.lines import JsonLines
from visenv.curation.step import CurationStep

class Padded(CurationStep):
    name = "padded"
    async def decide(self, row):
        await asyncio.sleep(0)
        return kept({**row, "padding": "x" * 3000})

rows = itertools.count(1)

def count():
    if next(rows) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

Padded().run(JsonLines(sys.argv[1]), Path(sys.argv[2]), concurrency=3, on_line=count)
"""


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_lost_and_the_end_is_the_same(tmp_path: Path) -> None:
    lines, out = numbers(tmp_path / "in.jsonl", 60), tmp_path / "out.jsonl"

    def run(to: Path, killed_at: int) -> None:
        done = run_python("-c", KILLED, lines.path, to, str(killed_at))
        assert done.returncode == (-signal.SIGKILL if killed_at else 0), done.stderr

    for rows in (1, 20, 45):  # each run first skips the rows that are done
        run(out, killed_at=rows)
        assert journal_path(out).read_bytes().count(b"\n") - 1 == rows
        assert not out.exists()
    whole = tmp_path / "whole.jsonl"
    for path in (out, whole):
        run(path, killed_at=0)
    assert out.read_bytes() == whole.read_bytes()
    ids = [json.loads(line)["line"] for line in journal_path(out).read_bytes().splitlines()[1:]]
    assert sorted(ids) == sorted(f"n{number}" for number in range(60))  # no row was processed twice


# ------------------------------------------------------------------- seeds and numbers of rows


def test_seeds_depend_on_every_part_and_on_where_one_ends() -> None:
    seeds = [seed_of("ab", "c"), seed_of("a", "bc"), seed_of("ab", "c", 0), seed_of("ab", "d")]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert seed_of("\ud800", 10**30) == seed_of("\ud800", 10**30)


def test_places_of_finite_and_of_endless_data() -> None:
    class Endless:
        def sample(self, rng: Any) -> Any:
            raise NotImplementedError

    finite: Any = [None] * 4
    assert [line.row["index"] for line in place_lines(finite)] == [0, 1, 2, 3]
    assert [line.id for line in place_lines(finite, 2, first=1)] == ["row-1", "row-2"]
    assert [line.row["seed"] for line in place_lines(Endless(), 2, first=9)] == [9, 10]
    with pytest.raises(ConfigurationError, match="give the number of samples"):
        place_lines(Endless())
    with pytest.raises(ConfigurationError, match="at least 1 place"):
        place_lines(Endless(), 0)


def test_row_as_a_place() -> None:
    place = place_of({"id": "row-3", "index": 3}, member=2)
    assert (place.seed, place.index, place.member) == (3, 3, 2)
    assert place_of({"seed": 5}).index is None
    assert place_of({"seed": 5, "member": 4}).member == 4
    for row in ({"seed": -1}, {"seed": True}, {"index": "3"}, {"seed": 1, "member": "x"}):
        with pytest.raises(DataError, match="must be an integer of at least 0"):
            place_of(row)
    with pytest.raises(DataError, match="a place must have"):
        place_of({"id": "a"})
