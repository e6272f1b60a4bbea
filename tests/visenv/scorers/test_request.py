"""Tests digests of requests: they depend on the content alone, in every process and release."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from visenv.errors import ImageError
from visenv.scorers.request import Embed, Generate, LogProbs, ScoreRequest, digest, is_cheap
from visenv.types import Image, Message

PIXELS = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
TALK = (Message("system", ("rules",)), Message("user", ("a", Image.from_pixels(PIXELS), "b")))


def test_digests_are_those_of_the_first_release() -> None:
    # A change of these values makes every saved verdict and every cache useless.
    assert digest(Generate((Message("user", ("hello",)),))) == (
        "b03cdcb6e5fb55f796a4ff8a89ecbaa30e0f24f130d65da7d66e311a7a3121fe"
    )
    assert digest(LogProbs(TALK, "yes")) == (
        "d5f379bd0050dee09795a8930e95c75cf70c6574dddceb14e0da8360bd2adb5e"
    )
    assert digest(Embed("x")) == "5c6d49015052662a19532158f5fc9bf6339e945e87a89dd5a43e02fadab4c01d"


@pytest.mark.slow
def test_digest_is_the_same_in_another_process() -> None:
    program = (
        "from visenv.scorers import Generate, digest\nfrom visenv.types import Message\n"
        "print(digest(Generate((Message('user', ('hello',)),), stop=('a', 'b'))))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert seen == {digest(Generate((Message("user", ("hello",)),), stop=("a", "b")))}


def test_digest_of_an_image_is_of_its_pixels(tmp_path: Path) -> None:
    shown = Image.from_pixels(PIXELS)
    file = tmp_path / "a.png"
    file.write_bytes(shown.png())
    same = {digest(Embed(each)) for each in (shown, Image.from_file(file))}
    assert same == {digest(Embed(Image.from_bytes(shown.png())))}
    other = PIXELS.copy()
    other[0, 0, 0] += 1
    assert digest(Embed(Image.from_pixels(other))) not in same
    turned = Image.from_pixels(PIXELS.reshape(5, 4, 3).copy())
    assert digest(Embed(turned)) not in same


def test_digest_raises_for_an_image_that_cannot_be_decoded() -> None:
    with pytest.raises(ImageError):
        digest(Embed(Image.from_bytes(b"no image")))


@dataclass(frozen=True)
class Old(ScoreRequest):
    kind: ClassVar[str] = "thing"
    boxes: Any
    name: str = "n"


@dataclass(frozen=True)
class Renamed(ScoreRequest):
    kind: ClassVar[str] = "thing"
    boxes: Any
    name: str = "n"
    added: tuple[int, ...] = ()
    flag: bool = False


def test_digest_survives_a_new_name_and_a_new_field_with_a_default() -> None:
    assert digest(Old([1, 2.5])) == digest(Renamed([1, 2.5]))
    assert digest(Renamed([1, 2.5], added=(1,))) != digest(Old([1, 2.5]))
    assert digest(Renamed([1, 2.5], flag=0)) != digest(Old([1, 2.5]))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Truth:
    count: int


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], [1.0]),
        ([1], [True]),
        ("1", 1),
        ([[1], 2], [1, [2]]),
        ({"$image": "x"}, ["$image", "x"]),
        ({"a": 1}, [["a", 1]]),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2, np.float32), np.zeros(2, np.int32)),
        (b"x", "x"),
        (Truth(1), Truth(2)),
        (Truth(1), {"count": 1}),
        (Message("user", ("ab",)), Message("user", ("a", "b"))),
        (None, "None"),
    ],
)
def test_digest_distinguishes_different_fields(one: Any, other: Any) -> None:
    assert digest(Old(one)) != digest(Old(other))


def test_digest_takes_tuples_and_lists_for_the_same() -> None:
    assert digest(Old([1, (2, 3)])) == digest(Old((1, [2, 3])))


def test_digest_reads_arrays_that_are_not_contiguous_by_their_content() -> None:
    array = np.arange(12.0).reshape(3, 4)
    assert digest(Old(array.T)) == digest(Old(np.ascontiguousarray(array.T)))


@pytest.mark.parametrize("odd", [float("nan"), {1, 2}, object(), np.array([np.inf])])
def test_digest_refuses_what_a_request_may_not_hold(odd: Any) -> None:
    with pytest.raises(ValueError, match=r"finite|which is not"):
        digest(Old(odd))


def test_request_without_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="Nameless needs a `kind"):

        class Nameless(ScoreRequest):
            pass


def test_is_cheap_until_an_image_must_be_decoded() -> None:
    assert is_cheap(Generate(TALK))
    encoded = Image.from_bytes(Image.from_pixels(PIXELS).png())
    request = Generate((Message("user", ("see", encoded)),))
    assert not is_cheap(request)
    assert not is_cheap(Old({"crops": [encoded]}))
    digest(request)
    assert is_cheap(request)
    big = Image.from_pixels(np.zeros((1000, 1000, 3), np.uint8))
    assert not is_cheap(Embed(big))
