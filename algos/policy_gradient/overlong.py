"""Handles episodes that are too long or were truncated."""

from __future__ import annotations

from dataclasses import replace

from visenv.types import Episode


def soft_punishment(length: int, limit: int, buffer: int) -> float:
    """Return the penalty: 0 up to ``limit - buffer`` tokens, then linear, and -1 from `limit` on.

    Source: DAPO (arXiv:2503.14476), equation 13.
    """
    return -min(max(length - (limit - buffer), 0) / buffer, 1.0)


def punished(episode: Episode, limit: int, buffer: int, penalty: float) -> Episode:
    """Return the episode with `penalty` times `soft_punishment` added to its last reward."""
    added = penalty * soft_punishment(episode.num_sampled_tokens, limit, buffer)
    if added == 0:
        return episode
    *others, last = episode.turns
    return replace(episode, turns=(*others, replace(last, reward=last.reward + added)))


def was_cut_off(episode: Episode) -> bool:
    """Return whether a limit, and not the policy, ended the episode or one of its turns."""
    lengthy = any(turn.finish_reason == "length" for turn in episode.turns)
    return episode.status == "truncated" or lengthy
