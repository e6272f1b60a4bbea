"""Provides rows, images and writers for the tests of curation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from typing_extensions import override

from visenv.curation.journal import CurationJournal, RowOutcome
from visenv.curation.lines import JsonLines, Row, write_lines
from visenv.curation.step import CurationStep, journal_path
from visenv.policies.scripted import ScriptedPolicy
from visenv.types import Message, Reply, Sampling, TurnRequest


class Replies(ScriptedPolicy):
    """Replies to each row with these replies in order, and records the prompts."""

    def __init__(self, *replies: str | Row | list[Any] | Exception) -> None:
        super().__init__([])
        self.replies = replies
        self.sampling: list[Sampling] = []
        self.conversations: list[list[Message]] = []

    @override
    async def respond(self, session: Any, request: TurnRequest, sampling: Sampling) -> Reply:
        await asyncio.sleep(0)
        self.sampling.append(sampling)
        self.conversations.append(list(session.messages))
        said = self.replies[min(session.taken, len(self.replies) - 1)]
        session.taken += 1
        if isinstance(said, Exception):
            raise said
        cut = said == "CUT"
        text = said if isinstance(said, str) else json.dumps(said)
        reply = Reply.of_text(text)._replace(finish_reason="length" if cut else "stop")
        session.said(reply)
        return reply

    def prompts(self) -> list[str]:
        """Return the last part of the conversation before each reply."""
        return [str(messages[-1].parts[-1]) for messages in self.conversations]


class Kit:
    """Provides a folder and rows, runs a step, and returns the outcome of each row."""

    Replies = Replies

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def image(self, name: str = "a.png", gray: int = 0, size: tuple[int, int] = (8, 6)) -> str:
        path = self.folder / name
        pixels = np.full((size[1], size[0], 3), gray, np.uint8)
        PIL.Image.fromarray(pixels).save(path)
        return name

    def rows(self, rows: Sequence[Row], name: str = "rows.jsonl") -> JsonLines:
        write_lines(self.folder / name, [{"id": f"r{k}", **row} for k, row in enumerate(rows)])
        return JsonLines(self.folder / name)

    def run(
        self, step: CurationStep, rows: Sequence[Row], out: str = "out/out.jsonl"
    ) -> list[RowOutcome]:
        """Run the step; return the outcome of each row."""
        lines, path = self.rows(rows), self.folder / out
        account = step.run(lines, path)
        assert account.lines == len(rows)
        assert account.kept + sum(account.dropped.values()) + sum(account.failed.values()) == len(
            rows
        )
        journal = CurationJournal(journal_path(path), step.name, step.settings())
        outcomes = [journal.outcome(line) for line in lines]
        journal.close()
        assert self.read(out) == [row for outcome in outcomes for row in outcome.rows]
        return outcomes

    def read(self, out: str = "out/out.jsonl") -> list[Row]:
        """Return the rows that were kept."""
        return [line.row for line in JsonLines(self.folder / out)]


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)
