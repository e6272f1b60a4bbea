"""Creates a small TextVQA folder of real photographs with questions, without a download.

    python examples/make_photo_vqa.py --out photo_vqa
    visenv train --environments.scenes.data textvqa:photo_vqa

The photographs are installed by scikit-image, scikit-learn and matplotlib. The questions and their
ten answers were written for these photographs; many are about small print. Train and val have no
photograph in common. Use the folder to try training on real images. It is not a benchmark, because
11 photographs are not enough to train a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import PIL.Image
import tyro

Answers = Mapping[str, int]
"""The number of people, out of ten, who give each answer."""


class Photo(NamedTuple):
    """Describes a photograph: its package, its path in the package, and the questions about it."""

    package: str
    path: str
    split: str
    questions: Mapping[str, Answers]


PHOTOS = (
    Photo("skimage", "data/astronaut.png", "train", {
        "what is the first name on the round patch?": {"collins": 8, "collins ashby": 2},
        "which names are along the top of the round patch?": {"collins ashby": 9, "collins": 1},
        "what is the last name along the bottom of the patch?": {"tognini": 9, "hawley": 1},
        "which name is between coleman and tognini on the patch?": {"hawley": 10},
        "what letters are on the wing of the model shuttle?": {"usa": 9, "nasa": 1},
        "what color is the space suit?": {"orange": 10},
    }),
    Photo("skimage", "data/motorcycle_left.png", "train", {
        "what brand is this motorcycle?": {"yamaha": 10},
        "what model name is on the black side panel?": {"maxim": 7, "maxim 400": 3},
        "what number is below the word maxim?": {"400": 9, "40": 1},
        "what is written on the yellow bottle?": {"nu finish car wash": 7, "nu finish": 3},
        "which fruit is named on the blue and white box?": {"clementines": 8, "clementine": 2},
        "what color is the bottle on the top shelf?": {"yellow": 10},
        "how many wheels does the motorcycle have?": {"2": 9, "two": 1},
    }),
    Photo("skimage", "data/page.png", "train", {
        "what is the title of this page?": {"region-based segmentation": 9, "segmentation": 1},
        "what is the first word below the title?": {"let": 9, "let us": 1},
        "markers of the coins and of what else?": {"background": 8, "the background": 2},
        "how many extreme parts of the histogram are named?": {"two": 8, "2": 2},
        "what kind of values does the histogram hold?": {"grey": 6, "grey values": 4},
        "what variable is assigned in the line of code?": {"markers": 10},
    }),
    Photo("skimage", "data/coins.png", "train", {
        "how many rows of coins are there?": {"4": 9, "four": 1},
        "how many coins are in the top row?": {"6": 9, "six": 1},
        "how many coins are there in all?": {"24": 9, "25": 1},
    }),
    Photo("skimage", "data/camera.png", "train", {
        "what is the man looking into?": {"camera": 9, "a camera": 1},
        "what does the camera stand on?": {"tripod": 10},
        "is the man wearing gloves?": {"yes": 10},
        "what color is the man's coat?": {"black": 10},
    }),
    Photo("skimage", "data/coffee.png", "train", {
        "what is in the cup?": {"coffee": 6, "espresso": 4},
        "what color is the inside of the cup?": {"white": 10},
        "what lies on the saucer?": {"spoon": 9, "a spoon": 1},
        "what is the table made of?": {"wood": 10},
    }),
    Photo("sklearn", "datasets/images/china.jpg", "train", {
        "what color are the columns of the tower?": {"red": 10},
        "what floats on the lake?": {"boats": 9, "ships": 1},
        "what color are the roof tiles?": {"orange": 8, "orange and green": 2},
    }),
    Photo("sklearn", "datasets/images/flower.jpg", "train", {
        "what color is the flower?": {"orange": 9, "peach": 1},
        "how many flowers are in full view?": {"1": 8, "one": 2},
    }),
    Photo("matplotlib", "mpl-data/sample_data/grace_hopper.jpg", "val", {
        "what is the last word on the name tag?": {"hopper": 10},
        "what is written on the name tag?": {"como hopper": 9, "hopper": 1},
        "how many rows of ribbons does she wear?": {"3": 8, "2": 2},
        "what color are the stars on the flag?": {"white": 10},
        "what color is the button at the bottom of the jacket?": {"gold": 9, "yellow": 1},
        "is she wearing glasses?": {"yes": 10},
    }),
    Photo("skimage", "data/rocket.jpg", "val", {
        "what color is the rocket?": {"white": 10},
        "how many towers stand around the rocket?": {"4": 9, "four": 1},
    }),
    Photo("skimage", "data/chelsea.png", "val", {
        "what animal is this?": {"cat": 10},
        "what color are the eyes of the animal?": {"green": 7, "yellow": 2, "yellow green": 1},
    }),
)  # fmt: skip


def write(out: Path) -> None:
    """Write the photographs and their questions in the layout of TextVQA.

    Args:
        out: The output folder, which is created if necessary.
    """
    images = out / "train_images"  # contains train and val, as in TextVQA
    images.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[dict[str, object]]] = {"train": [], "val": []}
    for photo in PHOTOS:
        image_id = Path(photo.path).stem
        with PIL.Image.open(str(files(photo.package).joinpath(photo.path))) as opened:
            opened.convert("RGB").save(images / f"{image_id}.jpg", quality=95)
            size = opened.size
        for question, answers in photo.questions.items():
            number = sum(map(len, rows.values()))
            rows[photo.split].append(_row(number, photo.split, image_id, size, question, answers))
    for split, listed in rows.items():
        content = {"dataset_type": split, "dataset_name": "textvqa", "data": listed}
        path = out / f"TextVQA_0.5.1_{split}.json"
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
        print(f"{len(listed)} questions in {path}")


def _row(
    number: int, split: str, image_id: str, size: tuple[int, int], question: str, answers: Answers
) -> dict[str, object]:
    return {
        "question": question,
        "image_id": image_id,
        "image_classes": [],
        "flickr_original_url": "",
        "flickr_300k_url": "",
        "image_width": size[0],
        "image_height": size[1],
        "answers": [answer for answer, people in answers.items() for _ in range(people)],
        "question_tokens": question.rstrip("?").split(),
        "question_id": number,
        "set_name": split,
    }


if __name__ == "__main__":
    tyro.cli(write)
