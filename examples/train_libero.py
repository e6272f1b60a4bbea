r"""Trains a vision-language model on LIBERO: SFT on demonstrations, then GRPO on success.

    make simulators                                         # LIBERO in a separate interpreter
    python examples/train_libero.py --tiny                  # a tiny model on a CPU, no downloads
    accelerate launch --config_file configs/zero2.yaml examples/train_libero.py \
        --phases.sft.demonstrations.files demonstrations.jsonl

The model sees two camera images and writes chunks of up to 16 actions as JSON. The settings are in
recipes/libero.toml (as in Argos: one policy for four suites) and recipes/libero_tiny.toml. Each
setting is also an option (``--help``). ``--resume`` continues a run that was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from visenv.algos.experiment import train


def main(words: Sequence[str] | None = None) -> None:
    """Run the recipe, or its tiny version with ``--tiny``."""
    given = list(sys.argv[1:] if words is None else words)
    recipe = "libero_tiny" if "--tiny" in given else "libero"
    train([recipe, *(word for word in given if word != "--tiny")])


if __name__ == "__main__":
    main()
