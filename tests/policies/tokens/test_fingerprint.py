"""Tests what identifies an image processor, and that files of earlier versions are accepted."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from visenv.policies.tokens.fingerprint import fingerprint_of, same_processor

pytestmark = pytest.mark.component("torch", "transformers")

OWN = "0123456789abcdef:Qwen2VLImageProcessor:torchvision"


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (OWN, True),
        ("0123456789abcdef", True),  # of a version that knew only the settings
        ("0123456789abcdef:Qwen2VLImageProcessorPil:pil", False),
        ("0123456789abcdef:Qwen2VLImageProcessor:pil", False),
        ("fedcba9876543210", False),
        ("0123456789abcde", False),
        ("", False),
        (f"{OWN}+{OWN}", False),
        ("0123456789abcdef+0123456789abcdef", False),
    ],
)
def test_fingerprints_are_compared_by_what_both_know(other: str, same: bool) -> None:
    assert same_processor(OWN, other) is same


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (f"{OWN}+{OWN}", True),
        ("0123456789abcdef+0123456789abcdef", True),
        (f"0123456789abcdef+{OWN}", True),
        (f"{OWN}+fedcba9876543210", False),
        (OWN, False),
        ("0123456789abcdef", False),
    ],
)
def test_images_and_videos_are_compared_one_by_one(other: str, same: bool) -> None:
    assert same_processor(f"{OWN}+{OWN}", other) is same


def test_backends_with_equal_settings_differ() -> None:
    pytest.importorskip("torchvision")
    classes: Any = (transformers.Qwen2VLImageProcessor, transformers.Qwen2VLImageProcessorPil)
    one, other = (fingerprint_of(kind()) for kind in classes)
    assert one.endswith(":Qwen2VLImageProcessor:torchvision")
    assert other.endswith(":Qwen2VLImageProcessorPil:pil")
    assert not same_processor(one, other)
    assert same_processor(one, one.partition(":")[0])
