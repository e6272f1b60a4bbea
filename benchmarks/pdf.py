"""Compares the time of reading a PDF in the decoder's child with PDFium in the same process.

    python benchmarks/pdf.py
    python benchmarks/pdf.py --pages 200 --rounds 9

A document of 50 pages is opened, and the text and the image (1,120 pixels) of each page are read:
in a new process, which also starts the child, and in a process that has read another document. The
baseline is the same work with pypdfium2 alone, without a child. Target: at most 1.2 times the
baseline in a new process. Times are in milliseconds; the best round is the closest to an idle
machine. Processor time includes that of the child.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tyro

SIDE = 1120

PEER = """
import numpy as np
import pypdfium2


def read(path):
    document = pypdfium2.PdfDocument(path)
    document.init_forms()
    for page in document:
        page.get_textpage().get_text_range()
        bitmap = page.render(
            scale=(SIDE - 0.5) / max(page.get_size()), rev_byteorder=True, limit_image_cache=True,
            bitmap_maker=pypdfium2.PdfBitmap.new_foreign,
        )
        np.array(bitmap.to_numpy(), np.uint8)
        page.close()
    document.close()
"""

OURS = """
from visenv.documents.pdf import PdfDocument


def read(path):
    document = PdfDocument.open(path)
    for page in range(1, len(document) + 1):
        document.page_text(page)
        document.page_image(page, SIDE)
"""

PROGRAM = """
import json, resource, sys, time

SIDE = {side}


def used():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def timed(path):
    start = time.perf_counter()
    read(path)
    return 1000 * (time.perf_counter() - start)


import visenv.types  # both have what every program of visenv imports
start, before = time.perf_counter(), used()
{read}
read({path!r})
new = 1000 * (time.perf_counter() - start)
print(json.dumps([new, timed({other!r})]))
"""


@dataclass(frozen=True)
class Args:
    """Sets the options of the measurement."""

    pages: int = 50
    """Pages of the document."""
    rounds: int = 7
    """Number of new processes of each kind, in turn."""


def document(pages: int) -> bytes:
    """Return a document with a page of text, a table and a chart for each number."""
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(595, 842), invariant=True)
    for page in range(1, pages + 1):
        canvas.setFont("Helvetica", 10)
        for line in range(36):
            words = " ".join(f"word{(page * 37 + line * 11 + n) % 997}" for n in range(12))
            canvas.drawString(50, 790 - 13 * line, words)
        for bar in range(24):
            canvas.setFillColorRGB(bar / 24, 0.4, 1 - bar / 24)
            canvas.rect(50 + 20 * bar, 80, 14, 10 * (1 + (page * bar) % 17), stroke=1, fill=1)
        canvas.setFillColorRGB(0, 0, 0)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def measured(read: str, paths: list[Path]) -> tuple[float, float, float]:
    """Return the milliseconds of a new process, of its second document, and its processor time."""
    path, other = map(str, paths)
    program = PROGRAM.format(read=read, path=path, other=other, side=SIDE)
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    after = os.times()
    new, again = json.loads(done.stdout)
    processor = after.children_user + after.children_system
    processor -= before.children_user + before.children_system
    return new, again, 1000 * processor


def main(args: Args) -> None:
    """Measure both, in turn, and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "one.pdf", Path(folder) / "other.pdf"]
        for path in paths:
            path.write_bytes(document(args.pages))
        rounds = [(measured(PEER, paths), measured(OURS, paths)) for _ in range(args.rounds)]
    print(
        f"{args.pages} pages, text and image of {SIDE} pixels, ms     pypdfium2    visenv   ratio"
    )
    for column, label in enumerate(("new process", "next document", "processor time")):
        for name, best in (("median", statistics.median), ("best", min)):
            peer, ours = (best([both[side][column] for both in rounds]) for side in (0, 1))
            print(f"{label:30} {name:20} {peer:9.0f} {ours:9.0f} {ours / peer:7.2f}")


if __name__ == "__main__":
    main(tyro.cli(Args))
