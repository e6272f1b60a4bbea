"""A build hook of hatchling: README.md as the description on a package index.

A package index shows README.md without the repository, so that relative links lead nowhere. With
the address of the repository, `Repository` in [project.urls] of pyproject.toml, they become links
into it. Without an address, links become plain text and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^):#]+)\)")
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^):#]+)(#[^)]*)?\)")


class ReadmeHook(MetadataHookInterface):
    """Sets the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`, which pyproject.toml declares as dynamic."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        address = metadata.get("urls", {}).get("Repository", "")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": description(text, address.rstrip("/")),
        }


def description(readme: str, address: str) -> str:
    """Return the README with absolute links.

    Args:
        readme: The text of README.md.
        address: The address of the repository, or ``""``.
    """
    if not address:
        return _LINK.sub(r"\1", _PICTURE.sub("", readme))
    text = _PICTURE.sub(rf"![\1]({address}/raw/main/\2)", readme)
    return _LINK.sub(rf"[\1]({address}/blob/main/\2\3)", text)
