"""Checks that a saved episode can be scored again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from visenv.episodes import read_episodes, write_episodes
from visenv.evaluation.rescore import Rescorer
from visenv.testing.record import SEEDS, MakeEnv, assert_same, facts, played
from visenv.types import Episode


def check_rescores(make_env: MakeEnv) -> None:
    """Check that a loaded episode equals the saved one, and gets its reward without a judge."""
    env = make_env()
    episodes = [played(env, policy, seed) for policy in ("oracle", "random") for seed in SEEDS[:3]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "episodes.jsonl"
        write_episodes(path, episodes)
        saved = list(read_episodes(path))
        rescorer = Rescorer(trust=True)  # the episodes are those of `make_env`
        try:
            for episode, read in zip(episodes, saved, strict=True):
                what = f"A saved episode must read back as it was played, seed {episode.seed}."
                assert_same(facts(episode), facts(read), what)
                what = f"Rescoring must reproduce the paid reward, seed {episode.seed}."
                assert_same(facts(_paid(episode)), facts(_paid(rescorer.rescore(read))), what)
        finally:
            rescorer.close()


def _paid(episode: Episode) -> list[object]:
    rewards = [turn.reward for turn in episode.turns]
    return [rewards, dict(episode.terms), dict(episode.term_notes)]
