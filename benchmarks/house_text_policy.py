"""Defines `TextPolicy`, which learns the actions of House from texts of oracle episodes.

`benchmarks/house_attacks.py` compares it with the players that are not learned. A linear model over
hashed features scores every action of the list, and the best one is taken. A feature is a pair of a
fact of the context (a word of the instruction, the last actions and whether they were valid, how
often each verb was used, the object in hand) and a fact of the action (its verb, the position of
its object in the instruction, whether the object was found or is in hand, its type). The model sees
no image and, when it plays, no ground truth. It is trained with cross-entropy over the action of
the oracle and some others.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from benchmarks.house_attackers import INVALID, LIMIT
from visenv.envs.embodied.ground_truth import HouseTruth
from visenv.envs.embodied.simulation import HouseSimulation
from visenv.envs.embodied.source import house_sample
from visenv.envs.embodied.world.tasks import TaskOptions
from visenv.types import Sample

BUCKETS = 2**18
NEGATIVES = 48
_RECENT = 3
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PAIR = 0x9E3779B1
_FILLERS = {"a", "an", "the", "up", "down", "on", "off", "to", "object", "in", "hand"}

Features = NDArray[np.int64]


class Step(NamedTuple):
    """Holds an action that was taken, whether it was valid, and the feedback."""

    name: str
    ok: bool
    feedback: str


@dataclass
class Context:
    """Holds the texts that a policy reads: the instruction and the history.

    Attributes:
        instruction: The instruction of the task.
        steps: The actions that were taken.
    """

    instruction: str
    steps: list[Step] = field(default_factory=list)

    def add(self, name: str, ok: bool, feedback: str) -> None:
        """Add an action to the history."""
        self.steps.append(Step(name, ok, feedback))

    @property
    def held(self) -> str:
        """Return the type of the object in hand, according to the history."""
        held = ""
        for step in self.steps:
            verb, kind = parts(step.name)
            if step.ok and verb == "pick":
                held = kind
            elif step.ok and verb in ("put", "drop", "place"):
                held = ""
        return held

    def facts(self, mentions: Mapping[str, str]) -> list[str]:
        """Return the facts of the context."""
        verbs = Counter(parts(step.name)[0] for step in self.steps if step.ok)
        done = [f"did {verb} {min(count, 4)}" for verb, count in sorted(verbs.items())]
        past = [f"{parts(step.name)[0]} {mentions.get(parts(step.name)[1], '')} {step.ok}"
                for step in self.steps[-2:]]  # fmt: skip
        last = self.steps[-1] if self.steps else Step("", True, "")
        told = [] if last.ok else [f"told {word}" for word in _words(last.feedback)]
        held = f"held {mentions.get(self.held, '')}" if self.held else "held nothing"
        said = [f"said {word}" for word in _words(self.instruction)]
        state = f"{past[-1:]} {held}"
        return ["", f"last {past[-1:]}", f"last two {past}", held, state, *done, *told, *said]


@cache
def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case; "SideTable_2" has three."""
    return tuple(word.lower() for word in _WORDS.findall(text))


@cache
def _hash(text: str) -> int:
    return zlib.crc32(text.encode())


@cache
def parts(name: str) -> tuple[str, str]:
    """Return the verb of an action and the type of its object: ``("find", "side table")``."""
    verb, *rest = _words(name) or ("",)
    return verb, " ".join(word for word in rest if word not in _FILLERS and not word.isdigit())


def mentioned(instruction: str, names: Sequence[str]) -> dict[str, str]:
    """Return, for each type of object, its rank among the mentions in the instruction, as text."""
    said = f" {' '.join(_words(instruction))} "
    places = {}
    for kind in sorted({kind for _, kind in map(parts, names)}, key=len, reverse=True):
        places[kind] = said.find(f" {kind} ") if kind else -1
        if places[kind] >= 0:  # "desk lamp" does not name a desk
            said = said.replace(kind, "#" * len(kind))
    order = sorted((place, kind) for kind, place in places.items() if place >= 0)
    ranks = {kind: f"m{rank}" for rank, (_, kind) in enumerate(order)}
    return {kind: ranks.get(kind, "m-") for kind in places}


def features(context: Context, names: Sequence[str], listed: Sequence[str]) -> list[Features]:
    """Return the buckets of the features of each action, int64 ``[features]``.

    Args:
        context: The instruction and the history.
        names: The actions.
        listed: All actions of the episode.
    """
    mentions = mentioned(context.instruction, listed)
    before = Counter((step.name, step.ok) for step in context.steps)
    found = [parts(step.name)[1] for step in context.steps if step.ok]
    last, held = context.steps[-1].name if context.steps else "", context.held
    facts = np.array([_hash(fact) for fact in context.facts(mentions)], np.int64) * _PAIR
    made = []
    for name in names:
        verb, kind = parts(name)
        where = mentions.get(kind, "")
        status = (f"{kind == held} {kind in found} {kind == parts(last)[1]} "
                  f"{min(before[name, True], 2)} {min(before[name, False], 1)}")  # fmt: skip
        own = [verb, f"{verb} {where}", f"{verb} {where} {status}", f"{verb} {status}",
               f"{verb} {kind}"]  # fmt: skip
        hashed = np.array([_hash(fact) for fact in own], np.int64)
        made.append((facts[:, None] ^ hashed).ravel() % BUCKETS)  # [facts * facts of the action]
    return made


Decision = list[Features]
"""Features of the oracle's action, which is the first, and of some others."""


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
        return int(self.scores(features(context, names, names)).argmax())


def play(policy: TextPolicy, sample: Sample) -> bool:
    """Play a task with the limits of EmbodiedBench; return whether it succeeded."""
    simulation = HouseSimulation(sample.truth_as(HouseTruth))
    context, invalid = Context(sample.question), 0
    while simulation.steps < LIMIT and invalid < INVALID and not simulation.succeeded:
        index = policy.choose(context, simulation.dialect.names)
        ok, detail = simulation.act(index)
        invalid += not ok
        context.add(simulation.dialect.names[index], ok, detail["feedback"])
    return simulation.succeeded


def decisions(sample: Sample, rng: np.random.Generator) -> Iterator[Decision]:
    """Yield the decisions of the oracle's episode.

    Args:
        sample: The task.
        rng: Draws the actions with which the oracle's action is compared.
    """
    simulation = HouseSimulation(sample.truth_as(HouseTruth))
    context, names = Context(sample.question), simulation.dialect.names
    for index in simulation.truth.plan:
        others = rng.choice(len(names), min(NEGATIVES, len(names)), replace=False).tolist()
        chosen = [index, *(other for other in others if other != index)]
        yield features(context, [names[each] for each in chosen], names)
        ok, detail = simulation.act(index)
        context.add(names[index], ok, detail["feedback"])


def trained(dialect: str, subsets: Sequence[str], tasks: int, epochs: int = 3) -> TextPolicy:
    """Return a policy that is trained on the oracle's episodes of the training split.

    Args:
        dialect: The dialect.
        subsets: The subsets, in equal shares.
        tasks: Number of tasks.
        epochs: Passes over the decisions.
    """
    rng = np.random.default_rng(0)
    every = [TaskOptions(dialect, subset, "train") for subset in subsets]
    samples = (house_sample(seed, every[seed % len(every)]) for seed in range(tasks))
    policy = TextPolicy()
    policy.fit([each for sample in samples for each in decisions(sample, rng)], epochs, rng)
    return policy
