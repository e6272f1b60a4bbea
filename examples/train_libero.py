r"""LIBERO with a vision-language model: imitation of demonstrations, then GRPO on success.

    make simulators                                         # LIBERO in an interpreter of its own
    python examples/train_libero.py --tiny                  # a tiny model on a CPU, no downloads
    accelerate launch --config_file configs/zero2.yaml examples/train_libero.py \
        --phases.sft.demonstrations.files demonstrations.jsonl

The model sees two cameras and writes chunks of up to 16 actions as JSON. The settings are in
recipes/libero.toml (Argos's: one policy for four suites) and recipes/libero_tiny.toml; each is also
an option (``--help``). A run that was stopped goes on with ``--resume``.
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
