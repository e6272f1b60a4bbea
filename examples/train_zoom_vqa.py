r"""Runs the recipe of Groundlight: GRPO trains Qwen2.5-VL-3B to zoom into an image.

    python examples/train_zoom_vqa.py --tiny                    # minutes on a CPU, no downloads
    accelerate launch --config_file configs/zero3.yaml examples/train_zoom_vqa.py \
        --environments.photos.data textvqa:<folder> --sampler.name vllm

The settings are in recipes/groundlight.toml and recipes/groundlight_tiny.toml. Each setting is also
an option (``--help``). ``--resume`` continues a run that was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from visenv.algos.experiment import train


def main(words: Sequence[str] | None = None) -> None:
    """Run the recipe, or its tiny version with ``--tiny``."""
    given = list(sys.argv[1:] if words is None else words)
    recipe = "groundlight_tiny" if "--tiny" in given else "groundlight"
    train([recipe, *(word for word in given if word != "--tiny")])


if __name__ == "__main__":
    main()
