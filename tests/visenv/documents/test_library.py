from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from visenv.documents.library import FolderLibrary
from visenv.documents.page_images import PageImages, page_number
from visenv.errors import DataError

MakeImage = Callable[..., Path]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    return folder


def save(path: Path, value: int = 0, size: tuple[int, int] = (30, 40)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", size, (value, value, value)).save(path, quality=100)
    return path


def value(library: FolderLibrary, name: str, page: int) -> int:
    """Return the gray value of a page that `save` wrote."""
    return int(np.median(library.document(name).page_image(page, 100).pixels))


# ---------------------------------------------------------------------------------- page images


def test_page_images_in_the_published_layout(root: Path) -> None:
    for page in (1, 2, 3):
        save(root / f"report_2019_{page}.png", 10 * page)
    save(root / "other_1.jpg", 90)
    library = FolderLibrary(root)
    assert library.names == ["other", "report_2019"]
    assert len(library.document("report_2019")) == 3
    assert [value(library, "report_2019", page) for page in (1, 2, 3)] == [10, 20, 30]
    assert value(library, "report_2019.pdf", 2) == 20  # the name may end in .pdf


def test_file_types_and_their_order(root: Path) -> None:
    # The order is .jpg, .jpeg, .png, .webp, as in the public code.
    for suffix, gray in ((".webp", 40), (".png", 80), (".jpeg", 120), (".jpg", 160)):
        save(root / f"a_1{suffix}", gray)
        assert value(FolderLibrary(root), "a", 1) == pytest.approx(gray, abs=2)


def test_subfolder_of_page_images(root: Path) -> None:
    save(root / "scan" / "page-01.png", 10)
    save(root / "scan" / "page-02.png", 20)
    save(root / "scan" / "page-10.png", 99)
    for page in range(3, 10):
        save(root / "scan" / f"page-0{page}.png", page)
    library = FolderLibrary(root)
    assert len(library.document("scan")) == 10
    assert value(library, "scan", 10) == 99
    assert value(library, "scan", 2) == 20


def test_page_is_shrunk_to_the_side_asked_for_and_never_enlarged(root: Path) -> None:
    save(root / "a_1.png", size=(300, 400))
    document = FolderLibrary(root).document("a")
    assert document.page_image(1, 100).size == (75, 100)
    assert document.page_image(1, 5000).size == (300, 400)


def test_text_files_beside_the_images_are_the_text_layer(root: Path) -> None:
    save(root / "a_1.png")
    save(root / "a_2.png")
    (root / "a_2.txt").write_text("Größe", encoding="utf-8")
    document = FolderLibrary(root).document("a")
    assert [document.page_text(1), document.page_text(2)] == ["", "Größe"]
    (root / "a_2.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(DataError, match="text of page 2 of 'a'"):
        document.page_text(2)


def test_hash_depends_on_pages_and_texts(root: Path) -> None:
    def content() -> str:
        return FolderLibrary(root).document("a").sha256

    save(root / "a_1.png", 10)
    save(root / "a_2.png", 20)
    hashes = [content()]
    assert content() == hashes[0]
    for change in (
        lambda: save(root / "a_2.png", 21),
        lambda: (root / "a_2.txt").write_text("text"),
        lambda: (root / "a_2.txt").rename(root / "a_1.txt"),
        lambda: (root / "a_2.png").rename(root / "a_3.png"),
    ):
        change()
        hashes.append(content())
    assert len(set(hashes)) == 5
    document = FolderLibrary(root).document("a")
    (root / "a_1.png").unlink()
    with pytest.raises(DataError, match="of 'a' cannot be read"):
        _ = document.sha256


def test_missing_page_and_one_that_does_not_exist(root: Path) -> None:
    save(root / "a_1.png")
    save(root / "a_3.png")
    document = FolderLibrary(root).document("a")
    with pytest.raises(DataError, match="'a' has no image of page 2"):
        document.page_image(2, 100)
    for page in (0, -1, 4, 10**9):
        with pytest.raises(DataError, match=f"pages 1 to 3, there is no page {page}"):
            document.page_image(page, 100)
        with pytest.raises(DataError, match=f"there is no page {page}"):
            document.page_text(page)


def test_page_that_cannot_be_decoded_is_named(root: Path) -> None:
    save(root / "a_1.png")
    whole = (root / "a_1.png").read_bytes()
    (root / "a_1.png").write_bytes(whole[: len(whole) // 2])
    document = FolderLibrary(root).document("a")
    with pytest.raises(DataError, match=r"Page 1 of 'a' cannot be shown: .*a_1\.png") as caught:
        document.page_image(1, 100)
    assert str(root) not in str(caught.value)  # the policy reads this message
    (root / "a_1.png").unlink()
    with pytest.raises(DataError, match="Page 1 of 'a' cannot be shown: No such file"):
        document.page_image(1, 100)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["a_0.png", "a_1.png"], "numbered from 0"),
        (["a_2024.png"], "not a document: only 1 of the pages up to 2024"),
        (["a_1.png", "a_01.png"], "two files for page 1"),
    ],
)
def test_numbers_that_are_no_page_numbers(root: Path, files: list[str], problem: str) -> None:
    for file in files:
        save(root / file)
    with pytest.raises(DataError, match=problem):
        FolderLibrary(root).document("a")


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("a_07", ("a_", 7)),
        ("report_2019_3", ("report_2019_", 3)),
        ("12", ("", 12)),
        ("cover", None),
        ("", None),
        ("a_1b", None),
    ],
)
def test_page_numbers(stem: str, expected: tuple[str, int] | None) -> None:
    assert page_number(stem) == expected


def test_empty_subfolder_is_no_document(root: Path) -> None:
    (root / "empty").mkdir()
    with pytest.raises(DataError, match="'empty' is not a document"):
        FolderLibrary(root).document("empty")
    with pytest.raises(DataError, match="not a document"):
        PageImages("none", {})


# ----------------------------------------------------------------------------------------- PDFs


@pytest.fixture
def pdf() -> bytes:
    """Return a PDF with two pages, "first words" and "second words", made by reportlab."""
    import io

    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(200, 300))
    for text in ("first words", "second words"):
        canvas.drawString(20, 200, text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


@pytest.mark.component("pypdfium2", "reportlab")
def test_pdf_before_page_images_of_its_name(root: Path, pdf: bytes) -> None:
    (root / "report.pdf").write_bytes(pdf)
    save(root / "report_1.png")
    library = FolderLibrary(root)
    document = library.document("report")
    assert document is library.document("report.pdf")
    assert (document.name, len(document)) == ("report", 2)
    assert "second words" in document.page_text(2)
    assert document.page_image(1, 150).size == (100, 150)


@pytest.mark.component("pypdfium2", "reportlab")
@pytest.mark.parametrize("damage", ["empty", "truncated", "not a PDF"])
def test_broken_pdf_is_reported_when_it_is_requested(root: Path, pdf: bytes, damage: str) -> None:
    broken = {"empty": b"", "truncated": pdf[:100], "not a PDF": b"hello"}[damage]
    (root / "report.pdf").write_bytes(broken)
    with pytest.raises(DataError, match="'report'"):
        FolderLibrary(root).document("report")


# ------------------------------------------------------------------------------ names and links


HOSTILE = [
    "",
    ".",
    "..",
    "../secret",
    "../secret.pdf",
    "../library/a",
    "/etc/passwd",
    "a/../../secret",
    "..\\secret",
    "a\x00",
    "a\x00.pdf",
    "\ud800",
    "a" * 10_240,
    "../" * 4096,
    "~root",
    "file:///etc/passwd",
    "%2e%2e/secret",
]


@pytest.mark.attack(
    "policies: a file name in a policy's text is looked up and never joined to a path"
)
@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:20]))
def test_names_do_not_leave_the_folder(root: Path, name: str) -> None:
    save(root / "a_1.png")
    save(root.parent / "secret_1.png")
    (root.parent / "secret.pdf").write_bytes(b"%PDF-1.4")
    with pytest.raises(DataError, match="There is no document called") as caught:
        FolderLibrary(root).document(name)
    assert len(str(caught.value)) < 1000
    str(caught.value).encode()  # must be encodable as UTF-8


@pytest.mark.attack(
    "policies: a file name in a policy's text is looked up and never joined to a path"
)
@given(st.text(max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_names_are_answered_whatever_they_are(root: Path, name: str) -> None:
    save(root / "a_1.png")
    if name not in ("a", "a.pdf"):
        with pytest.raises(DataError, match="There is no document called"):
            FolderLibrary(root).document(name)


def test_links_that_lead_out_are_left_out_and_others_followed(root: Path) -> None:
    outside = root.parent / "outside"
    save(outside / "1.png")
    save(outside / "secret_1.png")
    (outside / "secret.txt").write_text("secret")
    save(root / "here" / "1.png", 50)
    (root / "folder").symlink_to(outside)
    (root / "file_1.png").symlink_to(outside / "secret_1.png")
    (root / "paper.pdf").symlink_to(outside / "secret.txt")
    (root / "here" / "1.txt").symlink_to(outside / "secret.txt")
    (root / "loop").symlink_to(root / "loop")
    (root / "dangling_1.png").symlink_to(root / "nothing.png")
    (root / "again").symlink_to(root / "here")
    library = FolderLibrary(root)
    for name in ("folder", "file", "paper"):
        with pytest.raises(DataError, match="There is no document called"):
            library.document(name)
    assert value(library, "again", 1) == 50
    assert library.document("here").page_text(1) == ""  # its text file is a link to a file outside


def test_links_of_a_download_from_the_hub_are_followed(tmp_path: Path) -> None:
    # The cache of huggingface_hub: each file of a snapshot is a link to a file in blobs.
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "0123abcd" / "documents"
    save(blobs / "1.png", 50)
    (blobs / "aa").write_bytes((blobs / "1.png").read_bytes())
    (tmp_path / "secret.txt").write_text("secret")
    snapshot.mkdir(parents=True)
    (snapshot / "a_1.png").symlink_to("../../../blobs/aa")
    (snapshot / "a_1.txt").symlink_to("../../../secret.txt")
    library = FolderLibrary(snapshot)
    assert value(library, "a", 1) == 50
    assert library.document("a").page_text(1) == ""  # a link to a file that is no blob
    assert "1 links lead out of the folder" in library.note
    blobs.rename(tmp_path / "elsewhere")
    blobs.symlink_to(tmp_path / "elsewhere")  # somebody else's folder, as a snapshot of the hub
    assert FolderLibrary(snapshot).names == []


def test_links_of_a_person_are_followed_on_request(root: Path) -> None:
    save(root.parent / "outside" / "1.png", 50)
    (root / "a_1.png").symlink_to(root.parent / "outside" / "1.png")
    assert FolderLibrary(root).names == []
    assert "follow_links" in FolderLibrary(root).note
    library = FolderLibrary(root, follow_links=True)
    assert (value(library, "a", 1), library.note) == (50, "")


def test_nearest_documents_are_named(root: Path) -> None:
    for name in ("annual_report", "minutes"):
        save(root / f"{name}_1.png")
    library = FolderLibrary(root)
    with pytest.raises(DataError, match=r"called 'anual_report'. Did you mean 'annual_report'\?"):
        library.document("anual_report")
    with pytest.raises(DataError, match="Documents: 'annual_report', 'minutes'"):
        library.document("xyz123")


def test_empty_library_is_reported(root: Path) -> None:
    with pytest.raises(DataError, match="Documents: none"):
        FolderLibrary(root).document("a")


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder of documents"):
        FolderLibrary(tmp_path / "absent")


# -------------------------------------------------------------------------- memory and processes


def test_rendered_pages_are_kept_within_the_budget(root: Path) -> None:
    for page in range(1, 7):
        save(root / f"a_{page}.png", size=(100, 100))
    library = FolderLibrary(root, rendered_bytes=3 * 100 * 100 * 3)
    document = library.document("a")
    for page in [1, 2, 3, 4, 5, 6] * 3:
        document.page_image(page, 200)
        assert library._rendered._images.size <= 90_000
    assert document.page_image(6, 200) is document.page_image(6, 200)


@pytest.mark.slow
def test_memory_stays_flat_over_many_episodes(root: Path) -> None:
    import tracemalloc

    for name in range(20):
        for page in range(1, 4):
            save(root / f"d{name}_{page}.png", size=(30, 40))
    library = FolderLibrary(root, rendered_bytes=50_000)

    def episodes(count: int) -> None:
        for episode in range(count):
            document = library.document(f"d{episode % 20}")
            document.page_image(1 + episode % len(document), 1120)

    episodes(100)
    tracemalloc.start()
    episodes(100)
    before = tracemalloc.get_traced_memory()[0]
    episodes(500)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # Measured from the second hundred on, when the cache is full.
    assert after - before < 15_000


def test_library_and_its_documents_pickle(root: Path) -> None:
    save(root / "a_1.png", 50)
    library = FolderLibrary(root)
    document = library.document("a")
    document.page_image(1, 100)
    assert len(pickle.dumps(library)) < 5000
    assert value(pickle.loads(pickle.dumps(library)), "a", 1) == 50
    assert np.array_equal(
        pickle.loads(pickle.dumps(document)).page_image(1, 100).pixels,
        document.page_image(1, 100).pixels,
    )


def test_forked_child_reads_on(root: Path) -> None:
    save(root / "a_1.png", 50)
    library = FolderLibrary(root)
    assert value(library, "a", 1) == 50
    child = os.fork()
    if child == 0:
        os._exit(0 if value(library, "a", 1) == 50 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
