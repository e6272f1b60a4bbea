"""Runs TRL's GRPO loss on episodes of visenv: its `_compute_loss` and fused head, a stock model."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers

from visenv.policies.tokens.qwen_vl import require_qwen_vl
from visenv.policies.transformers import TransformersPolicy
from visenv.types import Image, Segment

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

from datasets import Dataset
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer


class Peer:
    """Wraps a `GRPOTrainer` that gets episodes instead of generating them.

    Args:
        folder: The checkpoint.
        policy: The policy of visenv, for its image processor.
        device: Device of the model.
        dtype: Type of the weights.
        rows: Segments of a group; the whole group is one batch.
        checkpointing: Whether activations are recomputed for the gradient.
        sampled_only: Whether its head skips masked places, as on a GPU; on a CPU, it scores every
            place of every sequence by default.
    """

    def __init__(
        self,
        folder: Path,
        policy: TransformersPolicy,
        device: str,
        dtype: torch.dtype,
        rows: int,
        *,
        checkpointing: bool,
        sampled_only: bool,
    ) -> None:
        self._policy = policy
        model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=dtype)
        model.model.visual.requires_grad_(requires_grad=False)
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as scratch:
            warnings.simplefilter("ignore")
            config = GRPOConfig(
                output_dir=scratch,
                per_device_train_batch_size=rows,
                num_generations=rows,
                gradient_checkpointing=checkpointing,
                use_cpu=device == "cpu",
                bf16=False,
                report_to=[],
                loss_type="dapo",
                beta=0.0,
                max_steps=1,
            )
            prompts = Dataset.from_list([{"prompt": [{"role": "user", "content": "?"}]}])
            self._trainer = GRPOTrainer(
                model=model,
                reward_funcs=_no_reward,
                args=config,
                train_dataset=prompts,
                processing_class=transformers.AutoProcessor.from_pretrained(folder),
            )
        trained: Any = self._trainer.model
        self.model: Any = trained.to(device).train()
        self._trainer.current_gradient_accumulation_steps = 1
        self._device = device
        self._sampled_only = sampled_only

    def inputs(
        self,
        segments: Sequence[Segment],
        images: Mapping[str, Image],
        advantages: torch.Tensor,
    ) -> dict[str, Any]:
        """Return the episodes in TRL's format: prompts padded left, completions padded right."""
        starts = [int(segment.loss_mask.argmax()) for segment in segments]
        longest = max(starts)
        length = longest + max(
            len(each) - start for each, start in zip(segments, starts, strict=True)
        )
        ids, own, sampled = (
            torch.zeros(len(segments), length, dtype=torch.int64) for _ in range(3)
        )
        for row, (segment, start) in enumerate(zip(segments, starts, strict=True)):
            at = slice(longest - start, longest - start + len(segment))
            ids[row, at] = torch.from_numpy(segment.token_ids).long()
            own[row, at] = 1
            sampled[row, at] = torch.from_numpy(segment.loss_mask).long()
        shown = [images[span.sha256] for segment in segments for span in segment.images]
        patches = require_qwen_vl(self._policy.codec.family).images.encode(shown)
        inputs = {
            "prompt_ids": ids[:, :longest],
            "prompt_mask": own[:, :longest],
            "completion_ids": ids[:, longest:],
            "completion_mask": own[:, longest:],
            "tool_mask": sampled[:, longest:],
            "advantages": advantages,
            "num_items_in_batch": sampled.sum(),
            "pixel_values": torch.cat([each.values for each in patches]),
            "image_grid_thw": torch.tensor([each.grid for each in patches]),
            "mm_token_type_ids": (ids == self._policy.codec.image_id).long(),
        }
        moved: dict[str, Any] = {name: each.to(self._device) for name, each in inputs.items()}
        return moved | {"num_images": [len(segment.images) for segment in segments]}

    def loss(self, inputs: Mapping[str, Any]) -> torch.Tensor:
        """Return TRL's loss (DAPO: the mean over all sampled tokens)."""
        with mock.patch("trl.trainer.utils._use_triton", return_value=self._sampled_only):
            value: torch.Tensor = self._trainer._compute_loss(self.model, dict(inputs))  # noqa: SLF001
        return value

    def scores(self, inputs: Mapping[str, Any]) -> torch.Tensor:
        """Return TRL's log-probabilities of the completions, ``[rows, completion length]``."""
        keep = inputs["completion_ids"].size(1)
        shown = ("pixel_values", "image_grid_thw", "num_images", "mm_token_type_ids")
        with mock.patch("trl.trainer.utils._use_triton", return_value=self._sampled_only):
            found: torch.Tensor = self._trainer._get_per_token_logps_and_entropies(  # noqa: SLF001
                self.model,
                torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1),
                torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1),
                keep,
                **{name: inputs[name] for name in shown},
            )[0]
        return found


def _no_reward(completions: list[Any], **_: Any) -> list[float | None]:
    """Return no rewards; TRL requires a reward function, but the rewards are in the episodes."""
    return [0.0] * len(completions)
