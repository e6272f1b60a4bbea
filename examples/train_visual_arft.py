r"""Runs the recipe of Visual-ARFT: GRPO trains Qwen2.5-VL to repair images by code, or to search.

    python examples/train_visual_arft.py --task coding --tiny          # on a CPU, no downloads
    python examples/train_visual_arft.py --task coding --tiny --sweep  # rewards F1 and exact match
    accelerate launch --config_file configs/zero3.yaml examples/train_visual_arft.py \
        --task coding --environments.coding.data mat_coding:<folder>?file=rft_agent_code_1_2k.json \
        --environments.coding.evaluation-data mat_coding:<folder>

The settings are in recipes/visual_arft_*.toml. Each setting is also an option (``--help``).
``--resume`` continues a run that was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from visenv.algos.experiment import train


def main(words: Sequence[str] | None = None) -> None:
    """Run the recipe of a task, or its tiny version with ``--tiny``."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--task", choices=["coding", "search"], default="coding")
    first.add_argument("--tiny", action="store_true")
    chosen, rest = first.parse_known_args(sys.argv[1:] if words is None else words)
    train([f"visual_arft_{chosen.task}{'_tiny' if chosen.tiny else ''}", *rest])


if __name__ == "__main__":
    main()
