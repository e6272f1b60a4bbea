"""Defines ArmDoc: judge responses about a long document, retrieving pages (ARM-Thinker).

`WrongPage` is its teacher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.documents import Document, Library, PageRanker
from visenv.documents.overview import overview
from visenv.errors import ConfigurationError, DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.grammar.tool_call import Compat
from visenv.teacher import LapsingTeacher, Teacher
from visenv.tools import Tool
from visenv.types import Image
from visenv.worlds.reports.library import ReportsLibrary

from ..ground_truth import DocumentTruth, JudgingTruth
from ..presets import ArmPreset
from ..tools.crop import ORIGINAL_IMAGE
from ..tools.pages import PageByIndex, PageByQuery, PageZoom
from .base import ArmEnv, JudgingEnv, wrong_verdict


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


@dataclass(frozen=True)
class WrongPage(LapsingTeacher["ArmDoc"]):
    """Finds evidence only on the first pages; otherwise it opens another page and believes it.

    The other page shows the claim of a wrong response, if the library knows what each page shows
    (`ReportsLibrary.values`), and otherwise it is near the evidence. In a share of these episodes
    the teacher opens the right page, but does not believe it. No rewarded episode is about a later
    page, so a filter of the episodes does not show how to judge one.

    Attributes:
        known: The number of pages on which the teacher finds evidence, 0 or more.
        doubted: The share of the episodes about later pages in which it opens the right page, 0 to
            1.

    Raises:
        ConfigurationError: If an option is not in its range.
    """

    summary: ClassVar[str] = (
        "Finds evidence only on the first three pages; for a later page it mostly opens another "
        "one, and gives a wrong verdict."
    )
    rate: float = 1.0
    known: int = 3
    doubted: float = 0.2

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_not_negative("known")
        self.require_share("doubted")

    @override
    def mistaken_turn(self, env: ArmDoc, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if max(env.truth.evidence_pages, default=0) <= self.known:
            return turn
        page, shown = self._opened(env, rng)
        if not page or turn.answer is not None or env.log.tool_calls:
            return wrong_verdict(env, rng, shown)
        arguments = {"filename": env.document(), "query": f"page {page}"}
        return turn._replace(calls=(ToolCall(PageByQuery.name, arguments),))

    def _opened(self, env: ArmDoc, rng: np.random.Generator) -> tuple[int, str]:
        """Return the page that is opened, and what it shows; page 0 if there is no other page."""
        truth = env.truth
        if rng.random() < self.doubted:
            return max(truth.evidence_pages), truth.answer
        others, claims = _distractors(env), set(truth.candidates) - {truth.answer}
        believed = [other for other in others if other[1] in claims]
        pages = believed or others or _pages_near(env, max(truth.evidence_pages))
        return pages[int(rng.integers(len(pages)))] if pages else (0, "")


def _distractors(env: ArmDoc) -> list[tuple[int, str]]:
    """Return the pages that show another value than the answer, with it; empty if unknown."""
    library = library_of(env.source)
    values = library.values(env.document()) if isinstance(library, ReportsLibrary) else ()
    pages = enumerate(values, start=1)
    return [(page, value) for page, value in pages if value != env.truth.answer]


def _pages_near(env: ArmDoc, page: int) -> list[tuple[int, str]]:
    """Return the pages without evidence, one or two before or after a page, and ``""`` for each."""
    pages = range(max(page - 2, 1), min(page + 2, len(env.opened())) + 1)
    return [(near, "") for near in pages if near not in env.truth.evidence_pages]


class ArmDoc(DocumentPages, JudgingEnv):
    """The policy judges responses about a document, and retrieves pages by a query or by number.

    ### Description
    The first image is an overview: thumbnails of all pages, too small to read. One tool shows the
    best pages for a query, side by side; another shows one page by its number. With ``zoom``, a
    third tool enlarges parts of shown pages. The policy judges one response True or False, or names
    the best of several. The task is from "ARM-Thinker: Reinforcing Multimodal Generative Reward
    Models with Agentic Tool Use and Visual Reasoning" (arXiv 2512.05111), track Multimodal Long
    Document.

    ### Action space
    `Unicode`: one whole turn, ``<think>…</think>`` and then one ``<tool_call>`` in JSON, or
    ``<answer>Overall Judgment: …</answer>``.

    ### Observation space
    ``Dict(text=Unicode, images=Sequence(RgbImage))``: the task with the overview, then the pages.

    ### Starting state
    A sample that is drawn with the seed: a procedural report, or a row of a data set.

    ### Reward
    ``"stage2"`` (equation 5, at most 1.5), ``"stage1"`` (equation 4), ``"accuracy_format"`` and
    ``"fixed_bonus"`` are paid at the end (`visenv.envs.arm.rewards`). ``"outcome"`` is the
    accuracy.

    ### Episode end
    The episode terminates with an answer. It is truncated after the preset's number of turns; the
    last turn has no tools.

    ### Information
    ``info["step"].metrics`` contains on the last step: ``accuracy`` and, if the ground truth names
    evidence pages, ``found`` (all of them were shown).

    ### Arguments
    See `visenv.envs.arm.make_doc`.

    ### Version history
    v0: first release.
    """

    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType(
        {"wrong_page": WrongPage}
    )
