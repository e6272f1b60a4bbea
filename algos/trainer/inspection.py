"""Saves the data of a step that failed, for inspection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from visenv.episodes import write_episodes
from visenv.evaluation.values import require_finite_reward
from visenv.files import output_folder, replacing
from visenv.types import Group

from .credit import TrainingSegment
from .distributed import DistributedContext
from .optimizer_shards import save_tensors

Scored = Sequence[tuple[TrainingSegment, torch.Tensor]]


def save_step(
    folder: Path, step: int, groups: Sequence[Group], scored: Scored, processes: DistributedContext
) -> Path:
    """Write the episodes and scores of a step. Every process makes this call.

    Args:
        folder: The output folder.
        step: The number of the step, from 1.
        groups: The groups of this process.
        scored: The segments and log-probabilities of the latest optimizer step (`Updater.latest`).
        processes: The processes of the run.

    Returns:
        The file of the episodes. The same folder contains a file ``….scores-<rank>.pt`` for each
        process. It holds a list with, for each segment, ``group``, ``token_ids``, ``loss_mask``,
        ``advantages``, ``sampling_logprobs`` and ``logprobs`` (of the last forward pass), all
        ``[length]`` except ``group``.
    """
    name = f"step_{step:06d}"
    path = folder / f"{name}.jsonl"
    everyones = processes.collect(groups)
    output_folder(folder)
    if processes.first:
        write_episodes(path, [one for each in everyones for group in each for one in group])
    if scored:
        rows = [_row(credited, logprobs) for credited, logprobs in scored]
        with replacing(folder / f"{name}.scores-{processes.rank}.pt") as partial:
            save_tensors(rows, partial)
    return path


def _row(credited: TrainingSegment, logprobs: torch.Tensor) -> dict[str, object]:
    segment = credited.segment
    arrays = {
        "token_ids": segment.token_ids,
        "loss_mask": segment.loss_mask,
        "advantages": credited.advantages,
        "sampling_logprobs": segment.logprobs,
    }
    return {
        "group": credited.group,
        **{name: torch.from_numpy(array) for name, array in arrays.items()},
        "logprobs": logprobs[: len(segment)].clone(),
    }


def require_finite_rewards(groups: Sequence[Group]) -> None:
    """Check that all rewards are finite, because advantages are computed from them.

    Raises:
        EpisodeError: If a reward is not a finite number. The message names the episode.
    """
    for episode in (each for group in groups for each in group):
        require_finite_reward(episode)
