"""The files beside the page: episodes and searched texts in parts, which the page loads on demand.

A page that was opened from a file may not read other files, but may run scripts. So each part is a
script of one call, whose arguments are JSON in a string: nothing in it can become code.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from visenv.viewer.bounded import bounded

EPISODES_IN_PART = 32
TEXTS_IN_PART = 1000


class Store:
    """Writes the parts of a report.

    Args:
        folder: Gets ``episodes-<number>.js`` and ``texts-<number>.js``; older ones are removed.

    Attributes:
        token: Written into every part, so that a page that is still open notices a new report.
        bytes_of_texts: Size of the searched texts.
    """

    def __init__(self, folder: Path) -> None:
        for kind in ("episodes", "texts"):
            for old in folder.glob(f"{kind}-*.js"):
                old.unlink()
        self._folder = folder
        self.token = secrets.token_hex(8)
        self.bytes_of_texts = 0
        self._episodes: list[Any] = []
        self._texts: list[str] = []
        self._counts = {"episodes": 0, "texts": 0}

    def add(self, record: dict[str, Any], text: str) -> None:
        """Add an episode as the page shows it, and the text in which the page searches."""
        self._episodes.append(bounded(record))
        self._texts.append(text)
        if len(self._episodes) == EPISODES_IN_PART:
            self._flush("episodes", self._episodes)
        if len(self._texts) == TEXTS_IN_PART:
            self._flush("texts", self._texts)

    def close(self) -> None:
        """Write the parts that are not full."""
        for kind, rows in (("episodes", self._episodes), ("texts", self._texts)):
            if rows:
                self._flush(kind, rows)

    def _flush(self, kind: str, rows: list[Any]) -> None:
        number = self._counts[kind]
        packed = json.dumps(json.dumps(rows, ensure_ascii=True, allow_nan=False))
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{kind}-{number}.js"
        path.write_text(f'receive("{self.token}","{kind}",{number},{packed})\n', encoding="ascii")
        if kind == "texts":
            self.bytes_of_texts += len(packed)
        self._counts[kind] += 1
        rows.clear()
