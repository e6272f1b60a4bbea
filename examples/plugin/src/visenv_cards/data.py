"""Loads a data set of deals from ``decks.jsonl``, with ``cards`` and the number ``asked``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.json_rows import json_object, read_rows
from visenv.data.rows import RowLocation, RowSource, existing_folder, first_files
from visenv.errors import DataError
from visenv.types import Image

from .world import CARDS, COLORS, CardsTruth, deal


class Decks(RowSource):
    """Loads deals from a file.

    Args:
        folder: The folder with ``decks.jsonl``.

    Raises:
        DataError: If there is no such file, or no row can be used.
    """

    ground_truth = CardsTruth

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        (file,) = first_files(existing_folder(folder), ["decks.jsonl"])
        for place, content in read_rows(file, "data"):
            with self.listing_problems(place):
                row = json_object(content)
                sample = deal(*checked(row), name=f"deck-{place.row}")
                self.add_row(place, sample, sample.images)
        self.require_rows(file.parent)

    @override
    def open_images(self, place: RowLocation, images: Any) -> tuple[Image, ...]:
        return tuple(images)


def checked(row: dict[str, Any]) -> tuple[list[str], int]:
    """Return the cards and the number of a row.

    Raises:
        DataError: If one of them is missing or invalid.
    """
    cards, asked = row.get("cards"), row.get("asked")
    if not isinstance(cards, list) or len(cards) != CARDS or not set(cards) <= set(COLORS):
        raise DataError(f"cards must be {CARDS} of {', '.join(COLORS)}, got {cards!r:.80}")
    if type(asked) is not int or not 1 <= asked <= CARDS:
        raise DataError(f"asked must be a number from 1 to {CARDS}, got {asked!r:.80}")
    return cards, asked
