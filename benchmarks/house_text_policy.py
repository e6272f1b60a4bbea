"""TextPolicy: learns from oracle episodes of House which action to take, from texts alone.

`benchmarks/house_attacks.py` reports it beside the players that are not learned. A linear model
over hashed features scores every action of the list and takes the best one. The features are pairs
of a word of the context (instruction, last actions, feedback) and a word of the action, whether the
words of the action occur in the instruction or in earlier actions, and what came of the action
before. The model sees no image and, when it plays, no ground truth. It is trained by cross-entropy
over the action of the oracle and some others.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from visenv.envs.embodied.attacks import INVALID, LIMIT
from visenv.envs.embodied.simulation import HouseSimulation
from visenv.envs.embodied.source import house_sample
from visenv.envs.embodied.world.tasks import TaskOptions, next_action
from visenv.types import Sample

BUCKETS = 2**18
NEGATIVES = 24
_RECENT = 3
_EXTRA = 4
"""Actions of a training episode beyond the length of the oracle's plan."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PAIR = 0x9E3779B1

Features = NDArray[np.int64]


class Step(NamedTuple):
    """An action that was taken, whether it was valid, and the feedback."""

    name: str
    ok: bool
    feedback: str


@dataclass
class Context:
    """The texts that a policy reads: the instruction and the history.

    Attributes:
        instruction: What is to be done.
        steps: The actions that were taken.
    """

    instruction: str
    steps: list[Step] = field(default_factory=list)

    def add(self, name: str, ok: bool, feedback: str) -> None:
        """Add an action to the history."""
        self.steps.append(Step(name, ok, feedback))

    def words(self) -> list[str]:
        """Return the words of the instruction, its pairs of words, and the tagged history."""
        said = _words(self.instruction)
        pairs = [f"{one} {other}" for one, other in pairwise(said)]
        past = [f"{back}{'+' if step.ok else '-'}{word}"
                for back, step in enumerate(reversed(self.steps[-_RECENT:]))
                for word in _words(step.name)]  # fmt: skip
        verbs = Counter(_words(step.name)[0] for step in self.steps if step.ok)
        done = [f"={verb}{min(count, 4)}" for verb, count in verbs.items()]
        told = [f"!{word}" for step in self.steps[-1:] if not step.ok
                for word in _words(step.feedback)]  # fmt: skip
        return ["", f"#{min(len(self.steps), 9)}", *said, *pairs, *past, *done, *told]


@cache
def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case; "SideTable_2" has three."""
    return tuple(word.lower() for word in _WORDS.findall(text))


@cache
def _hash(text: str) -> int:
    return zlib.crc32(text.encode())


@cache
def _hashes(name: str) -> Features:
    """Return the hashes of the words of an action."""
    return np.array([_hash(word) for word in _words(name)], np.int64)


def features(context: Context, names: Sequence[str]) -> list[Features]:
    """Return the buckets of the features of each action, int64 ``[features]``."""
    said = {*_words(context.instruction)}
    past = {word for step in context.steps for word in _words(step.name)[1:]}
    last = context.steps[-1] if context.steps else Step("start", True, "")
    last_verb, *last_object = _words(last.name)
    taken: dict[str, list[bool]] = defaultdict(list)
    for step in context.steps:
        taken[step.name].append(step.ok)
    hashed = np.array([_hash(word) for word in context.words()], np.int64)[:, None] * _PAIR
    found = []
    for name in names:
        verb, *object_words = _words(name)
        known = [word for word in object_words if not word.isdigit()]
        own = [
            f"said {verb} {sum(word in said for word in known)} of {len(known)}",
            f"past {verb} {sum(word in past for word in known)} {last_verb} {last.ok}",
            f"taken {verb} {min(len(taken[name]), 3)} {taken[name][-1:]}",
            f"last {verb} {last_verb} {object_words == last_object} {last.ok}",
            f"kind {verb} {last_verb} {known == last_object[: len(known)]} {last.ok}",
        ]
        pairs = (hashed ^ _hashes(name)).ravel()  # [context words * action words]
        alone = np.array([_hash(word) for word in own], np.int64)
        found.append(np.concatenate([pairs, alone]) % BUCKETS)
    return found


Decision = list[Features]
"""Features of the oracle's action, the first, and of some others."""


class TextPolicy:
    """Scores actions by the sum of the weights of their features."""

    def __init__(self) -> None:
        self.weights = torch.nn.EmbeddingBag(BUCKETS, 1, mode="sum", sparse=True)
        torch.nn.init.zeros_(self.weights.weight)

    def scores(self, actions: Sequence[Features]) -> torch.Tensor:
        """Return a score for each action, float32 ``[actions]``."""
        ends = np.cumsum([0, *(len(each) for each in actions[:-1])])
        flat = torch.from_numpy(np.concatenate(actions))
        summed: torch.Tensor = self.weights(flat, torch.from_numpy(ends))  # [actions, 1]
        return summed[:, 0]

    def fit(self, made: Sequence[Decision], epochs: int, rng: np.random.Generator) -> None:
        """Train with SparseAdam on batches of 16 decisions."""
        optimizer = torch.optim.SparseAdam([*self.weights.parameters()], 0.01)
        for _ in range(epochs):
            order = rng.permutation(len(made))
            for start in range(0, len(order), 16):
                batch = [made[place] for place in order[start : start + 16]]
                scores = self.scores([each for actions in batch for each in actions])
                parts = scores.split([len(actions) for actions in batch])
                first = torch.zeros(1, dtype=torch.long)
                loss = torch.stack([F.cross_entropy(each[None], first) for each in parts]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    @torch.no_grad()
    def choose(self, context: Context, names: Sequence[str]) -> int:
        """Return the id of the best action."""
        return int(self.scores(features(context, names)).argmax())


def play(policy: TextPolicy, sample: Sample) -> bool:
    """Play a task with the limits of EmbodiedBench; return whether it succeeded."""
    simulation = HouseSimulation(sample.ground_truth)
    context, invalid = Context(sample.question), 0
    while simulation.steps < LIMIT and invalid < INVALID and not simulation.succeeded:
        index = policy.choose(context, simulation.dialect.names)
        ok, detail = simulation.act(index)
        invalid += not ok
        context.add(simulation.dialect.names[index], ok, detail["feedback"])
    return simulation.succeeded


def labeled(
    sample: Sample, policy: TextPolicy | None, rng: np.random.Generator
) -> Iterator[Decision]:
    """Yield what the oracle does in each state of an episode.

    Args:
        sample: The task.
        policy: Who acts (Ross et al. 2011); None for the oracle.
        rng: Draws the actions that the oracle's is compared with.
    """
    simulation = HouseSimulation(sample.ground_truth)
    context, names = Context(sample.question), simulation.dialect.names
    most = len(simulation.truth.plan) + _EXTRA
    while simulation.steps < most and not simulation.succeeded:
        best = next_action(simulation.dialect, simulation.state, simulation.truth.goal)
        if not best:
            return
        others = rng.choice(len(names), min(NEGATIVES, len(names)), replace=False).tolist()
        chosen = [best[0], *(other for other in others if other != best[0])]
        acted = best[0] if policy is None else policy.choose(context, names)
        if acted not in chosen:
            chosen.append(acted)
        yield features(context, [names[index] for index in chosen])
        ok, detail = simulation.act(acted)
        context.add(names[acted], ok, detail["feedback"])


def trained(dialect: str, subsets: Sequence[str], tasks: int, epochs: int = 5) -> TextPolicy:
    """Return a policy that is trained on tasks of the training split.

    It learns from the oracle's episodes, and then also from what the oracle would have done in the
    policy's own.

    Args:
        dialect: The dialect.
        subsets: The subsets, in equal shares.
        tasks: How many tasks.
        epochs: Passes over the decisions, in each of the two rounds.
    """
    rng = np.random.default_rng(0)
    every = [TaskOptions(dialect, subset, "train") for subset in subsets]
    samples = [house_sample(seed, every[seed % len(every)]) for seed in range(tasks)]
    policy, made = TextPolicy(), list[Decision]()
    for player in (None, policy):
        made += [each for sample in samples for each in labeled(sample, player, rng)]
        policy.fit(made, epochs, rng)
    return policy
