"""Scores segments with any vision-language model, as rows that are padded on the right.

Only public parts of transformers are used: the arguments of the model, its base model, its output
embeddings. Prefixes are not shared, so each row is read completely.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import BatchBudget, TokenScores
from visenv.types import ImageSpan, Segment, Visual

from ..tokens.codec import Codec
from ..tokens.family import ModelFamily, Span
from .head import LogprobHead, TokenPositions
from .lora import without
from .pack import check_segments, places_of
from .score import in_rows

_TYPES = ("mm_token_type_ids", "token_type_ids")
"""The names of the argument for token types; a model has at most one of them."""

_EXACT = 1e-4
"""Largest difference of logits of which the head is considered a projection of hidden states."""


@dataclass(frozen=True, slots=True, eq=False)
class PaddedBatch:
    """Holds the input of one forward pass.

    Attributes:
        inputs: The arguments of the model; `input_ids` are int64 ``[rows, length]``.
        before: int64 ``[places]``: the index, in the flattened rows, of the token after which each
            token was sampled.
        places: The sampled tokens with their temperatures and exclusions.
        mask: bool ``[rows, length]``: the loss masks of the segments; its True cells, row by row,
            are the places.
    """

    inputs: Mapping[str, torch.Tensor]
    before: torch.Tensor
    places: TokenPositions
    mask: torch.Tensor

    def pin_memory(self) -> PaddedBatch:
        """Return a copy in pinned memory; PyTorch's DataLoader calls this method of a batch."""
        return replace(
            self,
            inputs={name: tensor.pin_memory() for name, tensor in self.inputs.items()},
            before=self.before.pin_memory(),
            places=self.places.pin_memory(),
            mask=self.mask.pin_memory(),
        )


class PaddedModel:
    """Runs a whole model on padded rows.

    Args:
        model: A model from `AutoModelForImageTextToText`; its head is replaced by `LogprobHead`.
        codec: The codec of its checkpoint.
        fp32_head: Whether logits are computed in float32 for all types of the weights.
        bare: Whether LoRA adapters, if there are any, are disabled.

    Attributes:
        model: The whole model.
        head: The output projection of the model.
    """

    def __init__(
        self, model: Any, codec: Codec, *, fp32_head: bool = False, bare: bool = False
    ) -> None:
        self.model = model
        self.family: ModelFamily = codec.family
        self._bare = bare
        self._takes = _arguments_of(model)
        self._types = next((name for name in _TYPES if name in self._takes), None)
        if not isinstance(model.get_output_embeddings(), LogprobHead):
            weight = model.get_output_embeddings().weight
            banned = torch.from_numpy(codec.banned)
            model.set_output_embeddings(LogprobHead(weight, banned, single=fp32_head))
        self.head: LogprobHead = model.get_output_embeddings()

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        device: torch.device = self.model.device
        return device

    def check(self) -> None:
        """Check that the head is a projection of the last hidden states.

        Raises:
            PolicyError: If the logits are computed otherwise, as those of Gemma 2 with their cap.
        """
        token_ids = torch.arange(4)[None]
        with torch.no_grad():
            given = self.placed(self.arguments(token_ids, torch.ones_like(token_ids), ()))
            expected = self.model(**given, use_cache=False).logits
            found = self.head(self.hidden(given))
        assert isinstance(found, torch.Tensor)
        if not torch.allclose(found.float(), expected.float(), rtol=_EXACT, atol=_EXACT):
            raise PolicyError(
                f"The {self.family.name} model does not compute its logits as a projection of its "
                "last hidden states, so its log-probabilities cannot be computed in chunks."
            )

    def forget(self) -> None:
        """Do nothing: no features are cached."""

    def arguments(
        self, token_ids: torch.Tensor, attention_mask: torch.Tensor, items: Sequence[Visual]
    ) -> dict[str, torch.Tensor]:
        """Return the arguments of the model, on the CPU.

        Args:
            token_ids: int64 ``[rows, length]``.
            attention_mask: int64 of the same shape, 0 for padding.
            items: The images of all rows, row by row.
        """
        given = {"input_ids": token_ids, "attention_mask": attention_mask}
        if self._types is not None:
            types = self.family.token_types(token_ids.numpy())
            given[self._types] = torch.from_numpy(types)
        shown = self.family.inputs(items) if items else {}
        return given | {name: value for name, value in shown.items() if name in self._takes}

    def placed(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return arguments on the device of the model, floating-point ones in its type."""
        dtype = self.model.dtype
        return {
            name: value.to(
                self.device, dtype if value.is_floating_point() else value.dtype, non_blocking=True
            )
            for name, value in given.items()
        }

    def hidden(self, given: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the last hidden states, ``[rows, length, width]``."""
        with without(self.model) if self._bare else nullcontext():
            read = self.model.base_model(**given, use_cache=False)
        hidden: torch.Tensor = read.last_hidden_state
        return hidden


class PaddedScoring(torch.nn.Module):
    """Wraps the model as a module whose forward pass computes scores.

    Args:
        network: The model.
    """

    def __init__(self, network: PaddedModel) -> None:
        super().__init__()
        self.model = network.model
        self._network = network

    @override
    def forward(self, batch: PaddedBatch) -> TokenScores:
        """Return the log-probabilities of the sampled tokens of a batch made by `pad`."""
        network = self._network
        device = network.device
        hidden = network.hidden(network.placed(batch.inputs)).flatten(0, 1)  # [tokens, width]
        before = hidden.index_select(0, batch.before.to(device, non_blocking=True))
        picked, entropy = network.head(before, batch.places.to(device))  # [places] each
        return in_rows(picked, entropy, batch.mask.to(device, non_blocking=True))


def check_no_dropout(model: Any) -> None:
    """Check that scores do not depend on PyTorch's flag for training.

    Raises:
        ConfigurationError: If the model has a dropout.
    """
    for name, config in (("", model.config), *_parts_of(model.config)):
        for field, value in config.to_dict().items():
            if "dropout" in field and isinstance(value, float) and value > 0:
                raise ConfigurationError(
                    f"The model has {name}{field} = {value}, so that its scores would be random "
                    "with gradient_checkpointing: set it to 0 in the configuration of the "
                    "checkpoint."
                )


def _parts_of(config: Any) -> list[tuple[str, Any]]:
    """Return the configurations of the parts of a model, with their names.

    A part that the model lacks, such as the audio tower of Gemma 4, has no configuration.
    """
    parts = [(f"{name}.", getattr(config, name)) for name in type(config).sub_configs]
    return [(name, part) for name, part in parts if part is not None]


def _arguments_of(model: Any) -> set[str]:
    """Return the names of arguments that the model and its base model take."""
    whole = inspect.signature(type(model).forward).parameters
    base = inspect.signature(type(model.base_model).forward).parameters
    further = any(parameter.kind is parameter.VAR_KEYWORD for parameter in whole.values())
    return {name for name in base if name in whole or further}


def pad(
    network: PaddedModel,
    codec: Codec,
    segments: Sequence[Segment],
    images: Mapping[str, Visual],
) -> PaddedBatch:
    """Return a batch with one row for each segment, as `TrainablePolicy.collate` describes.

    Args:
        network: The model.
        codec: The codec of the policy.
        segments: At least one segment.
        images: All images of the segments, by their hash.

    Raises:
        PolicyError: If a segment cannot be scored, see `pack`.
    """
    check_segments(codec.family, segments, images)
    width = max(map(len, segments))
    token_ids = np.full((len(segments), width), codec.end_id, np.int64)
    seen = np.zeros((len(segments), width), np.int64)
    mask = np.zeros((len(segments), width), np.bool_)
    for row, segment in enumerate(segments):
        token_ids[row, : len(segment)] = segment.token_ids
        seen[row, : len(segment)] = 1
        mask[row, : len(segment)] = segment.loss_mask
    items = [images[span.sha256] for segment in segments for span in _first_spans(segment)]
    return PaddedBatch(
        inputs=network.arguments(torch.from_numpy(token_ids), torch.from_numpy(seen), items),
        before=torch.from_numpy(np.flatnonzero(mask) - 1),  # a first token is never sampled
        places=places_of(codec, segments),
        mask=torch.from_numpy(mask),
    )


def _first_spans(segment: Segment) -> Iterator[Span]:
    """Yield the span of each image, and the first span of each video, in order."""
    for span in segment.spans:
        if isinstance(span, ImageSpan) or span.first_step == 0:
            yield span


def _patches(segment: Segment) -> int:
    images = sum(span.patches for span in segment.images)
    return images + sum(math.prod(span.grid) for span in segment.videos)


def split_rows(segments: Sequence[Segment], budget: BatchBudget) -> list[list[int]]:
    """Split segments into parts for one forward pass each; shorter ones are padded to the longest.

    Args:
        segments: The segments.
        budget: The most tokens, padding included, and the most patches of a part. A segment that
            exceeds the budget alone is a part of its own.
    """
    parts: list[list[int]] = []
    longest = patches = 0
    for index in sorted(range(len(segments)), key=lambda index: (-len(segments[index]), index)):
        own = _patches(segments[index])
        tokens = (len(parts[-1]) + 1) * longest if parts else 0
        fits = tokens <= budget.tokens and (
            budget.patches is None or patches + own <= budget.patches
        )
        if parts and fits:
            parts[-1].append(index)
            patches += own
        else:
            parts.append([index])
            longest, patches = len(segments[index]), own
    return parts
