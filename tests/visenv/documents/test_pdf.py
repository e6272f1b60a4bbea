"""Tests PDFs read by PDFium: rendering, text, and many kinds of bad input."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import pickle
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from visenv.documents import Document
from visenv.documents.pdf import PDFIUM, PdfDocument
from visenv.errors import DataError

pytestmark = pytest.mark.component("pypdfium2", "reportlab")


def pdf(
    pages: int = 3, size: tuple[float, float] = (400, 600), password: str | None = None
) -> bytes:
    """Return a PDF with these page texts; each page has a red block in its upper left quarter."""
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=size, encrypt=password, invariant=True)
    for page in range(1, pages + 1):
        canvas.setFillColorRGB(1, 0, 0)
        canvas.rect(0, size[1] / 2, size[0] / 2, size[1] / 2, stroke=0, fill=1)
        canvas.setFillColorRGB(0, 0, 0)
        canvas.drawString(20, 40, f"This is page {page}.")
        canvas.drawString(20, 20, "Naïve café")
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


SMALL = pdf()


def with_media_box(box: bytes) -> bytes:
    return SMALL.replace(b"/MediaBox [ 0 0 400 600 ]", b"/MediaBox [ " + box + b" ]")


def test_page_is_rendered_with_the_long_side_asked_for() -> None:
    document = PdfDocument.from_bytes(SMALL, "small")
    assert isinstance(document, Document)
    assert len(document) == 3
    for side in (1, 7, 96, 600, 1120):
        image = document.page_image(2, side)
        assert image.size[1] == side
        assert image.size[0] == max(1, -(-(side * 2 - 1) // 3))  # 400/600 of the side, rounded up
        assert image.pixels.flags.c_contiguous
    pixels = document.page_image(2, 90).pixels
    assert pixels[:44, :29].reshape(-1, 3).tolist() == [[255, 0, 0]] * (44 * 29)
    assert pixels[:44, 31:].min() == 255
    assert document.page_image(3, 600).size == (400, 600)


def test_wide_page_is_measured_by_its_width() -> None:
    document = PdfDocument.from_bytes(pdf(1, (1000, 10)), "wide")
    assert document.page_image(1, 50).size == (50, 1)


def test_text_layer_has_plain_line_ends() -> None:
    document = PdfDocument.from_bytes(SMALL, "small")
    assert document.page_text(3) == "This is page 3.\nNaïve café"


def lines(*texts: str, crop: tuple[float, float, float, float] | None = None) -> PdfDocument:
    """Return a document with one page with these lines, from y = 550 downwards."""
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(400, 600), invariant=True)
    for place, text in enumerate(texts):
        canvas.drawString(40, 550 - 16 * place, text)
    if crop is not None:
        canvas.setCropBox(crop)
    canvas.showPage()
    canvas.save()
    return PdfDocument.from_bytes(buffer.getvalue(), "lines")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("the quarterly invest-", "ment report"), "the quarterly investment report"),
        (("a well-", "known and well-known fact"), "a well-known and well-known fact"),
        (("the state-of-the-", "art plant"), "the state-of-the-art plant"),
        (("born in Baden-", "Baden"), "born in Baden-Baden"),
        (("Bezirks-", "schornsteinfeger"), "Bezirksschornsteinfeger"),
        (("10-", "20 items"), "10-\n20 items"),
        (("a dash -", "and more"), "a dash -\nand more"),
    ],
)
def test_word_that_is_broken_at_the_end_of_a_line_is_whole(
    texts: tuple[str, ...], expected: str
) -> None:
    assert lines(*texts).page_text(1) == expected


def test_text_outside_of_the_page_image_is_no_text_of_the_page() -> None:
    texts = ("seen", *[""] * 20, "hidden below")
    assert lines(*texts).page_text(1) == "seen\nhidden below"
    cropped = lines(*texts, crop=(0, 400, 400, 600))
    assert cropped.page_image(1, 400).size == (400, 200)
    assert cropped.page_text(1) == "seen"
    assert lines(*texts, crop=(0, 0, 400, 400)).page_text(1) == "hidden below"


def test_file_is_called_by_its_name_and_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "annual report.pdf"
    document = PdfDocument.open(path)  # the file is opened later
    assert document.name == "annual report"
    assert PdfDocument.open(path, name="a/b").name == "a/b"
    path.write_bytes(pdf(2))
    assert len(document) == 2
    path.write_bytes(pdf(5))
    assert len(document) == 5


def test_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(SMALL)
    document = PdfDocument.open(path)
    assert document.sha256 == PdfDocument.from_bytes(SMALL, "b").sha256
    assert document.sha256 == hashlib.sha256(SMALL).hexdigest()
    path.write_bytes(pdf(2))
    assert document.sha256 == hashlib.sha256(pdf(2)).hexdigest()
    path.unlink()
    with pytest.raises(DataError, match="document 'a' cannot be opened"):
        _ = document.sha256


@pytest.mark.parametrize("page", [0, -1, 4, 10**9])
def test_pages_that_do_not_exist(page: int) -> None:
    document = PdfDocument.from_bytes(SMALL, "small")
    for read in (document.page_text, lambda each: document.page_image(each, 9)):
        with pytest.raises(DataError, match=f"Page {page} of the document 'small' .* has 3"):
            read(page)


BAD = {
    "empty": (b"", "is not a PDF: the file has 0 bytes"),
    "blank": (b" \n", "is not a PDF"),
    "text": (b"Dear Sir or Madam,\n" * 50, "is not a PDF"),
    "header only": (b"%PDF-1.7\n", "is not a PDF"),
    "encrypted": (pdf(password="secret"), "is encrypted; save a copy without a password"),
    "half": (SMALL[: len(SMALL) // 4], "is not a PDF"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "is not a PDF"),
}


@pytest.mark.parametrize("what", BAD)
def test_pdf_that_cannot_be_opened_names_the_document(what: str, tmp_path: Path) -> None:
    data, message = BAD[what]
    path = tmp_path / "bad.pdf"
    path.write_bytes(data)
    for document in (PdfDocument.from_bytes(data, "bad"), PdfDocument.open(path)):
        with pytest.raises(DataError, match=f"The document 'bad' {message}"):
            len(document)
        with pytest.raises(DataError, match="The document 'bad'"):
            document.page_image(1, 96)


def test_owner_password_alone_is_no_hindrance() -> None:
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, encrypt=StandardEncryption("", "owner"))
    canvas.drawString(20, 20, "open to all")
    canvas.save()
    assert PdfDocument.from_bytes(buffer.getvalue(), "x").page_text(1) == "open to all"


@pytest.mark.parametrize("name", ["gone.pdf", "folder", "a\0b", "x" * 10_000, "~root/x.pdf"])
def test_paths_that_are_no_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=r"The document 'bad' (cannot be opened|is not a file)"):
        len(PdfDocument.open(tmp_path / name, "bad"))


def test_page_that_cannot_be_read_is_named_and_the_others_can() -> None:
    broken = SMALL.replace(b"/Type /Page\n", b"/Type /Pang\n", 1)
    assert broken != SMALL
    document = PdfDocument.from_bytes(broken, "torn")
    for read in (document.page_text, lambda each: document.page_image(each, 9)):
        with pytest.raises(DataError, match=r"^Page 1 of .* 'torn' cannot be read: .*[a-z]\.$"):
            read(1)
    assert document.page_text(2).startswith("This is page 2.")
    assert document.page_image(3, 9).size == (6, 9)


def test_pages_that_are_promised_but_not_there() -> None:
    document = PdfDocument.from_bytes(SMALL.replace(b"/Count 3", b"/Count 5"), "short")
    assert document.page_text(3).startswith("This is page 3.")
    for page in range(4, len(document) + 1):
        with pytest.raises(DataError, match=f"Page {page} of the document 'short' cannot be read"):
            document.page_image(page, 9)


@pytest.mark.parametrize(
    "box", [b"0 0 1e30 1e30", b"0 0 0 0", b"0 0 NaN 3", b"9 9 9 9", b"a b c d"]
)
def test_impossible_page_sizes_become_possible_ones(box: bytes) -> None:
    assert with_media_box(box) != SMALL
    document = PdfDocument.from_bytes(with_media_box(box), "odd")
    assert max(document.page_image(1, 100).size) == 100  # PDFium falls back to US letter


def test_images_too_large_are_refused_before_rendering() -> None:
    document = PdfDocument.from_bytes(SMALL, "small")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for side in (12_000, 10**9, 10**30):
        with pytest.raises(DataError, match=r"Page 1 of .* 'small' would have .* pixels"):
            document.page_image(1, side)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB
    with pytest.raises(DataError, match="a long side of 0 pixels"):
        document.page_image(1, 0)
    # A huge page is allowed, because it is never rendered at its own size.
    huge = PdfDocument.from_bytes(with_media_box(b"0 0 400000 300000"), "huge")
    assert huge.page_image(1, 200).size == (200, 150)


def test_thousand_pages_open_lazily_and_any_page_can_be_read() -> None:
    document = PdfDocument.from_bytes(pdf(1000), "long")
    assert len(document) == 1000
    assert document.page_text(1000).startswith("This is page 1000.")
    assert document.page_image(500, 60).size == (40, 60)


def test_pdf_pickles_as_path_or_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(SMALL)
    for document in (PdfDocument.open(path), PdfDocument.from_bytes(SMALL, "x")):
        image = document.page_image(1, 96)
        copy = pickle.loads(pickle.dumps(document))
        assert (copy.name, len(copy), copy.page_image(1, 96)) == ("x", 3, image)


def test_documents_beyond_those_kept_open() -> None:
    documents = [PdfDocument.from_bytes(pdf(count), str(count)) for count in range(1, 21)]
    for _ in range(2):
        assert [len(document) for document in documents] == list(range(1, 21))
        assert documents[0].page_text(1).startswith("This is page 1.")


def test_threads_render_the_same_pages() -> None:
    documents = [PdfDocument.from_bytes(pdf(count), str(count)) for count in range(1, 12)]
    expected = [document.page_image(1, 64).sha256 for document in documents]
    seen: list[list[str]] = []

    def work() -> None:
        seen.append([document.page_image(1, 64).sha256 for document in documents])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 6


def _read_in_child(document: PdfDocument, answers: multiprocessing.Queue[str]) -> None:
    answers.put(document.page_text(3))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_child_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(SMALL)
    document = PdfDocument.open(path)
    assert len(document) == 3  # opens the file in the parent
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_read_in_child, args=(document, answers))
    child.start()
    assert answers.get(timeout=60).startswith("This is page 3.")
    child.join()
    assert document.page_text(2).startswith("This is page 2.")


def test_memory_does_not_grow() -> None:
    document = PdfDocument.from_bytes(SMALL, "small")

    def resident() -> np.ndarray:
        """Return the memory of this process, and of the child that decodes."""
        pages = [Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in ("self", PDFIUM.pid)]
        return np.array(pages, int) * resource.getpagesize()

    def work() -> np.ndarray:
        for _ in range(800):
            document.page_image(1, 32)
            document.page_text(2)
        return resident()

    work()
    before = work()
    assert np.all(work() - before < 2**20)


@given(
    cut=st.none() | st.integers(0, len(SMALL)),
    edits=st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.binary(min_size=1, max_size=6))),
)
@example(cut=None, edits=[])
@settings(max_examples=150)
def test_mutated_files_are_read_or_refused(cut: int | None, edits: list[tuple[int, bytes]]) -> None:
    data = bytearray(SMALL[:cut])
    for place, new in edits:
        data[place : place + len(new)] = new
    document = PdfDocument.from_bytes(bytes(data), "mutated")
    try:
        pages = len(document)
        assert pages >= 1
        for page in range(1, min(pages, 4) + 1):
            assert np.all(document.page_image(page, 40).pixels <= 255)
            assert isinstance(document.page_text(page), str)
    except DataError as error:
        assert "'mutated'" in str(error)  # noqa: PT017 - both outcomes are right


@given(st.binary(max_size=400))
def test_pdf_of_any_bytes_is_read_or_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="The document 'noise' is"):
        len(PdfDocument.from_bytes(b"%PDF-1.4\n" + data, "noise"))


def test_process_that_ends_with_open_documents_ends_quietly(tmp_path: Path) -> None:
    path = tmp_path / "open.pdf"
    path.write_bytes(SMALL)
    script = (
        "import sys; from visenv.documents.pdf import PdfDocument;"
        "print(len(PdfDocument.open(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == 3
    assert done.stderr == ""
