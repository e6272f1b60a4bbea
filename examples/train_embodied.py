r"""Trains embodied planning in House, EB-ALFRED and EB-Habitat: SFT on the oracle, then GRPO.

    python examples/train_embodied.py --tiny                # a tiny model on a CPU, no downloads
    python examples/train_embodied.py --tiny --sweep        # three seeds
    accelerate launch --config_file configs/zero2.yaml examples/train_embodied.py

The model sees a camera image and a numbered list of actions, writes a plan, and sees the result.
The settings are in recipes/embodied.toml and recipes/embodied_tiny.toml. Each setting is also an
option (``--help``). ``--resume`` continues a run that was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from visenv.algos.experiment import train


def main(words: Sequence[str] | None = None) -> None:
    """Run the recipe, or its tiny version with ``--tiny``."""
    given = list(sys.argv[1:] if words is None else words)
    recipe = "embodied_tiny" if "--tiny" in given else "embodied"
    train([recipe, *(word for word in given if word != "--tiny")])


if __name__ == "__main__":
    main()
