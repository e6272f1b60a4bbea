"""Creates the procedural scenes of ZoomVQA."""

from __future__ import annotations

from typing import ClassVar

from visenv.worlds.scenes.asked import AskedScenes


class ZoomScenes(AskedScenes):
    """Creates scenes with plain questions, see `AskedScenes`; no other family has its styles."""

    styles: ClassVar[tuple[str, ...]] = ("beach", "snow", "tiles", "market")

    @property
    def world_version(self) -> int:
        """Return the version: varied scenes replaced those of one style and size in version 2."""
        return 2 if self.world.is_varied else 1
