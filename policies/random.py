"""Defines `RandomPolicy`, a lower bound: half noise, half well-formed turns without meaning."""

from __future__ import annotations

from visenv.types import RandomTurnRequest

from .advised import AdvisedPolicy


class RandomPolicy(AdvisedPolicy):
    """Takes random turns, which depend only on the seed (`visenv.types.RandomTurnRequest`)."""

    name = "random"
    advice_request = RandomTurnRequest()
