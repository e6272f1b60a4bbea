"""Creates judging items: responses in a seeded order, in the layout of ARMBench-VL.

An item is ``{"idx", "rm_tag", "question", "preds", "gt", "images", …}``, where ``gt`` is the number
of the right response, from 1, or ``"True"``/``"False"`` for a single one. Environments use the
items with ``data="armbench:<folder>"`` (`visenv.envs.arm.datasets.armbench`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import Row, copy_image
from visenv.curation.step import CurationStep, seed_of
from visenv.errors import UnknownNameError
from visenv.types import Image

from ..datasets.armbench import TRACKS
from .rows import images_of, short_text, without


def arranged(right: str, wrong: Sequence[str], seed: int) -> tuple[list[str], int]:
    """Return all responses in an order drawn with `seed`, and the right one's number, from 1."""
    order = np.random.default_rng(seed).permutation(1 + len(wrong))
    responses = [right, *wrong]
    return [responses[place] for place in order], int(np.argmin(order)) + 1


def judging_row(row: Row, tag: str, preds: Sequence[str], gt: int | str, folder: Path) -> Row:
    """Return one item; other fields of `row` are copied to it.

    Args:
        row: A row with ``id``, ``question`` and ``images``.
        tag: The ``rm_tag``.
        preds: The responses.
        gt: The right response, or the verdict.
        folder: The output folder. The images are copied to ``images/`` in it, because all files of
            a benchmark must be in its folder.

    Raises:
        DataError: If an image cannot be read.
    """
    return {
        **row,
        "idx": row["id"],
        "rm_tag": tag,
        "preds": list(preds),
        "gt": gt,
        "images": [_copied(Path(path), folder) for path in images_of(row)],
    }


def check_track(track: str) -> str:
    """Return the name of a track, after checking that it exists.

    Raises:
        UnknownNameError: If there is no such track.
    """
    if track not in TRACKS:
        raise UnknownNameError("track of ARMBench-VL", track, TRACKS)
    return track


@dataclass(eq=False)
class MakePairs(CurationStep):
    """Creates judging items from preference pairs without a writer, to train a judge."""

    name: ClassVar[str] = "arrange"

    folder: Path
    both_orders: bool = False
    """Write each pair in both orders, as the paper does with LLaVA-Critic's pairs, instead of in
    one random order.
    """
    seed: int = 0
    """Seed of the order."""

    @override
    def settings(self) -> dict[str, Any]:
        return {"both_orders": self.both_orders, "seed": self.seed}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        short_text(row, "question")
        pair = [short_text(row, "chosen"), short_text(row, "rejected")]
        plain = without(row, "chosen", "rejected")
        if not self.both_orders:
            seed = seed_of("arrange", self.seed, row["id"])
            preds, gt = arranged(pair[0], pair[1:], seed)
            return kept(judging_row(plain, "pair_rm", preds, gt, self.folder))
        return kept(
            *(
                judging_row(
                    {**plain, "id": f"{row['id']}/{gt}"}, "pair_rm", pair[::step], gt, self.folder
                )
                for gt, step in ((1, 1), (2, -1))
            )
        )


def _copied(path: Path, folder: Path) -> str:
    """Copy an image file into `folder`, once, and return the copy; broken files raise an error."""
    _ = Image.from_file(path).size  # reads the header
    return str(copy_image(path, folder))
