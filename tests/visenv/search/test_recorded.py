"""Tests recorded searches: asked once, replayed in later runs, shared by processes."""

from __future__ import annotations

import json
import multiprocessing
import pickle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from visenv.errors import DataError, ServiceError
from visenv.search import Passage
from visenv.search.recorded import RecordedSearch


class Counting:
    """Returns the query and the number of calls with it."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = 0

    def search(self, query: str, count: int) -> list[Passage]:
        self.asked += 1
        return [Passage(query, str(self.asked))] * count

    def close(self) -> None:
        pass


def test_answer_is_asked_for_once(tmp_path: Path) -> None:
    engine = Counting()
    recorded = RecordedSearch(tmp_path / "new" / "web.jsonl", engine)
    first = recorded.search("who  founded\tit", 2)
    assert recorded.search("who founded it", 2) == first == [Passage("who founded it", "1")] * 2
    assert recorded.search("who founded it", 3) != first  # the count is part of the question
    assert engine.asked == 2
    replayed = RecordedSearch(tmp_path / "new" / "web.jsonl")
    assert replayed.search("who founded it", 2) == first
    with pytest.raises(ServiceError, match="holds no answer to 'where'"):
        replayed.search("where", 2)
    assert pickle.loads(pickle.dumps(replayed)).search("who founded it", 2) == first


def test_record_skips_an_incomplete_line_and_reads_the_next(tmp_path: Path) -> None:
    file = tmp_path / "web.jsonl"
    RecordedSearch(file, Counting()).search("a", 1)
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: len(whole) // 2])
    recorded = RecordedSearch(file, Counting())
    recorded.search("b", 1)
    again = RecordedSearch(file)
    assert again.search("a", 1) == again.search("a", 1)
    assert again.search("b", 1)[0].title == "b"


@pytest.mark.parametrize("line", [b"[1]\n", b'{"query": 1}\n', b"nonsense\n", b"\xff\n"])
def test_line_that_is_no_record_is_named(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "web.jsonl"
    RecordedSearch(file, Counting()).search("a", 1)
    file.write_bytes(line + file.read_bytes())
    with pytest.raises(DataError, match=r"web\.jsonl:1 is not a recorded search"):
        RecordedSearch(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.text(max_size=80) | st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
def test_query_of_any_bytes_is_recorded_and_replayed(tmp_path: Path, query: str) -> None:
    file = tmp_path / "any.jsonl"
    found = RecordedSearch(file, Counting()).search(query, 2)
    assert RecordedSearch(file).search(query, 2) == found


def test_recorded_search_without_a_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no recorded search"):
        RecordedSearch(tmp_path / "none.jsonl")


def _record(file: Path, letter: str) -> None:
    recorded = RecordedSearch(file, Counting())
    for number in range(30):
        recorded.search(f"{letter}{number}", 3)


@pytest.mark.slow
def test_processes_share_a_file(tmp_path: Path) -> None:
    file = tmp_path / "web.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_record, args=(file, letter)) for letter in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(row["query"] for row in rows) == sorted(
        f"{x}{n}" for x in "ab" for n in range(30)
    )


def test_line_nested_too_deep_is_a_data_error(tmp_path: Path) -> None:
    file = tmp_path / "web.jsonl"
    file.write_text("[" * 100_000 + "\n")
    with pytest.raises(DataError, match="is not a recorded search"):
        RecordedSearch(file)
