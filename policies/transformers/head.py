"""Computes log-probabilities of sampled tokens with the model's head, without keeping all logits.

Logits are computed only for scored places, in chunks. The logits of a chunk are dropped after use
and recomputed for the gradient. Memory thus grows with the chunk, and not with vocabulary times
sequence length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from typing_extensions import override

from visenv.types import Segment

from ..tokens.constrain import RegexConstraints

IMPOSSIBLE = -1e9
"""Logit of a banned token: probability 0, without the NaNs in gradients that infinity causes."""

CHUNK = 2**28
"""Bytes of the float32 logits of one chunk."""


class ExcludedTokens(NamedTuple):
    """Describes the tokens that were excluded at each place, besides the banned ones.

    Attributes:
        distinct: bool ``[kinds, vocabulary]``: True for an excluded token; the first kind excludes
            nothing.
        which: int64 ``[places]``: the kind of each place.
    """

    distinct: torch.Tensor
    which: torch.Tensor

    @classmethod
    def of(cls, constraints: RegexConstraints, segments: Sequence[Segment]) -> ExcludedTokens:
        """Replay the constraints of the turns in these segments.

        Raises:
            PolicyError: If a token violates the constraint of its turn.
        """
        kinds: dict[tuple[str, int], int] = {}
        rows = [torch.zeros(constraints.size, dtype=torch.bool)]
        which: list[int] = []
        for segment in segments:
            for span in segment.turns:
                if span.regex is None:
                    which += [0] * (span.end - span.start)
                    continue
                constraint = constraints.get(span.regex)
                for state in constraint.states(segment.token_ids[span.start : span.end].tolist()):
                    kind = (span.regex, state)
                    if kind not in kinds:
                        kinds[kind] = len(rows)
                        rows.append(~constraint.allowed(state))
                    which.append(kinds[kind])
        return cls(
            torch.stack(rows),  # [kinds, vocabulary]
            torch.tensor(which, dtype=torch.int64),  # [places]
        )


class TokenPositions(NamedTuple):
    """Describes the sampled tokens of a batch.

    Attributes:
        tokens: int64 ``[places]``: the sampled tokens.
        temperature: float32 ``[places]``: the sampling temperatures.
        exclusions: The tokens that were excluded.
    """

    tokens: torch.Tensor
    temperature: torch.Tensor
    exclusions: ExcludedTokens

    def to(self, device: torch.device) -> TokenPositions:
        """Return the places on a device; copies from pinned memory are asynchronous."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> TokenPositions:
        """Return a copy in pinned memory."""
        return self._each(torch.Tensor.pin_memory)

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> TokenPositions:
        exclusions = ExcludedTokens(*map(change, self.exclusions))
        return TokenPositions(change(self.tokens), change(self.temperature), exclusions)

    def at(self, part: slice) -> TokenPositions:
        """Return a slice of the places."""
        exclusions = self.exclusions._replace(which=self.exclusions.which[part])
        return TokenPositions(self.tokens[part], self.temperature[part], exclusions)


class LogprobHead(torch.nn.Module):
    """Replaces a model's ``lm_head``, with the same weight.

    Only this module's own forward and backward pass use the weight, once for all chunks: ZeRO-3
    gathers weights around these passes, and every process must run them equally often.

    Args:
        weight: ``[vocabulary, width]``.
        banned: bool ``[vocabulary]``: tokens with probability 0.
        single: Whether the projection is computed in float32, for all types of the weight.
    """

    banned: torch.Tensor
    bias: torch.Tensor | None

    def __init__(
        self, weight: torch.nn.Parameter, banned: torch.Tensor, *, single: bool = False
    ) -> None:
        super().__init__()
        self.weight = weight
        self.register_parameter("bias", None)  # the TRL bridge bans tokens with a bias (`ban`)
        self.register_buffer("banned", banned.to(weight.device), persistent=False)
        self._single = single

    @override
    def forward(
        self, hidden: torch.Tensor, places: TokenPositions | None = None
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Return logits; with `places`, log-probability and entropy of the sampled tokens.

        Args:
            hidden: ``[..., width]``; with places, the hidden states ``[places, width]`` before
                them.
            places: The sampled tokens to score.

        Returns:
            ``[..., vocabulary]``, or two tensors ``[places]``, in nats; the entropy has no
            gradient.
        """
        if places is None:
            bias = None if self.bias is None else self.cast(self.bias)
            return F.linear(self.cast(hidden), self.cast(self.weight), bias)
        apply: Any = _Drawn.apply  # untyped in torch
        scored: tuple[torch.Tensor, torch.Tensor] = apply(hidden, self.weight, self, places)
        return scored

    def cast(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor in the precision of the projection."""
        return tensor.float() if self._single else tensor

    def possible(self, logits: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        """Return logits ``[rows, vocabulary]``, float32 or wider, at temperatures ``[rows]``.

        The logits of banned tokens are `IMPOSSIBLE`.
        """
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        # In place, because the old values are not needed and no tensor is larger.
        logits = logits.div_(temperature[:, None])  # [rows, vocabulary] by [rows, 1]
        return logits.masked_fill_(self.banned, IMPOSSIBLE)


class _Drawn(torch.autograd.Function):
    """Computes log-probability and entropy of sampled tokens, as `LogprobHead.forward` describes.

    Let ``x`` be the logits at temperature ``T``, ``Z`` the logarithm of the sum of their
    exponentials, and ``p = exp(x - Z)``. The log-probability is ``x[token] - Z``, the entropy ``Z -
    p x``, and the gradient of the log-probability by the untempered logits ``(onehot(token) - p) /
    T``.
    """

    @staticmethod
    @override
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        head: LogprobHead,
        places: TokenPositions,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        projected = head.cast(weight)
        done = [
            _drawn(head, head.cast(hidden[part]), projected, places.at(part))
            for part in _chunks(hidden, weight)
        ]
        # Chunks [rows], concatenated: [places] each.
        picked, entropy, total = (torch.cat(each) for each in zip(*done, strict=True))
        ctx.save_for_backward(hidden, weight, total)
        ctx.head, ctx.places = head, places
        ctx.mark_non_differentiable(entropy)
        return picked, entropy

    @staticmethod
    @override
    def backward(
        ctx: Any, upstream: torch.Tensor, _: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        hidden, weight, total = ctx.saved_tensors
        head, places = ctx.head, ctx.places
        projected = head.cast(weight)
        by_weight: torch.Tensor | None = None
        by_hidden = []
        for part in _chunks(hidden, weight):
            states = head.cast(hidden[part])  # [rows, width]
            tokens = places.tokens[part, None]  # [rows, 1]
            logits = _logits(head, states, projected, places.at(part))  # [rows, vocabulary]
            scale = upstream[part, None] / places.temperature[part, None]  # [rows, 1]
            slope = logits.sub_(total[part, None]).exp_().mul_(-scale)  # [rows, vocabulary]
            slope = slope.scatter_add_(1, tokens, scale).to(states.dtype)  # [rows, vocabulary]
            by_hidden.append(slope @ projected)  # [rows, width]
            if ctx.needs_input_grad[1]:
                # [vocabulary, rows] times [rows, width]: [vocabulary, width].
                by_weight = _with_product(by_weight, slope.t(), states)
        by_weight = None if by_weight is None else by_weight.to(weight.dtype)
        # [places, width] and [vocabulary, width].
        return torch.cat(by_hidden).to(hidden.dtype), by_weight, None, None


def _with_product(
    total: torch.Tensor | None, left: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    """Return the sum plus a matrix product, at least in float32.

    In bfloat16, a chunk's part would be lost to rounding if the sum is 256 times as large.
    """
    if total is None:
        return left @ right
    if total.dtype == right.dtype and total.dtype.itemsize >= 4:
        return total.addmm_(left, right)
    return total.to(torch.promote_types(total.dtype, torch.float32)).add_(left @ right)


def _chunks(hidden: torch.Tensor, weight: torch.Tensor) -> list[slice]:
    """Return the slices of places whose logits are computed together, at least one."""
    rows = max(1, CHUNK // (4 * len(weight)))
    return [slice(start, start + rows) for start in range(0, max(len(hidden), 1), rows)]


def _drawn(
    head: LogprobHead, states: torch.Tensor, weight: torch.Tensor, places: TokenPositions
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return log-probability, entropy and ``Z`` of one chunk; its logits are freed."""
    logits = _logits(head, states, weight, places)  # [rows, vocabulary]
    largest = logits.amax(-1)  # [rows]
    logits.sub_(largest[:, None])  # the exponentials neither overflow nor vanish
    probability = logits.exp()
    size = probability.sum(-1)
    total = size.log()
    picked = logits.gather(1, places.tokens[:, None])[:, 0] - total  # [rows]
    entropy = total - probability.mul_(logits).sum(-1) / size  # in place, see `possible`
    return picked, entropy, total + largest


def _logits(
    head: LogprobHead, states: torch.Tensor, weight: torch.Tensor, places: TokenPositions
) -> torch.Tensor:
    """Return the logits of one chunk at its temperatures; excluded tokens are `IMPOSSIBLE`."""
    logits = head.possible(F.linear(states, weight), places.temperature)  # [rows, vocabulary]
    distinct, which = places.exclusions
    return logits.masked_fill_(distinct[which], IMPOSSIBLE) if len(distinct) > 1 else logits
