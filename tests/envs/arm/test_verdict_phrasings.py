"""Tests the parser of verdicts on the table of phrasings."""

from __future__ import annotations

import json
from pathlib import Path

from visenv.envs.arm.verdicts import read_verdict


def test_no_verdict_is_misread_and_few_are_unread() -> None:
    table = Path(__file__).with_name("verdict_phrasings.jsonl")
    rows = [json.loads(line) for line in table.read_text("utf-8").splitlines()]
    read = [(row, read_verdict(row["text"], row["candidates"])) for row in rows]
    assert [(row["text"], got) for row, got in read if got not in (None, row["right"])] == []
    unread = [row["text"] for row, got in read if got is None and row["right"]]
    assert len(unread) <= 0.05 * sum(row["right"] is not None for row in rows), unread
