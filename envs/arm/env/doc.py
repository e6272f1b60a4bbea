"""ArmDoc: judge responses about a document of many pages, retrieving the pages (ARM-Thinker)."""

from __future__ import annotations

from typing import Any

from visenv.documents import Document, Library, PageRanker
from visenv.documents.overview import overview
from visenv.errors import ConfigurationError, DataError
from visenv.grammar import Call
from visenv.tools import Tool
from visenv.types import Image

from ..presets import Preset
from ..tools.crop import ORIGINAL_IMAGE
from ..tools.pages import PageByIndex, PageByQuery
from .judge import Judge


class ArmDoc(Judge):
    """Judge responses about a document, whose pages are retrieved by a query or by number.

    ### Description
    The first image is an overview: thumbnails of all pages, too small to read. Two tools show
    pages: the best for a query, side by side, and one page by its number. One response is judged
    True or False, or the best of several is named. From "ARM-Thinker: Reinforcing Multimodal
    Generative Reward Models with Agentic Tool Use and Visual Reasoning" (arXiv 2512.05111), track
    Multimodal Long Document.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: …</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the overview, then the pages.

    ### Starting state
    A sample drawn by the seed: a procedural report, or a row of the data set named.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"``,
    ``"fixed_bonus"``, all paid at the end (`visenv.envs.arm.rewards`), or ``"outcome"``.

    ### Episode end
    Terminated by an answer; truncated after the preset's turns, the last of which has no tools.

    ### Information
    ``info["step"].metrics`` on the last step: ``accuracy`` and, where the truth names
    evidence pages, ``found`` (all were shown).

    ### Arguments
    See `visenv.envs.arm.make_doc`.

    ### Version history
    v0: first release.
    """

    def pictures(self) -> dict[str, Image]:
        """The overview of the sample's document."""
        pixels, tile = self.preset.overview_pixels, self.preset.thumbnail
        return {ORIGINAL_IMAGE: overview(self._opened(), max_pixels=pixels, largest_tile=tile)}

    def document(self) -> str:
        """The name of the sample's document."""
        return self.truth.document

    def oracle_calls(self) -> list[Call]:
        """A query where it finds all the evidence, otherwise each evidence page by its number."""
        name, evidence, query = self.document(), self.truth.evidence_pages, self.truth.gold_query
        search = self.tools["doc_page_retrieval_by_query"]
        assert isinstance(search, PageByQuery)
        if query and set(evidence) <= set(search.ranker.rank(self._opened(), query, search.pages)):
            return [Call(search.name, {"filename": name, "query": query})]
        return [Call(PageByIndex.name, {"filename": name, "image_idx": page}) for page in evidence]

    def media_hashes(self) -> dict[str, str]:
        """Return the hashes of the sample's images and of its document."""
        return {**super().media_hashes(), "document": self._opened().sha256}

    def metrics(self) -> dict[str, float]:
        """Those of a judge, and ``found``."""
        metrics = super().metrics()
        evidence = self.truth.evidence_pages
        if evidence:
            name = self._opened().name
            shown = {
                page
                for call in self.log.tool_calls
                if call.ok and call.detail["document"] == name
                for page in call.detail["pages"]
            }
            metrics["found"] = float(set(evidence) <= shown)
        return metrics

    def _opened(self) -> Document:
        if not self.document():
            raise DataError(f"Sample {self.sample.id!r} names no document; ArmDoc needs one.")
        document: Document = library_of(self.source).document(self.document())
        return document


def library_of(source: Any) -> Library:
    """The library of a source of samples about documents.

    Raises:
        ConfigurationError: If it has none.
    """
    library = getattr(source, "library", None)
    if not isinstance(library, Library):
        raise ConfigurationError(
            "ArmDoc needs a source with a `library` of documents; "
            f"{type(source).__name__} has none."
        )
    return library


def page_tools(library: Library, ranker: PageRanker, preset: Preset) -> list[Tool[Any]]:
    """The two page tools over a library."""
    side = preset.page_side
    return [
        PageByQuery(library, ranker, pages=preset.pages_found, long_side=side),
        PageByIndex(library, long_side=side),
    ]
