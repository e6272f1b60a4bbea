"""Tests the readers that calibrate ArftCoding: what they read, and which processing they get."""

from __future__ import annotations

import numpy as np
import pytest

from tests.environments import few
from visenv.envs.arft.coding.world.plans import NONE, read_problems
from visenv.opencv import cv2
from visenv.types import Pixels

torch = pytest.importorskip("torch")

from benchmarks import arft_readers, line_reader

CASES = ["blur", "none", "noise", "rotation180", "crop"]


def line(text: str = "KT372") -> Pixels:
    pixels = np.full((60, 260, 3), 220, np.uint8)
    cv2.putText(pixels, text, (20, 42), cv2.FONT_HERSHEY_SIMPLEX, 1.2, (40, 40, 40), 3)
    return pixels


def test_filters_that_repair_the_distortion_are_left_out() -> None:
    def count(*without: str, turns: bool = False) -> int:
        return len([*arft_readers.processed(line(), without, turns)])

    # A line has 4 sizes, its inversion, its stretched contrast and two thresholds: 8. With two
    # filters of noise and one of blur it has 4 times as many, and in 4 rotations 16 times.
    assert count("noise", "blur") == 8
    assert (count("noise"), count("blur"), count()) == (16, 24, 32)
    assert count(turns=True) == 4 * 32
    speckled = line()
    speckled[::4, ::3] = 0
    views = arft_readers.processed(speckled, ("noise",))
    black = [int((view[10:-10] < 30).sum()) for view in views]
    assert max(black) > 0, "the specks of noise are still there"


def test_letters_are_decoded_from_columns() -> None:
    """Check CTC's rule: equal neighbors are one letter, and a blank divides two equal ones."""
    reader = line_reader.LineReader()
    alphabet = line_reader.ALPHABET
    places = [alphabet.index(letter) + 1 for letter in "KT3"]
    k, t, three = places
    columns = torch.zeros(9, len(alphabet) + 1)
    for column, place in enumerate([0, k, k, 0, t, 0, t, three, three]):
        columns[column, place] = 1
    assert reader._text(columns) == "KTT3"


def test_lines_of_any_size_are_one_batch() -> None:
    batch = line_reader.batched([line(), line("HARBOR")[:, :200], line()[10:50]])
    assert batch.shape[:3] == (3, 1, line_reader.HEIGHT)
    assert float(batch.max()) <= 1
    assert len(line_reader.LineReader().read([line(), line("HARBOR")])) == 2


def test_second_reader_gets_dark_lines_without_their_contrast() -> None:
    dark = np.rint(line() * 0.01).astype(np.uint8)
    # 220 and 40 levels become 2 and 0, of 255
    assert float(line_reader.batched([dark]).max()) == pytest.approx(2 / 255)


@pytest.mark.soak
def test_second_reader_learns_from_its_lines() -> None:
    """Check that training for six steps makes the loss of CTC smaller."""
    lines, texts = [line("KT372"), line("4817")] * 16, ["KT372", "4817"] * 16
    letters = [line_reader.ALPHABET.index(letter) + 1 for letter in "".join(texts)]

    def loss(epochs: int) -> float:
        reader = line_reader.train(lines, texts, epochs)
        with torch.no_grad():
            columns = reader(line_reader.batched(lines))
        widths = torch.full((32,), columns.shape[0])
        lengths = torch.tensor([len(text) for text in texts])
        wanted = torch.tensor(letters)
        return float(torch.nn.functional.ctc_loss(columns, wanted, widths, lengths))

    assert loss(6) < 0.5 * loss(0)


@pytest.mark.component("tesseract")
def test_tesseract_reads_lines_in_order_and_by_any_processing() -> None:
    texts = ["KT372", "HARBOR", "4817"]
    grays = [next(arft_readers.processed(line(text))) for text in texts]
    assert arft_readers.tesseract(grays) == texts
    assert arft_readers.tesseract([]) == []
    cases = [
        ("KT372", [*arft_readers.processed(line("KT372"))]),
        ("KT372", [*arft_readers.processed(line("4817"))]),
    ]
    assert arft_readers.share_read(cases) == 0.5


@pytest.mark.slow
@pytest.mark.component("tesseract")
@pytest.mark.parametrize("name", few(CASES, 2))
def test_tesseract_reads_what_is_not_distorted_and_what_was_repaired(name: str) -> None:
    problems = read_problems(name)
    case = arft_readers.case_of(problems, 0)
    shown = [(case.answer, [*arft_readers.processed(case.shown, problems)])]
    assert arft_readers.share_read(shown) == (problems == NONE)
    after = [(case.answer, [*arft_readers.processed(case.repaired)])]
    assert arft_readers.share_read(after) == 1
    assert case.measure[1] == 1
    assert (case.measure[0] >= 0.9) == (problems == NONE)
