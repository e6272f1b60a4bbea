"""Tests hostile PDF files: small files that fill memory or time, and the documents beside them."""

from __future__ import annotations

import resource
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.environments import few
from visenv.child_process.host import ChildLimits
from visenv.decoding.decoder import DecoderProcess
from visenv.documents import pdf
from visenv.documents.library import FolderLibrary
from visenv.documents.pdf import PdfDocument
from visenv.errors import DataError

pytestmark = [
    pytest.mark.component("pypdfium2"),
    pytest.mark.attack("decoders: a PDF cannot end or stop the process"),
]

LIMITS = ChildLimits(call_s=120, memory_bytes=2**30, data_bytes=2**28, processor_s=2)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lower the limits, so that the tests need little memory and time."""
    decoder = DecoderProcess("PDFium", "visenv.decoding.child.pdf:PdfTarget", LIMITS)
    monkeypatch.setattr(pdf, "PDFIUM", decoder)
    yield
    decoder.close()


def stream(data: bytes, entries: bytes = b"") -> bytes:
    length = b"<<" + entries + b"/Length " + str(len(data)).encode() + b">>"
    return length + b"stream\n" + data + b"\nendstream"


def form(data: bytes, **forms: int) -> bytes:
    entries = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]"
    return stream(data, entries + b"/Resources<<" + xobjects(**forms) + b">>")


def xobjects(**forms: int) -> bytes:
    named = b"".join(f"/{name} {number} 0 R".encode() for name, number in forms.items())
    return b"/XObject<<" + named + b">>"


def document(
    content: bytes, *objects: bytes, resources: bytes = b"", box: str = "0 0 99 99"
) -> bytes:
    """Return a PDF of one page with this content; `objects` have the numbers from 5."""
    page = f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents 4 0 R/Resources<<".encode()
    every = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        page + resources + b">>>>",
        content,
        *objects,
    ]
    data, places = b"%PDF-1.7\n", []
    for number, each in enumerate(every, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + each + b"\nendobj\n"
    table = f"xref\n0 {len(every) + 1}\n0000000000 65535 f \n".encode()
    table += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    end = f"trailer<</Size {len(every) + 1}/Root 1 0 R>>\nstartxref\n{len(data)}\n%%EOF".encode()
    return data + table + end


def doubling(depth: int) -> bytes:
    """Return a page whose forms draw the next form twice, 2 ** depth times in all."""
    forms = [form(b"/X Do /X Do", X=6 + number) for number in range(depth)]
    last = form(b"0 0 m 9 9 l S")
    return document(stream(b"/X Do"), *forms, last, resources=xobjects(X=5))


def image(width: int, height: int, data: bytes, filters: str) -> bytes:
    entries = f"/Type/XObject/Subtype/Image/Width {width}/Height {height}/Filter/{filters}"
    entries += "/ColorSpace/DeviceGray/BitsPerComponent 8"
    picture = stream(data, entries.encode())
    return document(stream(b"99 0 0 99 0 0 cm /X Do"), picture, resources=xobjects(X=5))


def packed(data: bytes) -> bytes:
    return stream(zlib.compress(data, 9), b"/Filter/FlateDecode")


ATTACKS: dict[str, Callable[[], bytes]] = {
    "form that draws itself twice": lambda: document(
        stream(b"/X Do"), form(b"/X Do /X Do", X=5), resources=xobjects(X=5)
    ),
    "two forms that draw each other": lambda: document(
        stream(b"/X Do"), form(b"/Y Do /Y Do", Y=6), form(b"/X Do /X Do", X=5),
        resources=xobjects(X=5),
    ),
    "forms that double": lambda: doubling(40),
    "content that expands": lambda: document(packed(b"0 0 m 9 9 l S " * 30_000_000)),
    "text that expands": lambda: document(
        packed(b"BT /F 9 Tf (" + b"a" * 100_000_000 + b") Tj ET"),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        resources=b"/Font<</F 5 0 R>>",
    ),
    "open brackets": lambda: document(packed(b"[" * 100_000_000)),
    "image of four gigapixels": lambda: image(
        65_535, 65_535, zlib.compress(bytes(1000)), "FlateDecode"
    ),
    "image that expands": lambda: image(
        20_000, 20_000, zlib.compress(bytes(400_000_000), 9), "FlateDecode"
    ),
    "JPEG 2000 of a gigapixel": lambda: image(
        32_768, 32_768,
        bytes.fromhex("ff4fff510029000000008000000080000000000000000000000080000000800000000000"
                      "00000000000107 0101"),
        "JPXDecode",
    ),
    "JBIG2 of four gigapixels": lambda: image(
        65_535, 65_535,
        bytes.fromhex("00000000300001000000130000ffff0000ffff0000000000000000000000"),
        "JBIG2Decode",
    ),
    "pattern in a pattern": lambda: document(
        stream(b"/Pattern cs /P scn 0 0 99 99 re f"),
        stream(
            b"/Pattern cs /P scn 0 0 99 99 re f",
            b"/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep .001"
            b"/YStep .001/Resources<</Pattern<</P 5 0 R>>>>",
        ),
        resources=b"/Pattern<</P 5 0 R>>",
    ),
}  # fmt: skip
"""Functions that make a hostile document; some compress 400 MB."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", few([*ATTACKS], 4))
def test_page_that_fills_memory_or_time_is_shown_or_refused(name: str) -> None:
    data = ATTACKS[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hostile = PdfDocument.from_bytes(data, "hostile")
    for read in (lambda: hostile.page_image(1, 200).pixels, lambda: hostile.page_text(1)):
        try:
            read()
        except DataError as error:
            assert "'hostile'" in str(error)  # noqa: PT017 - both outcomes are right
    # The same process reads the next document.
    good = PdfDocument.from_bytes(document(stream(b"0 0 50 50 re f")), "good")
    assert good.page_image(1, 98).pixels.min() == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_error_names_page_document_and_limits() -> None:
    hostile = PdfDocument.from_bytes(ATTACKS["form that draws itself twice"](), "hostile")
    with pytest.raises(DataError) as error:
        hostile.page_image(1, 200)
    assert str(error.value).startswith("Page 1 of the document 'hostile' cannot be decoded")
    assert "256 MiB of memory, 2 s of processor time and 120 s" in str(error.value)


def test_hostile_document_of_a_folder_costs_only_its_own_pages(tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(ATTACKS["form that draws itself twice"]())
    (tmp_path / "good.pdf").write_bytes(document(stream(b"0 0 50 50 re f")))
    library = FolderLibrary(tmp_path)
    with pytest.raises(DataError, match="'bad'"):
        library.document("bad").page_image(1, 98)
    assert library.document("good").page_image(1, 98).pixels.min() == 0


def test_text_layer_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MOST_CHARACTERS", 1000)
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"

    def of(count: int) -> PdfDocument:
        text = stream(b"BT /F 9 Tf (" + b"a" * count + b") Tj ET")
        data = document(text, font, resources=b"/Font<</F 5 0 R>>", box="0 0 9999 99")
        return PdfDocument.from_bytes(data, "text")

    assert of(900).page_text(1) == "a" * 900
    with pytest.raises(DataError, match=r"Page 1 of .* has a text of 1,100 .*at most 1,000"):
        of(1100).page_text(1)
