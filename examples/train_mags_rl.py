r"""Runs the recipe of Mags-RL: GRPO in two stages trains a model to enlarge image regions.

    python examples/train_mags_rl.py --tiny             # a tiny model on a CPU, no downloads
    python examples/train_mags_rl.py --tiny --sweep     # the ablations of the reward and data
    accelerate launch --config_file configs/zero2.yaml examples/train_mags_rl.py

Stage 1 rewards valid boxes. Stage 2 rewards as many boxes as there are objects to count. The
settings are in recipes/mags_rl.toml and recipes/mags_rl_tiny.toml. Each setting is also an option
(``--help``). ``--resume`` continues a run that was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from visenv.algos.experiment import train


def main(words: Sequence[str] | None = None) -> None:
    """Run the recipe, or its tiny version with ``--tiny``."""
    given = list(sys.argv[1:] if words is None else words)
    recipe = "mags_rl_tiny" if "--tiny" in given else "mags_rl"
    train([recipe, *(word for word in given if word != "--tiny")])


if __name__ == "__main__":
    main()
