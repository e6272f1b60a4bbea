"""Tests image processing and M-RoPE positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import pytest

from visenv.types import ImageSpan, PlaceholderRun

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.tokens import vision
from visenv.policies.tokens.positions import rope_positions

pytestmark = pytest.mark.component("torch", "transformers")


def test_positions_by_hand() -> None:
    """Check two texts, an image of 2 x 3 placeholders, and one text.

    The first texts have positions 0 and 1. The image begins at 2: rows 2, 3 and columns 2, 3, 4.
    Its longest side is 3, so that the next text has position 2 + 3 = 5.
    """
    span = ImageSpan("", (PlaceholderRun(2, 6),), placeholder_id=9, patches=24)
    positions = rope_positions(9, [span], [(1, 4, 6)], merge=2)
    assert positions[0].tolist() == [0, 1, 2, 2, 2, 2, 2, 2, 5]
    assert positions[1].tolist() == [0, 1, 2, 2, 2, 3, 3, 3, 5]
    assert positions[2].tolist() == [0, 1, 2, 3, 4, 2, 3, 4, 5]


def test_positions_are_those_of_the_model(policy: Any, talk: Any) -> None:
    images = [talk.picture(1, 96, 64), talk.picture(2, 64, 128), talk.picture(3)]
    turns = [talk.shown("one", *images[:2]), talk.shown("two", images[2])]
    session, _ = talk.alone(policy, 0, turns)
    (segment,) = session.segments()
    ids = torch.from_numpy(segment.token_ids).long()[None]
    expected, _ = policy.network.model.model.get_rope_index(
        input_ids=ids,
        mm_token_type_ids=(ids == policy.codec.image_id).int(),
        image_grid_thw=torch.tensor(
            [each.grid for each in policy.codec.family.images.encode(images)]
        ),
    )
    shown = {image.sha256: image for image in images}
    found = policy.codec.family.positions(len(segment), segment.images, shown)
    np.testing.assert_array_equal(found, expected[:, 0])


def test_patches_are_those_of_the_stock_processor(policy: Any, talk: Any) -> None:
    images = [talk.picture(1, 90, 61), talk.picture(2), talk.picture(1, 90, 61)]
    expected = policy.codec.processor.image_processor(
        images=[image.pixels.copy() for image in images], return_tensors="pt"
    )
    found = policy.codec.family.images.encode(images)
    assert [list(one.grid) for one in found] == expected["image_grid_thw"].tolist()
    stacked = torch.cat([one.values for one in found])
    torch.testing.assert_close(stacked, expected["pixel_values"].float())


@pytest.mark.parametrize("height", [1, 3, 4])
def test_low_images_are_not_read_as_channels(policy: Any, talk: Any, height: int) -> None:
    """Check images whose array could have its channels first, against the stock processor."""
    image = talk.picture(7, 40, height)
    expected = policy.codec.processor.image_processor(
        images=[PIL.Image.fromarray(image.pixels)], return_tensors="pt"
    )
    (found,) = policy.codec.family.images.encode([image])
    assert [list(found.grid)] == expected["image_grid_thw"].tolist()
    torch.testing.assert_close(found.values, expected["pixel_values"].float())


class Counting:
    """Counts processed images; returns one patch per image."""

    merge_size = 1

    def __init__(self) -> None:
        self.processed = 0

    def to_dict(self) -> dict[str, Any]:
        return {"class": "Counting"}

    def __call__(self, images: list[Any], return_tensors: str) -> dict[str, Any]:
        self.processed += len(images)
        grid = torch.ones((len(images), 3), dtype=torch.int64)
        return {"pixel_values": torch.zeros((len(images), 4)), "image_grid_thw": grid}


def test_distinct_images_are_processed_once(talk: Any) -> None:
    counting = Counting()
    encoder = vision.ImageEncoder(counting)
    encoder.encode([talk.picture(1), talk.picture(2), talk.picture(1)])
    encoder.encode([talk.picture(2)])
    assert counting.processed == 2


def test_least_recently_used_images_go_first(talk: Any) -> None:
    counting = Counting()
    encoder = vision.ImageEncoder(counting, capacity=2 * 16)  # an image is 4 float32 values
    one, two, three = (talk.picture(seed) for seed in (1, 2, 3))
    encoder.encode([one, two])
    encoder.encode([one])
    encoder.encode([three])  # evicts image two
    encoder.encode([one, three])
    assert counting.processed == 3
    encoder.encode([two])
    assert counting.processed == 4


def test_batch_may_exceed_the_capacity(talk: Any) -> None:
    counting = Counting()
    encoder = vision.ImageEncoder(counting, capacity=2 * 16)  # an image is 4 float32 values
    images = [talk.picture(seed) for seed in range(5)]
    assert len(encoder.encode(images)) == 5
    assert counting.processed == 5


def test_fingerprint_depends_on_each_setting(policy: Any) -> None:
    processor = policy.codec.processor.image_processor
    before = vision.ImageEncoder(processor).fingerprint
    assert before == policy.codec.family.fingerprint(with_videos=False)
    size = processor.size
    try:
        processor.size = {"shortest_edge": 1024, "longest_edge": 4096}
        assert vision.ImageEncoder(processor).fingerprint != before
    finally:
        processor.size = size
