"""Evaluates policies on held-out samples: selects the episodes to play, and summarizes them."""

from visenv.evaluation.held_out import evaluate, held_out_seeds, places

__all__ = ["evaluate", "held_out_seeds", "places"]
