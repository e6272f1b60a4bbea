"""Tests that measuring an image gives the same placeholders as processing it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.types import Image

pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.vllm import images

pytestmark = pytest.mark.component("torch", "transformers")


@given(st.integers(1, 150), st.integers(1, 150))
@settings(max_examples=60)
def test_measured_as_processed(qwen3: Any, qwen2_5: Any, width: int, height: int) -> None:
    image = Image.from_pixels(np.zeros((height, width, 3), np.uint8))
    for policy in (qwen3, qwen2_5):
        meter = images.ImageMeter(policy.codec.processor.image_processor)
        assert meter.span(image, 7, 5) == policy.codec.family.images.span(image, 7, 5)
        assert meter.fingerprint == policy.codec.family.fingerprint(with_videos=False)
