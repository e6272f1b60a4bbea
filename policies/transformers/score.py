"""Log-probabilities of sampled tokens under the present weights, with gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from visenv.errors import PolicyError
from visenv.policy import Scores
from visenv.types import Image, Segment

from .network import Features, Network
from .vision import ImageEncoder, rope_positions

_CHUNK = 2**26
"""Most logits alive at once in one chunk (256 MiB in float32)."""


def score(
    network: Network,
    encoder: ImageEncoder,
    segments: Sequence[Segment],
    images: Mapping[str, Image],
) -> Scores:
    """See `TrainablePolicy.score`. Segments are padded right; each distinct image is read once.

    Raises:
        PolicyError: If a segment comes from another image processor, or an image is missing.
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
    picked, entropy = _head(
        network, before, tokens[sampled], temperature.repeat_interleave(sampled.sum(1))
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


def _head(
    network: Network, hidden: torch.Tensor, tokens: torch.Tensor, temperature: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy ``[tokens]``, in chunks whose logits never live all at once."""

    def chunk(
        hidden: torch.Tensor, tokens: torch.Tensor, temperature: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = torch.log_softmax(network.logits(hidden) / temperature[:, None], -1)
        with torch.no_grad():
            entropy = -(logprobs.exp() * logprobs).sum(-1)
        return logprobs.gather(1, tokens[:, None])[:, 0], entropy

    rows = max(1, _CHUNK // network.vocabulary_size)
    parts = zip(*(tensor.split(rows) for tensor in (hidden, tokens, temperature)), strict=True)
    if len(hidden) <= rows:
        return chunk(hidden, tokens, temperature)
    done = [checkpoint(chunk, *part, use_reentrant=False) for part in parts]
    return torch.cat([picked for picked, _ in done]), torch.cat([entropy for _, entropy in done])
