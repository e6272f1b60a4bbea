"""Saves what is left of a step that could not be taken, for a person to look at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch

from visenv.episodes import write_episodes
from visenv.errors import EpisodeError
from visenv.types import Episode, Group

from .credit import TrainingSegment
from .distributed import DistributedContext

Scored = Sequence[tuple[TrainingSegment, torch.Tensor]]


def save_step(
    folder: Path, step: int, groups: Sequence[Group], scored: Scored, processes: DistributedContext
) -> Path:
    """Write a step's episodes and scores; every process makes the same call.

    Args:
        folder: Where to.
        step: Its number, from 1.
        groups: This process's groups.
        scored: What its latest optimizer step read (`Updater.latest`).
        processes: Who takes part.

    Returns:
        The file of the episodes. Beside it, for each process, is a ``….scores-<rank>.pt``: a list
        with, for each segment, ``group``, ``token_ids``, ``loss_mask``, ``advantages``,
        ``sampling_logprobs`` and ``logprobs`` (those of the last forward pass), ``[length]``.
    """
    name = f"step_{step:06d}"
    path = folder / f"{name}.jsonl"
    everyones = processes.collect(groups)
    if processes.first:
        write_episodes(path, [one for each in everyones for group in each for one in group])
    folder.mkdir(parents=True, exist_ok=True)
    if scored:
        rows = [_row(credited, logprobs) for credited, logprobs in scored]
        torch.save(rows, folder / f"{name}.scores-{processes.rank}.pt")
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
    """Refuse episodes that no baseline can be taken of.

    Raises:
        EpisodeError: If a reward is not a finite number; names the episode.
    """
    for episode in (each for group in groups for each in group):
        if not math.isfinite(episode.reward):
            raise EpisodeError(
                f"{_place(episode)} has the reward {episode.reward}, of the terms "
                f"{dict(episode.terms)}; rewards must be finite numbers: mend the term, or let the "
                "environment abort the episode"
            )


def _place(episode: Episode) -> str:
    sample = f"sample {episode.sample_id!r}, " if episode.sample_id else ""
    return (
        f"the episode of {episode.env_id} with {sample}seed {episode.seed} (group {episode.group}, "
        f"member {episode.member})"
    )
