from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from tests.text_documents import TextDocument, page_color
from visenv.documents.document import Document, unknown_document
from visenv.documents.overview import stitch
from visenv.envs.arm.ground_truth import DocumentTruth
from visenv.envs.arm.tools.pages import PageByIndex, PageByQuery
from visenv.errors import ConfigurationError, DataError, ToolError
from visenv.tools.base import Store, Tool, ToolResult
from visenv.types import Image, Sample

TEXTS = [
    "cover",
    "revenue by region: north 12, south 30",
    "staff and training",
    "revenue revenue revenue forecast",
    "glossary",
    "revenue in the long text of a page that says many other things as well",
]


class Shelf:
    """Provides the given documents."""

    def __init__(self, *documents: Document) -> None:
        self._documents = {document.name: document for document in documents}

    def document(self, name: str) -> Document:
        if name not in self._documents:
            raise DataError(unknown_document(name, self._documents))
        return self._documents[name]


class Fixed:
    """Returns the same pages for every query."""

    def __init__(self, *pages: int) -> None:
        self.pages = pages

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        return self.pages


class Unable:
    """Raises an error, like a ranker without an index."""

    def rank(self, document: Document, query: str, count: int) -> Sequence[int]:
        raise DataError("it was never indexed")


class Undecodable(TextDocument):
    """Represents a document whose images turn out to be broken when they are decoded."""

    @override
    def page_image(self, page: int, long_side: int) -> Image:
        return Image.from_bytes(b"no image", f"page {page}")


def report(**options: Any) -> TextDocument:
    return TextDocument("report", TEXTS, **options)


def query(tool: PageByQuery, text: Any = "revenue", name: Any = "report") -> ToolResult:
    return tool.run({"filename": name, "query": text}, Store())


def index(tool: PageByIndex, page: Any = 1, name: Any = "report") -> ToolResult:
    return tool.run({"filename": name, "image_idx": page}, Store())


def shown_pages(image: Image) -> list[int]:
    """Return the pages in an image from left to right, by the colors of the second to last row."""
    row = image.pixels[-2]
    colors = [(int(red), int(green), int(blue)) for red, green, blue in row]
    runs = [color for at, color in enumerate(colors) if at == 0 or colors[at - 1] != color]
    numbers = {page_color(page): page for page in range(1, 2000)}
    return [numbers[color] for color in runs if color in numbers]


# ------------------------------------------------------------------------------------- by query


def test_pages_come_in_rank_order_from_left_to_right() -> None:
    image, text = query(PageByQuery(Shelf(report()))).parts
    assert isinstance(image, Image)
    assert shown_pages(image) == [4, 2, 6]
    assert "Pages 4, 2, 6 of 'report'" in str(text)


def test_image_is_the_stitched_pages() -> None:
    document = report(size=(1654, 2339))
    image, _ = query(PageByQuery(Shelf(document), Fixed(3, 1, 2, 5, 4))).parts
    assert isinstance(image, Image)
    pages = (3, 1, 2, 5, 4)
    shown = [document.page_image(page, 1120) for page in pages]
    assert image == stitch(shown, numbers=pages)
    # A border of 1 px on each side, and a strip of 1120 // 28 rows for the page number.
    assert image.size == (5 * 793 + 4 * 8, 40 + 1122)


def test_page_that_is_alone_is_shown_as_it_is() -> None:
    document = report(size=(1654, 2339))
    image, _ = query(PageByQuery(Shelf(document), Fixed(3))).parts
    assert image == stitch([document.page_image(3, 1120)])


def test_log_gets_document_and_pages() -> None:
    detail = query(PageByQuery(Shelf(report()), pages=2)).detail
    assert detail == {"document": "report", "pages": [4, 2], "document_pages": 6}
    json.dumps(detail)


def test_pages_are_at_most_five_without_doubles_in_rank_order() -> None:
    ranker = Fixed(2, 2, 5, 2, 1, 5, 3, 4, 6)
    assert query(PageByQuery(Shelf(report()), ranker)).detail["pages"] == [2, 5, 1, 3, 4]


def test_search_is_within_the_named_document() -> None:
    other = TextDocument("other", ["revenue everywhere"] * 9)
    result = query(PageByQuery(Shelf(other, report())), "glossary")
    assert result.detail == {"document": "report", "pages": [5], "document_pages": 6}


def test_query_without_a_hit_is_refused_with_advice() -> None:
    with pytest.raises(ToolError, match=r"No page of 'report' fits the query 'zebra'.*1 to 6"):
        query(PageByQuery(Shelf(report())), "zebra")


def test_query_in_a_scan_is_told_that_there_is_no_text() -> None:
    scan = TextDocument("scan", ["", " "])
    with pytest.raises(ToolError, match=r"'scan' has no text layer.*1 to 2"):
        query(PageByQuery(Shelf(scan)), "zebra", name="scan")


@pytest.mark.parametrize("text", ["   ", "?!", "\x00"])
def test_query_without_words_shows_no_page(text: str) -> None:
    with pytest.raises(ToolError, match="it has no words"):
        query(PageByQuery(Shelf(report()), Fixed(1, 2)), text)


@pytest.mark.parametrize(
    ("text", "shares_no_word"),
    [("qxzzv", True), ("revenues", True), ("Revenue?", False), ("x training x", False)],
)
def test_log_tells_that_no_shown_page_has_a_word_of_the_query(
    text: str, shares_no_word: bool
) -> None:
    detail = query(PageByQuery(Shelf(report()), Fixed(4, 3)), text).detail
    assert detail.get("shares_no_word", False) is shares_no_word


@pytest.mark.parametrize("size", [(3000, 4), (5, 1500)])
def test_page_that_is_too_thin_to_be_seen_is_refused(size: tuple[int, int]) -> None:
    shelf = Shelf(report(size=size))
    with pytest.raises(ToolError, match=r"Page 2 of 'report' is too thin .* 100 times as long"):
        index(PageByIndex(shelf), 2)
    with pytest.raises(ToolError, match="None of the pages found can be shown: Page 2 of"):
        query(PageByQuery(shelf, Fixed(2)))
    assert index(PageByIndex(Shelf(report(size=(3000, 60)))), 2).detail["pages"] == [2]


def test_document_that_does_not_exist_names_the_nearest() -> None:
    for name in ("reprot", "../report", "report\x00", "x" * 10_240):
        with pytest.raises(ToolError, match="There is no document called") as caught:
            query(PageByQuery(Shelf(report())), name=name)
        assert "'report'" in str(caught.value)
        assert len(str(caught.value)) < 500


def test_query_of_a_megabyte_is_refused_before_any_search() -> None:
    with pytest.raises(ToolError, match="at most 1000 characters") as caught:
        query(PageByQuery(Shelf(report()), Unable()), "revenue " * 125_000)
    assert len(str(caught.value)) < 500


def test_query_of_a_thousand_characters_is_not() -> None:
    assert query(PageByQuery(Shelf(report())), ("revenue " * 125)[:1000]).detail["pages"]


def test_page_that_cannot_be_rendered_is_left_out_and_named() -> None:
    image, text = query(PageByQuery(Shelf(report(broken=[2])), Fixed(4, 2, 6))).parts
    assert isinstance(image, Image)
    assert shown_pages(image) == [4, 6]
    assert "Pages 4, 6" in str(text)
    assert "Page 2 of 'report' is broken" in str(text)
    result = query(PageByQuery(Shelf(report(broken=[2])), Fixed(4, 2, 6)))
    assert result.detail["pages"] == [4, 6]


@pytest.mark.parametrize(
    "document", [report(broken=[1, 2]), Undecodable("report", TEXTS)], ids=["render", "decode"]
)
def test_query_without_a_page_that_can_be_shown(document: Document) -> None:
    with pytest.raises(ToolError, match="None of the pages found can be shown: "):
        query(PageByQuery(Shelf(document), Fixed(1, 2)))


def test_ranker_that_cannot_search() -> None:
    with pytest.raises(ToolError, match="'report' cannot be searched: it was never indexed"):
        query(PageByQuery(Shelf(report()), Unable()))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "takes filename, query"),
        ({"filename": "report"}, "query: Field required"),
        ({"query": "a"}, "filename: Field required"),
        ({"filename": "report", "query": ""}, "at least 1 character"),
        ({"filename": "report", "query": 3}, "valid string"),
        ({"filename": None, "query": "a"}, "filename: .*valid string"),
        ({"filename": ["report"], "query": {"a": 1}}, "filename: .*; query: "),
        ({"filename": "report", "query": "a", "top_k": 9}, "top_k: Extra inputs"),
    ],
)
def test_arguments_that_are_invalid_get_the_expected_ones(
    arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ToolError, match=problem):
        PageByQuery(Shelf(report())).run(arguments, Store())


# ------------------------------------------------------------------------------------- by index


def test_page_by_its_number() -> None:
    document = report(size=(1654, 2339))
    result = index(PageByIndex(Shelf(document)), 3)
    image, text = result.parts
    assert isinstance(image, Image)
    assert shown_pages(image) == [3]
    assert image.size == (791, 1120)
    assert text == "Page 3 of 'report', which has 6 pages."
    assert result.detail == {"document": "report", "pages": [3], "document_pages": 6}


@pytest.mark.parametrize("page", [0, -1, 7, 10**9, 10**40, -(10**40)])
def test_page_that_does_not_exist_gets_a_list_of_the_pages(page: int) -> None:
    with pytest.raises(ToolError, match="must be from 1 to 6"):
        index(PageByIndex(Shelf(report())), page)


@pytest.mark.parametrize("page", ["3", 3.0, 2.5, True, None, [3], {"page": 3}, "", "one"])
def test_number_that_is_no_integer_is_refused(page: Any) -> None:
    with pytest.raises(ToolError, match=r"image_idx: Input should be a valid integer \(got "):
        index(PageByIndex(Shelf(report())), page)


@pytest.mark.parametrize(
    "document", [report(broken=[2]), Undecodable("report", TEXTS)], ids=["render", "decode"]
)
def test_page_that_cannot_be_shown(document: Document) -> None:
    with pytest.raises(ToolError, match=r"age 2 .*Other pages may still work"):
        index(PageByIndex(Shelf(document)), 2)


def test_document_of_a_page_must_exist() -> None:
    with pytest.raises(ToolError, match="Did you mean 'report'"):
        index(PageByIndex(Shelf(report())), 1, "reports")


# --------------------------------------------------------------------------------------- both tools


def test_published_names_and_parameters() -> None:
    schemas = {tool.name: tool.arguments.model_json_schema() for tool in (PageByQuery, PageByIndex)}
    properties = {
        name: {key: field["type"] for key, field in schema["properties"].items()}
        for name, schema in schemas.items()
    }
    assert properties == {
        "doc_page_retrieval_by_query": {"filename": "string", "query": "string"},
        "doc_page_retrieval_by_index": {"filename": "string", "image_idx": "integer"},
    }
    for schema in schemas.values():
        assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize("options", [{"pages": 0}, {"long_side": 0}])
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))} must be at least 1"):
        PageByQuery(Shelf(report()), **options)


def test_examples_and_random_arguments_fit_the_schema() -> None:
    sample = Sample("s", "?", ground_truth=DocumentTruth(document="report"))
    rng = np.random.default_rng(0)
    for tool in (PageByQuery(Shelf(report())), PageByIndex(Shelf(report()))):
        tool.reset(sample, Store())
        assert tool.arguments.model_validate(tool.example().model_dump()) == tool.example()
        drawn = {tool.random_arguments(rng, Store()).model_dump_json() for _ in range(50)}
        assert len(drawn) > 3
        assert all(json.loads(each)["filename"] == "report" for each in drawn)
    assert {json.loads(each)["image_idx"] for each in drawn} == {1, 2, 3, 4, 5, 6}


def test_tools_pickle() -> None:
    for tool in (PageByQuery(Shelf(report())), PageByIndex(Shelf(report()))):
        again = pickle.loads(pickle.dumps(tool))
        arguments = {"filename": "report", "query": "staff"}
        if isinstance(tool, PageByIndex):
            arguments = {"filename": "report", "image_idx": 3}  # type: ignore[dict-item]
        assert again.run(arguments, Store()).detail["pages"] == [3]


def outcome(tool: Tool[Any], arguments: dict[str, Any]) -> str:
    """Return the text of the result, or of the error if the call was refused."""
    try:
        return str(tool.run(arguments, Store()).parts[-1])
    except ToolError as error:
        return str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["filename", "query", "image_idx", "x"]), JSON))
def test_page_tools_answer_or_refuse_whatever_comes(arguments: dict[str, Any]) -> None:
    for tool in (PageByQuery(Shelf(report())), PageByIndex(Shelf(report()))):
        assert len(outcome(tool, arguments)) < 3000


@given(JSON, st.text(max_size=50))
def test_page_tools_with_any_page_and_query(page: Any, text: str) -> None:
    by_index = PageByIndex(Shelf(report()))
    exists = type(page) is int and 1 <= page <= 6
    said = outcome(by_index, {"filename": "report", "image_idx": page})
    assert said.startswith(f"Page {page} of") == exists
    said = outcome(PageByQuery(Shelf(report())), {"filename": "report", "query": text})
    assert said.startswith(("Pages ", "No page ")) or (text == "" and "query" in said)
