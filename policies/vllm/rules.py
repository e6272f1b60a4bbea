"""Decides which tokens are allowed next in a turn, and where a stop string ends the turn.

The engine's workers mask logits with these rules (`processor`), and the policy truncates turns with
them. The rules are those of `TransformersPolicy`'s decoder, so that both sample from the same
distribution and `TransformersPolicy.score` computes the same log-probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ..tokens.codec import Codec


class TokenRules:
    """Defines which tokens a model may sample.

    Args:
        codec: The codec of the model's checkpoint.

    Attributes:
        banned: bool ``[vocabulary]``: tokens that are never sampled.
        end_id: The token that ends a turn.
        end_alone: bool ``[vocabulary]``: True only for the end token.
        spelling: Bytes of each token, by id.
        constraints: Converts regular expressions to sets of allowed tokens.
        image_processor: The fingerprint of the image processor of the checkpoint.
    """

    def __init__(self, codec: Codec) -> None:
        self.image_processor = codec.family.fingerprint(with_videos=False)
        self.banned = torch.from_numpy(codec.banned)
        self.end_id = codec.end_id
        self.end_alone = torch.zeros(len(self.banned), dtype=torch.bool)
        self.end_alone[self.end_id] = True
        self.spelling = codec.vocabulary.bytes
        self.constraints = codec.constraints

    def start(self, stop: Iterable[str], regex: str | None) -> TurnState:
        """Return the state at the beginning of a turn.

        Raises:
            PolicyError: If the regular expression is invalid.
        """
        return TurnState(self, tuple(text.encode() for text in stop), regex)


class TurnState:
    """Holds the state of a turn under its rules.

    Args:
        rules: The rules of the model.
        stop: Strings that end the turn, as bytes.
        regex: Expression that the whole turn must match, or None; if given, a stop string ends the
            turn only if the turn matches.

    Attributes:
        stopped: Whether a stop string has ended the turn.
    """

    def __init__(self, rules: TokenRules, stop: tuple[bytes, ...], regex: str | None) -> None:
        self.stopped = False
        self._rules = rules
        self._stop = stop
        self._kept = max(map(len, stop), default=1) - 1  # longest incomplete stop string, bytes
        self._tail = b""
        self._constraint = None if regex is None else rules.constraints.get(regex)
        self._place = 0 if self._constraint is None else self._constraint.start

    def take(self, token: int) -> bool:
        """Add a token; return whether a stop string ends the turn with it."""
        if token == self._rules.end_id:
            return False
        matched = True
        if self._constraint is not None:
            self._place = self._constraint.after(self._place, token)
            matched = self._constraint.matches(self._place)
        if self._stop:
            text = self._tail + self._rules.spelling[token]
            self.stopped = matched and any(stop in text for stop in self._stop)
            self._tail = text[max(len(text) - self._kept, 0) :]
        return self.stopped

    def allowed(self) -> torch.Tensor | None:
        """Return the allowed next tokens, bool ``[vocabulary]``, or None if only the bans apply."""
        if self.stopped:
            return self._rules.end_alone
        if self._constraint is not None:
            return self._constraint.allowed(self._place)
        return None


_shared: dict[str, TokenRules] = {}


def share(model: str, rules: TokenRules) -> None:
    """Let an engine in this process use the rules of its policy, because expressions are costly."""
    _shared[model] = rules


def rules_of(model_config: Any) -> TokenRules:
    """Return the rules of the model that vLLM runs in this process; they are made once."""
    # `model` is the folder of the latest weights after `reload_weights`, and `tokenizer` stays.
    model = str(model_config.tokenizer)
    if model not in _shared:
        share(model, TokenRules(Codec(model, model_config.get_vocab_size(), video="frames")))
    return _shared[model]
