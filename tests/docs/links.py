"""Finds links of a page at the root of the repository that lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:)([^)\s]*)\)")


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub derives them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page: str) -> list[str]:
    """Return the links of a page whose file or heading does not exist."""

    def is_broken(link: str) -> bool:
        path, _, anchor = link.partition("#")
        target = ROOT / (path or page)
        if not anchor:
            return not target.exists()
        return not target.is_file() or anchor not in anchors(target.read_text(encoding="utf-8"))

    text = (ROOT / page).read_text(encoding="utf-8")
    return [link for link in LINK.findall(text) if is_broken(link)]
