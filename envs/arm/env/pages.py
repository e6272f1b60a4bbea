"""Defines the shared parts of environments with documents: overview, page tools and evidence."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from visenv.documents import Document, Library, PageRanker
from visenv.documents.overview import overview
from visenv.errors import ConfigurationError, DataError
from visenv.grammar import ToolCall
from visenv.grammar.tool_call import Compat
from visenv.tools import Tool
from visenv.types import Image

from ..ground_truth import DocumentTruth, JudgingTruth
from ..presets import ArmPreset
from ..tools.crop import ORIGINAL_IMAGE
from ..tools.page_zoom import PageZoom
from ..tools.pages import PageByIndex, PageByQuery
from .base import ArmEnv


class DocumentPages(ArmEnv):
    """Implements a mixin for environments whose samples use a document of the source's ``library``.

    The images of the sample are shown, the first of which is its overview; a sample without images
    gets an overview that is created from the pages of its document. `metrics` contains ``found`` if
    the ground truth names evidence pages: 1 if all were shown.
    """

    @override
    def pictures(self) -> dict[str, Image]:
        """Return the images of the sample, or an overview of its document."""
        if self.sample.images:
            return super().pictures()
        pixels, tile = self.preset.overview_pixels, self.preset.thumbnail
        return {ORIGINAL_IMAGE: overview(self.opened(), max_pixels=pixels, largest_tile=tile)}

    @override
    def document(self) -> str:
        """Return the name of the sample's document."""
        return self._about().document

    @override
    def oracle_calls(self) -> list[ToolCall]:
        """Return a query if it finds all the evidence, otherwise a call for each evidence page."""
        name, evidence = self.document(), self._about().evidence_pages
        query = self._about().gold_query
        search = self.tools[PageByQuery.name]
        assert isinstance(search, PageByQuery)
        if query and set(evidence) <= set(search.ranker.rank(self.opened(), query, search.pages)):
            return [ToolCall(search.name, {"filename": name, "query": query})]
        return [
            ToolCall(PageByIndex.name, {"filename": name, "image_idx": page}) for page in evidence
        ]

    @override
    def media_hashes(self) -> dict[str, str]:
        """Return the hashes of the sample's images and of its document."""
        return {**super().media_hashes(), "document": self.opened().sha256}

    @override
    def metrics(self) -> dict[str, float]:
        """Return the metrics of the task, and ``found``."""
        metrics = super().metrics()
        evidence = self._about().evidence_pages
        if evidence:
            name = self.document()
            shown = {
                page
                for call in self.log.tool_calls
                if call.ok and call.detail.get("document") == name
                for page in call.detail["pages"]
            }
            metrics["found"] = float(set(evidence) <= shown)
        return metrics

    def opened(self) -> Document:
        """Return the sample's document.

        Raises:
            DataError: If the sample names no document, or it cannot be opened.
        """
        if not self.document():
            task = type(self).__name__
            raise DataError(f"Sample {self.sample.id!r} has no document; {task} needs one.")
        document: Document = library_of(self.source).document(self.document())
        return document

    def _about(self) -> JudgingTruth | DocumentTruth:
        truth = self.sample.ground_truth
        assert isinstance(truth, JudgingTruth | DocumentTruth)
        return truth


def library_of(source: Any) -> Library:
    """Return the library of a source of samples about documents.

    Raises:
        ConfigurationError: If the source has no library.
    """
    library = getattr(source, "library", None)
    if not isinstance(library, Library):
        raise ConfigurationError(
            "An environment about documents needs a source with a `library` of documents; "
            f"{type(source).__name__} has none."
        )
    return library


def page_tools(
    library: Library, ranker: PageRanker, preset: ArmPreset, zoom: bool, compat: Compat
) -> list[Tool[Any]]:
    """Return the two page tools over a library, and with `zoom` the zoom tool.

    Raises:
        ConfigurationError: If `zoom` is neither true nor false.
    """
    if not isinstance(zoom, bool):
        raise ConfigurationError(f"zoom must be true or false, got {zoom!r}.")
    side = preset.page_side
    search = PageByQuery(library, ranker, pages=preset.pages_found, long_side=side)
    single = PageByIndex(library, long_side=side)
    if not zoom:
        return [search, single]
    return [search, single, PageZoom(single, max_pixels=preset.image_pixels, compat=compat)]
