"""Tests logs of verdicts: they see every verdict, and can answer in place of the backend."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.visenv.scorers.doubles import BATCHES, Echo
from visenv import background
from visenv.errors import DataError
from visenv.scorers import Embed, Scorer, Verdict, current_log, digest, using
from visenv.types import Image


class Log:
    """Keeps the verdicts that it sees."""

    def __init__(self, recorded: dict[str, Verdict] | None = None, strict: bool = False) -> None:
        self.recorded = recorded or {}
        self.strict = strict
        self.seen: list[tuple[str, Verdict]] = []

    def find(self, scorer: Scorer, digest: str) -> Verdict | None:
        if digest not in self.recorded and self.strict:
            raise DataError(f"no verdict of {scorer.name} is recorded")
        return self.recorded.get(digest)

    def record(self, scorer: Scorer, verdict: Verdict) -> None:
        self.seen.append((scorer.name, verdict))


def test_verdicts_are_recorded_cached_ones_included(remote: Any, tag: str) -> None:
    scorer, log = remote(), Log()

    async def term() -> None:
        await scorer.score(Echo("a"))
        await scorer.score(Echo("a"))
        await asyncio.wrap_future(scorer.submit(Echo("b")))

    async def reward() -> None:
        with using(log):
            await term()
        await scorer.score(Echo("c"))

    asyncio.run(reward())
    model = f"model of {tag}"
    assert log.seen == [
        (scorer.name, Verdict(content, model, digest(Echo(content)))) for content in "aab"
    ]


def test_coroutine_on_the_background_loop_uses_the_log_of_who_started_it(remote: Any) -> None:
    scorer, log = remote(), Log()
    with using(log):
        future = background.submit(scorer.score(Echo("a")))
    background.run(scorer.score(Echo("b")))
    assert future.result().value == "a"
    assert [verdict.value for _, verdict in log.seen] == ["a"]


def test_scorer_behind_a_scorer_is_not_recorded(remote: Any, tmp_path: Path) -> None:
    file = str(tmp_path / "replies.jsonl")
    scorer, log = Scorer("recorded", file=file, inner=remote().description()), Log()
    with using(log):
        scorer.submit(Echo("a")).result()
    assert [name for name, _ in log.seen] == [scorer.name]


def test_recorded_verdicts_answer_in_place_of_the_backend(remote: Any, tag: str) -> None:
    scorer = remote()
    recorded = Verdict(5, "old model", digest(Echo("a")))
    log = Log({recorded.digest: recorded})
    with using(log):
        found = [scorer.submit(Echo(content)).result() for content in "ab"]
    assert [verdict.value for verdict in found] == [5, "b"]
    assert BATCHES[tag] == [["b"]]
    assert [verdict for _, verdict in log.seen][-2:] == found


def test_strict_log_never_reaches_the_backend(remote: Any, tag: str) -> None:
    scorer = remote()
    encoded = Image.from_bytes(Image.from_pixels(np.zeros((2, 2, 3), np.uint8)).png())
    with using(Log(strict=True)):
        for request in (Echo("a"), Embed(encoded)):  # hashed here, and in a thread
            with pytest.raises(DataError, match="no verdict of"):
                scorer.submit(request).result()
    assert BATCHES[tag] == []


def test_logs_of_concurrent_tasks_and_threads_do_not_mix(remote: Any) -> None:
    scorer, logs = remote(), [Log() for _ in range(8)]

    async def term(number: int) -> None:
        with using(logs[number]):
            for step in range(3):
                await scorer.score(Echo(f"{number} {step}"))

    async def several(numbers: range) -> None:
        await asyncio.gather(*map(term, numbers))

    threads = [
        threading.Thread(target=asyncio.run, args=(several(range(start, start + 4)),))
        for start in (0, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for number, log in enumerate(logs):
        assert [verdict.value for _, verdict in log.seen] == [f"{number} {s}" for s in range(3)]
    assert current_log() is None
