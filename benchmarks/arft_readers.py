"""Measures the distortions of ArftCoding with readers that are not part of visenv.

    python benchmarks/arft_readers.py [samples] [problem ...]

It needs the program ``tesseract``. Each reader gets the line with the answer, cut out of the
picture at the size at which the picture is shown. An answer counts as read if any processing of the
line gives it exactly, apart from blanks.

shown       tesseract with rescaling, inversion, contrast, thresholds, denoising and sharpening,
            but without those that repair the distortion
processed   tesseract with all of them, and rotations of rotated pictures
second      a line reader that was trained on undistorted lines (`benchmarks.line_reader`)
repaired    tesseract after the reference program
measure     the world's measure (`legibility.py`), as shown / after the reference program
levels      the largest range of gray levels of a line as shown, with its ink and its paper
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.line_reader import LineReader, train
from visenv.envs.arft.coding.ground_truth import CodingTruth
from visenv.envs.arft.coding.repairs import repaired
from visenv.envs.arft.coding.world import PLANS, Problems, kinds
from visenv.envs.arft.coding.world.canvas import TextBox
from visenv.envs.arft.coding.world.legibility import share_as_repaired, share_as_shown
from visenv.envs.arft.coding.world.plans import CROP, NONE, named, read_problems
from visenv.envs.arft.coding.world.questions import VIEW, procedural
from visenv.images import shrink
from visenv.opencv import cv2
from visenv.types import Pixels, QuestionTruth, Sample

Gray = NDArray[np.uint8]
HELD_OUT = 0xC41D
"""Separates the seeds of this script from those with which ranges were tried."""
LINES = 1600
"""Number of undistorted lines on which the second reader is trained."""
_HEIGHTS = (16, 24, 40, 64)
_AROUND = 0.35
_BATCH = 400


class Case(NamedTuple):
    """Holds the lines of one sample.

    Attributes:
        answer: The answer without blanks.
        shown: The line as shown, with the problems.
        repaired: The line after the reference program.
        measure: The share of the answer that is legible, as shown and after the program.
        levels: Range of the gray levels of the line as shown, with its ink and its paper.
    """

    answer: str
    shown: Pixels
    repaired: Pixels
    measure: tuple[float, float]
    levels: int


def box_of(sample: Sample) -> TextBox:
    """Return the position of the answer in a picture without problems."""
    box = sample.truth_as(QuestionTruth).target_box
    assert box is not None
    return TextBox(*map(int, box))


def line_at(pixels: Pixels, place: TextBox, native: bool) -> Pixels:
    """Return the line at a place with a margin, at the size at which the picture is shown."""
    around = round(_AROUND * min(place.right - place.left, place.bottom - place.top))
    line = pixels[
        place.top - around : place.bottom + around, place.left - around : place.right + around
    ]
    height, width = line.shape[:2]
    return line if native else shrink(line, (round(width / VIEW), round(height / VIEW)))


def case_of(problems: Problems, seed: int) -> Case:
    """Return the lines of a sample with these problems."""
    world = procedural()
    clean, sample = world.made(problems, np.random.default_rng([HELD_OUT, seed]))
    made, pixels = sample.truth_as(CodingTruth).distortions, sample.images[0].pixels
    box = box_of(clean)
    place = kinds.moved(box, clean.images[0].size, made)
    native = problems == CROP
    shown = line_at(pixels, place, native=False)
    gray = cv2.cvtColor(shown, cv2.COLOR_RGB2GRAY)
    levels = int(gray.max()) - int(gray.min())
    measure = (
        share_as_shown(world.pictures, clean, pixels, made),
        share_as_repaired(world.pictures, clean, pixels, made, problems),
    )
    return Case(
        _letters(clean.answers[0]),
        shown,
        line_at(repaired(pixels, made), box, native),
        measure,
        levels,
    )


def processed(line: Pixels, without: Sequence[str] = (), turns: bool = False) -> Iterator[Gray]:
    """Yield a line after every processing, except those that repair a distortion.

    Args:
        line: uint8 ``[height, width, 3]``.
        without: The distortions whose repairs are left out.
        turns: Whether to rotate the line, too; the rotations come in turn.
    """
    gray = np.asarray(cv2.cvtColor(line, cv2.COLOR_RGB2GRAY), np.uint8)
    views = [np.ascontiguousarray(np.rot90(gray, turn)) for turn in (range(4) if turns else (0,))]
    for versions in zip(*(_versions(view, without) for view in views), strict=True):
        yield from versions


def _versions(view: Gray, without: Sequence[str]) -> Iterator[Gray]:
    """Yield a rotation of a line after every processing."""
    for base in map(_gray, _filtered(view, without)):
        for height in _HEIGHTS:
            yield _scaled(base, height)
        large = _scaled(base, 40)
        yield 255 - large
        low, high = np.percentile(large, (2, 98))
        stretched = (large - low) * 255.0 / max(high - low, 1)
        yield np.clip(stretched, 0, 255).astype(np.uint8)
        yield _gray(cv2.threshold(large, 0, 255, cv2.THRESH_OTSU)[1])
        mean, binary = cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY
        yield _gray(cv2.adaptiveThreshold(large, 255, mean, binary, 31, 5))


def _filtered(view: Gray, without: Sequence[str]) -> Iterator[Any]:
    """Yield a line, and the line after each filter that repairs none of the given distortions."""
    yield view
    if "noise" not in without:
        yield cv2.medianBlur(view, 3)
        yield cv2.GaussianBlur(view, (0, 0), 1.0)
    if "blur" not in without:
        yield cv2.addWeighted(view, 2.5, cv2.GaussianBlur(view, (0, 0), 2.0), -1.5, 0)


def _gray(levels: Any) -> Gray:
    return np.asarray(levels, np.uint8)


def tesseract(lines: Sequence[Gray]) -> list[str]:
    """Return what tesseract reads on lines, without blanks."""
    texts: list[str] = []
    for start in range(0, len(lines), _BATCH):
        batch = lines[start : start + _BATCH]
        with tempfile.TemporaryDirectory() as folder:
            names = [str(Path(folder) / f"{place}.png") for place in range(len(batch))]
            for name, line in zip(names, batch, strict=True):
                cv2.imwrite(name, line)
            listed = Path(folder) / "lines.txt"
            listed.write_text("\n".join(names) + "\n")
            command = ["tesseract", str(listed), "stdout", "--psm", "7", "--dpi", "150"]
            env = {**os.environ, "OMP_THREAD_LIMIT": "1"}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        texts += map(_letters, done.stdout.split("\f")[: len(batch)])
    return texts


def share_read(cases: Sequence[tuple[str, Iterable[Gray]]]) -> float:
    """Return the share of cases, an answer and its processed lines, that tesseract reads.

    The remaining lines of an answer that was read are skipped.
    """
    unread = [(answer, iter(lines)) for answer, lines in cases]
    read = 0
    while unread:
        batch = [(case, line) for case in unread if (line := next(case[1], None)) is not None]
        texts = tesseract([line for _, line in batch])
        unread = [case for (case, _), text in zip(batch, texts, strict=True) if text != case[0]]
        read += len(batch) - len(unread)
    return read / len(cases)


def second_reader() -> LineReader:
    """Train the second reader on lines of undistorted pictures, a margin at random."""
    world = procedural()
    lines, texts = [], []
    for seed in range(LINES // 4):
        rng = np.random.default_rng([HELD_OUT, 1, seed])
        pictures = world.pictures
        text = pictures.write(rng)
        for _ in range(4):
            clean = pictures.draw(rng, text, False)
            lines.append(line_at(clean.images[0].pixels, box_of(clean), native=False))
            texts.append(_letters(clean.answers[0]))
            text = pictures.rewrite(rng, text)
    return train(lines, texts)


def row(problems: Problems, samples: int, reader: LineReader) -> str:
    """Return a row of the table."""
    cases = [case_of(problems, seed) for seed in range(samples)]
    shown = [(case.answer, processed(case.shown, problems)) for case in cases]
    turned = any(name in kinds.TURNS for name in problems)
    everything = [(case.answer, processed(case.shown, turns=turned)) for case in cases]
    after = [(case.answer, processed(case.repaired)) for case in cases]
    second = reader.read([case.shown for case in cases])
    rates = [
        share_read(shown),
        share_read(everything),
        float(np.mean([case.answer == text for case, text in zip(cases, second, strict=True)])),
        share_read(after),
    ]
    before, later = (np.mean([case.measure[k] >= 0.9 for case in cases]) for k in (0, 1))
    levels = max(case.levels for case in cases)
    told = " | ".join(f"{100 * rate:.0f}" for rate in rates)
    return f"| {named(problems)} | {told} | {100 * before:.0f} / {100 * later:.0f} | {levels} |"


def _scaled(gray: Gray, height: int) -> Gray:
    """Return a line whose letters are about this high, with a border."""
    factor = height / (gray.shape[0] * 0.6)
    how = cv2.INTER_CUBIC if factor > 1 else cv2.INTER_AREA
    large = cv2.resize(gray, None, fx=factor, fy=factor, interpolation=how)
    return np.asarray(cv2.copyMakeBorder(large, 10, 10, 10, 10, cv2.BORDER_REPLICATE), np.uint8)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.upper() if letter.isalnum())


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    samples = int(arguments[0]) if arguments else 60
    plan = [read_problems(text) for text in arguments[1:]] or [*PLANS["train"]]
    reader = second_reader()
    print("| problems | shown | processed | second | repaired | measure | levels |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for problems in [NONE, *(each for each in plan if each != NONE)]:
        print(row(problems, samples, reader), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
