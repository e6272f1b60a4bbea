"""Crop-and-zoom over pages: what a page shows too small is drawn again, larger."""

from __future__ import annotations

from typing import Literal

from typing_extensions import override

from visenv.images import QWEN_PIXELS, Window
from visenv.types import Image

from .crop import CropZoom, Region
from .pages import PageByIndex

LARGER = 3
"""How many times larger than it is shown a page is drawn before a part of it is cut."""


class PageZoom(CropZoom):
    """The tool of `CropZoom`, which cuts a page from a larger drawing of it.

    A page that `PageByIndex` showed is drawn `LARGER` times as large, as far as the document has
    more detail, and the part is cut from that. Pages side by side, which `PageByQuery` shows, and
    the overview are cut as they are shown. With ``compat="arm"`` everything is, as by the public
    tool.

    Args:
        pages: The tool that shows pages.
        max_pixels: Most pixels of the result, see `CropZoom`.
        compat: See `CropZoom`.
    """

    def __init__(
        self,
        pages: PageByIndex,
        *,
        max_pixels: int = QWEN_PIXELS,
        compat: Literal["arm"] | None = None,
    ) -> None:
        super().__init__(max_pixels=max_pixels, compat=compat)
        self.pages = pages

    @override
    def region_of(self, name: str, picture: Image) -> Region:
        """Return where a picture lies in native pixels, those of the larger drawing for a page."""
        region = super().region_of(name, picture)
        if region.image is not picture:
            return region
        for shown in self.pages.shown:
            if shown.image is picture:
                document = self.pages.library.document(shown.document)
                drawn = document.page_image(shown.page, LARGER * self.pages.long_side)
                return Region(name, drawn, Window.whole(drawn.size))
        return region
