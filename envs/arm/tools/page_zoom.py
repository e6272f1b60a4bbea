"""Crops and enlarges parts of pages, which are rendered again at a larger size."""

from __future__ import annotations

from typing import Literal

from typing_extensions import override

from visenv.images import QWEN_PIXELS, Window
from visenv.types import Image

from .crop import CropZoom, Region
from .pages import PageByIndex

LARGER = 3
"""Size at which a page is rendered for a crop, relative to its shown size."""


class PageZoom(CropZoom):
    """Implements `CropZoom` with crops from a larger rendering of a page.

    A page that `PageByIndex` showed is rendered at `LARGER` times its size, if the document has
    more detail, and the part is cut from that. Pages side by side, which `PageByQuery` shows, and
    the overview are cut as they are shown. With ``compat="arm"`` all images are, as in the public
    tool.

    Args:
        pages: The tool that shows pages.
        max_pixels: Maximum number of pixels of the result, see `CropZoom`.
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
        """Return the region of a picture in native pixels; a page has those of its rendering."""
        region = super().region_of(name, picture)
        if region.image is not picture:
            return region
        for shown in self.pages.shown:
            if shown.image is picture:
                document = self.pages.library.document(shown.document)
                drawn = document.page_image(shown.page, LARGER * self.pages.long_side)
                return Region(name, drawn, Window.whole(drawn.size))
        return region
