r"""Runs the recipe of Argos: SFT on grounded traces, then GRPO with the verifier as reward.

    python examples/train_argos.py --tiny                   # a tiny model on a CPU, no downloads
    python examples/train_argos.py --tiny --sweep           # figure 4 and the other ablations
    accelerate launch --config_file configs/zero3.yaml examples/train_argos.py \
        --environments.images.data video_r1:<folder> \
        --phases.sft.demonstrations.files curated.jsonl

The settings are in recipes/argos.toml and recipes/argos_tiny.toml. Each setting is also an option
(``--help``). ``--resume`` continues a run that was stopped. `visenv.algos.group_size` plans the
number of generations of a group.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from visenv.algos.experiment import train


def main(words: Sequence[str] | None = None) -> None:
    """Run the recipe, or its tiny version with ``--tiny``."""
    given = list(sys.argv[1:] if words is None else words)
    recipe = "argos_tiny" if "--tiny" in given else "argos"
    train([recipe, *(word for word in given if word != "--tiny")])


if __name__ == "__main__":
    main()
