"""Runs a recipe under `accelerate launch`; takes the arguments of the command line."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from visenv.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
