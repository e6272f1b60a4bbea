"""Log-probabilities of sampled tokens under the present weights, with gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from visenv.errors import PolicyError
from visenv.policy import Scores
from visenv.types import Image, Segment

from .constrain import Constraints
from .network import IMPOSSIBLE, Features, Network
from .vision import ImageEncoder, rope_positions

_CHUNK = 2**26
"""Most logits alive at once in one chunk (256 MiB in float32)."""


def score(
    network: Network,
    encoder: ImageEncoder,
    constraints: Constraints,
    segments: Sequence[Segment],
    images: Mapping[str, Image],
) -> Scores:
    """See `TrainablePolicy.score`. Segments are padded right; each distinct image is read once.

    Raises:
        PolicyError: If a segment comes from another image processor, an image is missing, or a
            token breaks its turn's constraint.
    """
    _check(encoder, segments, images)
    width = max(len(segment) for segment in segments)
    token_ids = np.zeros((len(segments), width), np.int64)
    positions = np.zeros((3, len(segments), width), np.int64)
    mask = np.zeros((len(segments), width), np.bool_)
    for row, segment in enumerate(segments):
        token_ids[row, : len(segment)] = segment.token_ids
        mask[row, : len(segment)] = segment.loss_mask
        positions[:, row, : len(segment)] = rope_positions(
            len(segment), segment.images, segment.merge
        )
    device = network.device
    tokens = torch.from_numpy(token_ids).to(device)
    sampled = torch.from_numpy(mask).to(device)
    features = _features(network, encoder, segments, images)
    # Causal attention needs no padding mask when the padding is on the right.
    hidden = network.read(tokens, torch.from_numpy(positions).to(device), features)
    before = hidden[:, :-1][sampled[:, 1:]]  # the state that predicts each sampled token
    temperature = torch.tensor([segment.temperature or 1.0 for segment in segments], device=device)
    exclusions = Exclusions.of(constraints, segments, device)
    picked, entropy = _head(
        network, before, tokens[sampled], temperature.repeat_interleave(sampled.sum(1)), exclusions
    )
    zeros = torch.zeros(sampled.shape, device=device)
    return Scores(
        zeros.masked_scatter(sampled, picked), zeros.masked_scatter(sampled, entropy), sampled
    )


def _check(encoder: ImageEncoder, segments: Sequence[Segment], images: Mapping[str, Image]) -> None:
    for segment in segments:
        if segment.processor != encoder.fingerprint:
            raise PolicyError(
                f"The segment was made with the image processor {segment.processor}, "
                f"this policy's is {encoder.fingerprint}: its images would not fit their tokens."
            )
        missing = [span.sha256 for span in segment.images if span.sha256 not in images]
        if missing:
            raise PolicyError(f"The image {missing[0]} that a segment names was not given.")


def _features(
    network: Network,
    encoder: ImageEncoder,
    segments: Sequence[Segment],
    images: Mapping[str, Image],
) -> list[Features]:
    named = [span.sha256 for segment in segments for span in segment.images]
    distinct = list(dict.fromkeys(named))
    seen = network.look(encoder.encode([images[sha256] for sha256 in distinct]))
    by_hash = dict(zip(distinct, seen, strict=True))
    return [by_hash[sha256] for sha256 in named]


class Exclusions(NamedTuple):
    """Which tokens could not be drawn at each sampled place.

    Attributes:
        distinct: bool ``[kinds, vocabulary]``: True for a token that was excluded.
        which: int64 ``[tokens]``: the kind of each place.
    """

    distinct: torch.Tensor
    which: torch.Tensor

    @classmethod
    def of(
        cls, constraints: Constraints, segments: Sequence[Segment], device: torch.device
    ) -> Exclusions:
        """Replay the constraints of the segments' turns."""
        kinds: dict[tuple[str, int] | None, int] = {None: 0}
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
                        kinds[kind] = len(kinds)
                        rows.append(~constraint.allowed(state))
                    which.append(kinds[kind])
        return cls(torch.stack(rows).to(device), torch.tensor(which, device=device))


def _head(
    network: Network,
    hidden: torch.Tensor,
    tokens: torch.Tensor,
    temperature: torch.Tensor,
    exclusions: Exclusions,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy ``[tokens]``, in chunks whose logits never live all at once."""

    def chunk(
        hidden: torch.Tensor, tokens: torch.Tensor, temperature: torch.Tensor, which: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logits = network.logits(hidden) / temperature[:, None]
        if len(exclusions.distinct) > 1:
            logits = logits.masked_fill(exclusions.distinct[which], IMPOSSIBLE)
        logprobs = torch.log_softmax(logits, -1)
        with torch.no_grad():
            entropy = -(logprobs.exp() * logprobs).sum(-1)
        return logprobs.gather(1, tokens[:, None])[:, 0], entropy

    rows = max(1, _CHUNK // network.vocabulary_size)
    whole = (hidden, tokens, temperature, exclusions.which)
    if len(hidden) <= rows:
        return chunk(*whole)
    parts = zip(*(tensor.split(rows) for tensor in whole), strict=True)
    done = [checkpoint(chunk, *part, use_reentrant=False) for part in parts]
    return torch.cat([picked for picked, _ in done]), torch.cat([entropy for _, entropy in done])
