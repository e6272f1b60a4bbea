"""`visenv train`: its options are the recipe's, which is loaded only when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Train:
    """Train a model: warm-up, RL, comparison, report; `visenv train --help` lists the options."""

    def run(self) -> None:
        """Never called: `main` hands the word `train` to the recipe itself."""
        raise NotImplementedError
