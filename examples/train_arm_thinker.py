r"""Runs the recipe of ARM-Thinker: SFT cold start, GRPO stage 1, GRPO stage 2.

    python examples/train_arm_thinker.py --tiny                 # minutes on a CPU, no downloads
    python examples/train_arm_thinker.py --tiny --sweep         # the rewards of figure 4 compared
    accelerate launch --config_file configs/zero3.yaml examples/train_arm_thinker.py \
        --environments.crops.data armbench:crops --environments.crops.rows hard_crops.jsonl \
        --environments.documents.data armbench:pages \
        --phases.cold-start.demonstrations.files trajectories.jsonl \
        --phases.cold-start.demonstrations.episodes 0

The settings are in recipes/arm_thinker.toml and recipes/arm_thinker_tiny.toml. Each setting is also
an option (``--help``). ``--resume`` continues a run that was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from visenv.algos.experiment import train


def main(words: Sequence[str] | None = None) -> None:
    """Run the recipe, or its tiny version with ``--tiny``."""
    given = list(sys.argv[1:] if words is None else words)
    recipe = "arm_thinker_tiny" if "--tiny" in given else "arm_thinker"
    train([recipe, *(word for word in given if word != "--tiny")])


if __name__ == "__main__":
    main()
