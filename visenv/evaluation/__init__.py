"""Held-out evaluation: which episodes are played, and what their scores come to."""

from visenv.evaluation.held_out import evaluate, held_out_seeds, places

__all__ = ["evaluate", "held_out_seeds", "places"]
