"""Provides what the setups of snippets use: data sets of a few rows, and a stub of a model server.

The data sets are those of the tests of their loaders, in their published layouts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import PIL.Image

from tests.visenv.scorers.chat_server import running, said


class Setup:
    """Holds what the setup of a snippet has prepared.

    Attributes:
        replace: Texts of the next block and their replacements, such as a folder for ``<folder>``.
        words: Further words of each ``visenv`` command in the next block, by the command.
        blocks: The Python blocks of the page that have run.
    """

    def __init__(self) -> None:
        self.replace: dict[str, str] = {}
        self.words: dict[str, str] = {}
        self.blocks: list[str] = []
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def replaced(self, text: str) -> str:
        """Return the text with the replacements."""
        for old, new in self.replace.items():
            text = text.replace(old, new)
        return text

    def serve(self, reply: str = "<think> I see. </think><answer>4</answer>") -> str:
        """Start an OpenAI-compatible server that gives one reply, and return its address."""
        server = self._exit.enter_context(running())
        server.script(said(reply))
        return server.url

    def data(self, name: str) -> str:
        """Write the data set of this name in a folder of its name, and return the folder."""
        folder = Path(name)
        if not folder.exists():
            folder.mkdir()
            DATA[name](folder)
        return name

    def judge_module(self) -> None:
        """Write ``mymodule.py`` with ``make_judge``, and ``items.jsonl`` with a right answer."""
        Path("mymodule.py").write_text(_JUDGE, encoding="utf-8")
        item = {"question": "2 + 2?", "references": ["4"], "answer": "4", "truth": True}
        self.file("items.jsonl", item)

    def file(self, name: str, *rows: Any) -> str:
        """Write a file with a JSON object in each line, and return its name."""
        place = Path(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return name


def media() -> None:
    """Write two photographs, a document and a video, to which the rows of a page refer."""
    import cv2
    import numpy as np
    from reportlab.pdfgen.canvas import Canvas

    for folder in ("photos", "manuals", "clips"):
        Path(folder).mkdir()
    for number in (1, 2):
        PIL.Image.new("RGB", (320, 240), (90 * number, 40, 40)).save(f"photos/{number}.png")
    canvas = Canvas("manuals/pump.pdf")
    for text in ("The pump needs ISO VG 46.", "8 bolts hold the cover."):
        canvas.drawString(100, 700, text)
        canvas.showPage()
    canvas.save()
    writer = cv2.VideoWriter("clips/door.mp4", cv2.VideoWriter.fourcc(*"mp4v"), 5, (64, 48))
    for level in range(0, 200, 20):
        writer.write(np.full((48, 64, 3), level, np.uint8))
    writer.release()


_JUDGE = """
from visenv.scorers import Judge, YesNo


def make_judge(scorer):
    judge = Judge(scorer, "Does {answer} answer {question}?", YesNo())

    async def score(item):
        return float(await judge.ask(question=item.question, answer=item.answer) == "yes")

    return score
"""


def _armbench(folder: Path) -> None:
    from tests.envs.arm.datasets.test_armbench import (
        DOCUMENT,
        FOLLOWING,
        PERCEPTION,
        photo,
        row,
        write,
    )

    photo(folder / "shots/a.jpg")
    for page in (1, 2):
        photo(folder / "documents" / f"2023.report_{page}.jpg")
    write(folder, PERCEPTION, row(1))
    write(folder, DOCUMENT, row(1, document="2023.report.pdf"))
    write(folder, FOLLOWING, row(1, "single_rm", constraints=[{"value": "be short"}]))


def _hotpotqa(folder: Path) -> None:
    from tests.envs.arft.datasets.test_multi_hop import HOTPOT, write

    write(folder, "hotpot_dev_distractor_v1.json", HOTPOT)


def _mp_docvqa(folder: Path) -> None:
    from tests.envs.arm.datasets.test_mp_docvqa import PAGES, challenge, write

    (folder / "images").mkdir()
    for page in PAGES:
        PIL.Image.new("RGB", (40, 60)).save(folder / "images" / f"{page}.jpg")
    write(folder, challenge(1))


def _musique(folder: Path) -> None:
    from tests.envs.arft.datasets.test_multi_hop import MUSIQUE, write

    write(folder, "musique_ans_v1.0_dev.jsonl", MUSIQUE)


def _mat_coding(folder: Path) -> None:
    from tests.envs.arft.datasets.test_mat_coding import benchmark, row

    benchmark(folder, row())


def _mat_search(folder: Path) -> None:
    from tests.envs.arft.datasets.test_mat_search import benchmark, row

    benchmark(folder, row())


def _mme_realworld(folder: Path) -> None:
    from tests.envs.arm.datasets.test_large_images import mme, write_mme

    for name in ("MME_RealWorld.json", "MME_RealWorld_Lite.json"):
        write_mme(folder, mme(1), name=name)


def _hrbench(folder: Path) -> None:
    from tests.visenv.data.test_hrbench import row, table

    for size in ("4k", "8k"):
        table(folder / f"hr_bench_{size}.tsv", [row(0)])


def _pdf(folder: Path) -> None:
    from tests.envs.arm.datasets.test_pdf_questions import GOOD, fill

    fill(folder, [GOOD])


def _textvqa(folder: Path) -> None:
    from tests.envs.zoom_vqa.datasets.test_textvqa import photo, release, row

    for number, split in enumerate(("train", "val")):
        photo(folder / "train_images" / f"{number}.jpg", (400, 300))
        release(folder, [row(number, str(number), set_name=split)], split)


def _vlmeval(folder: Path) -> None:
    from tests.envs.arm.datasets.test_vlmeval import row, write

    write(folder, row(1, answer="4", question_type="free_form"), name="MathVista_MINI")


def _vstar(folder: Path) -> None:
    from tests.visenv.data.test_vstar import annotate

    for number in range(2):
        annotate(folder, "direct_attributes", f"sa_{number}")


def _argos(name: str) -> Callable[[Path], object]:
    def write(folder: Path) -> object:
        from tests.envs.argos.datasets import test_benchmarks

        return getattr(test_benchmarks, name)(folder)

    return write


DATA: dict[str, Callable[[Path], object]] = {
    "armbench": _armbench,
    "blink": _argos("blink"),
    "hotpotqa": _hotpotqa,
    "hrbench": _hrbench,
    "mat_coding": _mat_coding,
    "mat_search": _mat_search,
    "mme_realworld": _mme_realworld,
    "mp_docvqa": _mp_docvqa,
    "musique": _musique,
    "pdf": _pdf,
    "pixmo_count": _argos("pixmo_count"),
    "textvqa": _textvqa,
    "vlmeval": _vlmeval,
    "vstar": _vstar,
}
"""Maps the name of a data set to a function that writes a few rows of it in a folder."""
