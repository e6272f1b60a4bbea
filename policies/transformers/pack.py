"""Segments as one packed row: every token that is really read stands in it once.

All of it is made on the CPU; positions, images and places are those that each segment would have
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.errors import PolicyError
from visenv.types import Image, ImageSpan, Segment

from ..tokens.codec import Codec
from ..tokens.vision import ImageEncoder, Patches, rope_positions
from .attention import Call, alike
from .head import Exclusions, Places
from .trees import Node, grow


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """The input of one forward pass.

    Attributes:
        token_ids: int64 ``[1, tokens]``.
        positions: int64 ``[3, 1, tokens]``, M-RoPE.
        layout: How attention takes the row apart; it covers every token.
        images: The distinct images, by `Image.sha256`.
        shown: Whose placeholders stand in the row, image by image.
        before: int64 ``[places]``: the token after which each sampled token was drawn.
        places: What was drawn there, and how.
        mask: bool ``[segments, length]``: the segments' loss masks; its True cells, row by row, are
            the places.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    layout: tuple[Call, ...]
    images: Mapping[str, Patches]
    shown: tuple[str, ...]
    before: torch.Tensor
    places: Places
    mask: torch.Tensor

    def pin_memory(self) -> Packed:
        """Return a copy in pinned memory, as PyTorch's DataLoader asks of a batch."""
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
    images: Mapping[str, Image],
    *,
    share: bool = True,
) -> Packed:
    """See `TrainablePolicy.collate`.

    Args:
        codec: Of the policy.
        segments: At least one.
        images: Every image they name, by `Image.sha256`.
        share: Whether common beginnings are read once.

    Raises:
        PolicyError: If a segment cannot be scored: made with another image processor, an image
            missing, no token at all, its first token sampled, or a token against its turn's
            constraint.
    """
    _check(codec.encoder, segments, images)
    row = _Row(segments)
    row.lay(grow(segments) if share else _apart(segments))
    distinct = list(dict.fromkeys(row.shown))
    patches = codec.encoder.encode([images[sha256] for sha256 in distinct])
    sampled = [np.flatnonzero(segment.loss_mask) for segment in segments]
    before = [row.where(index, each - 1) for index, each in enumerate(sampled)]
    mask = np.zeros((len(segments), max(map(len, segments))), np.bool_)
    for line, segment in zip(mask, segments, strict=True):
        line[: len(segment)] = segment.loss_mask
    return Packed(
        token_ids=torch.from_numpy(np.concatenate(row.token_ids))[None],
        positions=torch.from_numpy(np.concatenate(row.positions, 1))[:, None],
        layout=tuple(row.layout),
        images=dict(zip(distinct, patches, strict=True)),
        shown=tuple(row.shown),
        before=torch.from_numpy(np.concatenate(before)),
        places=_places(codec, segments),
        mask=torch.from_numpy(mask),
    )


def _apart(segments: Sequence[Segment]) -> list[Node]:
    return [Node((index,), 0, len(segment)) for index, segment in enumerate(segments)]


def _check(encoder: ImageEncoder, segments: Sequence[Segment], images: Mapping[str, Image]) -> None:
    if not segments:
        raise PolicyError("There are no segments to score.")
    for segment in segments:
        if segment.processor != encoder.fingerprint:
            raise PolicyError(
                f"The segment was made with the image processor {segment.processor}, "
                f"this policy's is {encoder.fingerprint}: its images would not fit their tokens."
            )
        if segment.videos:
            raise PolicyError("This policy scores no video tokens; it shows videos as frames.")
        missing = [span.sha256 for span in segment.images if span.sha256 not in images]
        if missing:
            raise PolicyError(f"The image {missing[0]} that a segment names was not given.")
        if not len(segment):
            raise PolicyError("A segment without tokens cannot be scored.")
        if segment.loss_mask[0]:
            raise PolicyError(
                "The first token of a segment was sampled: nothing stands before it that could "
                "predict it."
            )


# ------------------------------------------------------------------------------------------ the row


@dataclass(slots=True)
class _Row:
    """A packed row as it grows."""

    segments: Sequence[Segment]
    token_ids: list[NDArray[np.int64]] = field(default_factory=list)
    positions: list[NDArray[np.int64]] = field(default_factory=list)
    layout: list[Call] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    length: int = 0
    _runs: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def lay(self, forest: Sequence[Node]) -> None:
        """Lay trees down, a node before its children; siblings of like length attend together."""
        streams = 0
        pending: list[tuple[Sequence[Node], tuple[int, ...]]] = [(forest, ())]
        while pending:
            siblings, before = pending.pop()
            for batch in alike([len(node) for node in siblings]):
                self.layout.append(Call(tuple(len(siblings[index]) for index in batch), before))
                for index in batch:
                    self._lay(siblings[index])
                    pending.append((siblings[index].children, (*before, streams)))
                    streams += 1

    def _lay(self, node: Node) -> None:
        segment = self.segments[node.members[0]]
        part = slice(node.start, node.end)
        whole = rope_positions(len(segment), segment.images, segment.merge)  # [3, length]
        self.token_ids.append(segment.token_ids[part].astype(np.int64))
        self.positions.append(whole[:, part])
        self.shown += [span.sha256 for span in segment.images if _within(span, node)]
        for member in node.members:
            self._runs.setdefault(member, []).append((node.start, self.length))
        self.length += len(node)

    def where(self, segment: int, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where tokens of a segment stand in the row."""
        places = np.zeros(len(tokens), np.int64)
        for start, begin in self._runs[segment]:  # from the root on
            places = np.where(tokens >= start, begin + tokens - start, places)
        return places


def _within(span: ImageSpan, node: Node) -> bool:
    return node.start <= span.offset < node.end


# --------------------------------------------------------------------------------------- the places


def _places(codec: Codec, segments: Sequence[Segment]) -> Places:
    tokens = [segment.token_ids[segment.loss_mask].astype(np.int64) for segment in segments]
    # A greedy turn was drawn at no temperature; it is scored at 1.
    temperature = [np.full(len(own), segment.temperature or 1.0, np.float32)
                   for own, segment in zip(tokens, segments, strict=True)]  # fmt: skip
    return Places(
        torch.from_numpy(np.concatenate(tokens)),
        torch.from_numpy(np.concatenate(temperature)),
        Exclusions.of(codec.constraints, segments),
    )
