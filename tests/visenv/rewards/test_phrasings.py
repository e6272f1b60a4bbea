"""Tests the parsers of options and letters on the tables of phrasings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from visenv.rewards.choice import chosen_letter, chosen_letters

FOLDER = Path(__file__).parent


def rows_of(table: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{table}_phrasings.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_no_option_is_misread_and_few_are_unread() -> None:
    rows = rows_of("option")
    read = [(row, chosen_letter(row["text"], row["options"])) for row in rows]
    assert [(row["text"], got) for row, got in read if got not in (None, row["right"])] == []
    unread = [row["text"] for row, got in read if got is None and row["right"]]
    assert len(unread) <= 0.02 * sum(row["right"] is not None for row in rows), unread


def test_no_list_of_letters_is_misread() -> None:
    rows = rows_of("letter")
    wrong = {
        row["text"]: chosen_letters(row["text"])
        for row in rows
        if chosen_letters(row["text"]) != (row["right"] or "")
    }
    assert wrong == {}


def test_tables_have_no_row_twice_and_name_their_sources() -> None:
    for name in ("option", "letter"):
        rows = rows_of(name)
        assert len({(row["text"], str(row.get("options"))) for row in rows}) == len(rows)
        assert all(row["source"] for row in rows)
