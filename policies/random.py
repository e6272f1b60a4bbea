"""Defines `RandomPolicy`, a lower bound: half noise, half well-formed turns without meaning."""

from __future__ import annotations

from visenv.advised import AdvisedPolicy
from visenv.types import RandomTurnRequest


class RandomPolicy(AdvisedPolicy):
    """Takes random turns, which depend only on the seed (`visenv.types.RandomTurnRequest`)."""

    name = "random"
    advice_request = RandomTurnRequest()
