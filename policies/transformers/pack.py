"""Packs segments into one row, in which each shared token occurs once.

The row is made on the CPU. Positions, images and places are those that each segment would have
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.errors import PolicyError
from visenv.types import Segment, Visual

from ..tokens.codec import Codec
from ..tokens.family import ModelFamily, Span
from ..tokens.fingerprint import same_processor
from ..tokens.qwen_vl import QwenVL, require_qwen_vl
from ..tokens.vision import ImagePatches
from .attention import AttentionCall, alike
from .head import ExcludedTokens, TokenPositions
from .trees import PrefixNode, grow


@dataclass(frozen=True, slots=True, eq=False)
class PackedBatch:
    """Holds the input of one forward pass.

    Attributes:
        token_ids: int64 ``[1, tokens]``.
        positions: int64 ``[3, 1, tokens]``, M-RoPE.
        layout: The attention calls of the row, which cover every token.
        images: The distinct images and videos, by their hash.
        shown: The spans whose placeholders are in the row, in order, with the indices of a segment.
        before: int64 ``[places]``: the index of the token after which each token was sampled.
        places: The sampled tokens with their temperatures and exclusions.
        mask: bool ``[segments, length]``: the loss masks of the segments; its True cells, row by
            row, are the places.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    layout: tuple[AttentionCall, ...]
    images: Mapping[str, ImagePatches]
    shown: tuple[Span, ...]
    before: torch.Tensor
    places: TokenPositions
    mask: torch.Tensor

    def pin_memory(self) -> PackedBatch:
        """Return a copy in pinned memory; PyTorch's DataLoader calls this method of a batch."""
        images = {
            sha256: patches._replace(values=patches.values.pin_memory())
            for sha256, patches in self.images.items()
        }
        tensors = {
            name: getattr(self, name).pin_memory()
            for name in ("token_ids", "positions", "before", "places", "mask")
        }
        return replace(self, images=images, **tensors)


def pack(
    codec: Codec,
    segments: Sequence[Segment],
    images: Mapping[str, Visual],
    *,
    share: bool = True,
) -> PackedBatch:
    """Pack segments into one row, as `TrainablePolicy.collate` describes.

    Args:
        codec: The codec of the policy.
        segments: At least one segment.
        images: All images and videos of the segments, by their hash.
        share: Whether common prefixes are read once.

    Raises:
        PolicyError: If a segment cannot be scored: it was made with another processor, an image or
            a video is missing, it has no tokens, its first token was sampled, or a token violates
            the constraint of its turn.
    """
    family = require_qwen_vl(codec.family)
    check_segments(family, segments, images)
    row = _Row(segments, family, images)
    row.lay(grow(segments) if share else _apart(segments))
    shown = family.encode([images[span.sha256] for span in row.shown])
    sampled = [np.flatnonzero(segment.loss_mask) for segment in segments]
    before = [row.where(index, each - 1) for index, each in enumerate(sampled)]
    mask = np.zeros((len(segments), max(map(len, segments))), np.bool_)  # [segments, length]
    for line, segment in zip(mask, segments, strict=True):
        line[: len(segment)] = segment.loss_mask
    return PackedBatch(
        token_ids=torch.from_numpy(np.concatenate(row.token_ids))[None],  # [1, tokens]
        # [3, length] of each stream, end to end: [3, 1, tokens].
        positions=torch.from_numpy(np.concatenate(row.positions, 1))[:, None],
        layout=tuple(row.layout),
        images=shown,
        shown=tuple(row.shown),
        before=torch.from_numpy(np.concatenate(before)),  # [places], segment by segment
        places=places_of(codec, segments),
        mask=torch.from_numpy(mask),
    )


def _apart(segments: Sequence[Segment]) -> list[PrefixNode]:
    return [PrefixNode((index,), 0, len(segment)) for index, segment in enumerate(segments)]


def check_segments(
    family: ModelFamily, segments: Sequence[Segment], images: Mapping[str, Visual]
) -> None:
    """Check that segments can be scored by a policy with this family.

    Raises:
        PolicyError: If there are none, or one of them cannot be scored, see `pack`.
    """
    if not segments:
        raise PolicyError("A batch must contain at least one segment, got none.")
    for segment in segments:
        if segment.videos and not family.takes_videos:
            raise PolicyError(
                "The segment has video tokens, and this policy shows videos as frames: both need "
                "the same option `video`."
            )
        own = family.fingerprint(with_videos=bool(segment.videos))
        if not same_processor(own, segment.processor):
            raise PolicyError(
                f"The segment was made with the image processor {segment.processor}, "
                f"this policy's is {own}: its images would not fit their tokens."
            )
        missing = [span.sha256 for span in segment.spans if span.sha256 not in images]
        if missing:
            raise PolicyError(f"The image or video {missing[0]} of a segment was not given.")
        if not len(segment):
            raise PolicyError("A segment must contain at least one token, got none.")
        if segment.loss_mask[0]:
            raise PolicyError(
                "The first token of a segment was sampled, but no token precedes it from which it "
                "could be predicted."
            )


# ------------------------------------------------------------------------------------------ the row


@dataclass(slots=True)
class _Row:
    """Builds a packed row."""

    segments: Sequence[Segment]
    family: QwenVL
    images: Mapping[str, Visual]
    token_ids: list[NDArray[np.int64]] = field(default_factory=list)
    positions: list[NDArray[np.int64]] = field(default_factory=list)
    layout: list[AttentionCall] = field(default_factory=list)
    shown: list[Span] = field(default_factory=list)
    length: int = 0
    _runs: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def lay(self, forest: Sequence[PrefixNode]) -> None:
        """Add trees, a node before its children; siblings of similar length attend together."""
        streams = 0
        pending: list[tuple[Sequence[PrefixNode], tuple[int, ...]]] = [(forest, ())]
        while pending:
            siblings, before = pending.pop()
            for batch in alike([len(node) for node in siblings]):
                self.layout.append(
                    AttentionCall(tuple(len(siblings[index]) for index in batch), before)
                )
                for index in batch:
                    self._lay(siblings[index])
                    pending.append((siblings[index].children, (*before, streams)))
                    streams += 1

    def _lay(self, node: PrefixNode) -> None:
        segment = self.segments[node.members[0]]
        part = slice(node.start, node.end)
        whole = self.family.positions(len(segment), segment.spans, self.images)  # [3, length]
        self.token_ids.append(segment.token_ids[part].astype(np.int64))
        self.positions.append(whole[:, part])  # [3, node]
        self.shown += [span for span in segment.spans if _within(span, node)]
        for member in node.members:
            self._runs.setdefault(member, []).append((node.start, self.length))
        self.length += len(node)

    def where(self, segment: int, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of a segment's tokens in the row."""
        places = np.zeros(len(tokens), np.int64)
        for start, begin in self._runs[segment]:  # from the root
            places = np.where(tokens >= start, begin + tokens - start, places)
        return places


def _within(span: Span, node: PrefixNode) -> bool:
    return node.start <= span.offset < node.end


# --------------------------------------------------------------------------------------- the places


def places_of(codec: Codec, segments: Sequence[Segment]) -> TokenPositions:
    """Return the sampled tokens of segments, segment by segment."""
    tokens = [segment.token_ids[segment.loss_mask].astype(np.int64) for segment in segments]
    # A greedy turn has temperature 0; it is scored at temperature 1.
    temperature = [np.full(len(own), segment.temperature or 1.0, np.float32)
                   for own, segment in zip(tokens, segments, strict=True)]  # fmt: skip
    return TokenPositions(
        torch.from_numpy(np.concatenate(tokens)),  # [places]
        torch.from_numpy(np.concatenate(temperature)),  # [places]
        ExcludedTokens.of(codec.constraints, segments),
    )
