"""Compares updates by several processes with plain PyTorch in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch

import visenv  # noqa: F401 - registers the environments
from tests.algos import toy
from tests.algos.runs import Sloped
from tests.policies.conftest import Talk
from visenv.algorithm import Batch
from visenv.algos.trainer.backend import make_optimizer
from visenv.algos.trainer.config import OptimizationConfig
from visenv.algos.trainer.credit import credit
from visenv.algos.trainer.ddp import make_backend
from visenv.algos.trainer.distributed import DistributedContext
from visenv.algos.trainer.update import Updater
from visenv.registration import load
from visenv.rollout import Collector
from visenv.types import Episode, Group, Image, Message, Sampling, Turn, Visual

LEARNING_RATE = 0.01
Tensors = dict[str, torch.Tensor]


class Case(NamedTuple):
    """Holds groups, the rank of each group, and the token budget of a micro-batch."""

    groups: list[Group]
    owners: list[int]
    budget: int

    def optimization(self) -> OptimizationConfig:
        return OptimizationConfig(tokens_per_batch=self.budget, max_grad_norm=1e6)


# ------------------------------------------------------------------------------ cases


def toy_cases() -> list[Case]:
    shapes = [  # whether each group has images, its rank, the budget
        ("iiii", "0011", 1000),
        ("iiii", "0000", 12),  # one process has no group
        ("iiii", "1111", 12),
        ("ttii", "0011", 20),  # one process has no image
        ("tttt", "0001", 10),  # no process has an image
        ("i", "1", 1000),
        ("tiitti", "011111", 10),
    ]
    rng = np.random.default_rng(0)
    for _ in range(4):
        count = int(rng.integers(1, 8))
        kinds, owners = rng.choice(["i", "t"], count), rng.choice(["0", "1"], count)
        shapes.append(("".join(kinds), "".join(owners), int(rng.integers(5, 60))))
    cases = [
        Case(
            [_toy_group(rng, seed, kind == "i") for seed, kind in enumerate(kinds)],
            [int(each) for each in owners],
            budget,
        )
        for kinds, owners, budget in shapes
    ]
    # episodes with a segment for each turn, and the processes have different numbers of them
    groups = [_toy_group(rng, seed, images=True) for seed in range(4)]
    divided = [[toy.divided(each) for each in group] for group in groups[:3]]
    return [*cases, Case([*divided, groups[3]], [0, 0, 0, 1], 30)]


def _toy_group(rng: np.random.Generator, seed: int, images: bool) -> Group:
    policy = toy.ToyPolicy()
    episodes: list[Episode] = []
    for member in range(int(rng.integers(1, 4))):
        turns = []
        for turn in range(int(rng.integers(1, 4))):
            gray = Image.from_pixels(np.full((2, 2, 3), seed + turn, np.uint8))
            shown = (*([gray] if images else []), *rng.choice([*toy.LETTERS], 2))
            text = "".join(rng.choice([*toy.LETTERS.upper()], int(rng.integers(1, 4))))
            turns.append(Turn((Message("user", shown),), text, 0.0, (), "stop"))
        episode = Episode("Toy", "", "", seed, seed, member, tuple(turns), "terminated")
        episodes.append(policy.encode(episode))
    return episodes


def real_cases(policy: Any) -> list[Case]:
    def make_env() -> Any:
        return gym.make("visenv/ZoomVQA-v0", preset="tiny")

    groups = Collector(make_env, policy, Sampling(max_tokens=6)).groups(range(3), size=2)
    # The second process of the second case has no image of its own.
    cases = [
        Case(groups, [0, 1, 1], 400),
        Case([*groups, _group(policy)], [0, 0, 0, 1], 10**6),
    ]
    family = policy.codec.family
    if family.takes_videos and not family.packs:  # runs its tower apart for images and for videos
        # The first process has images and a video in its only micro-batch, the second only images.
        cases.append(Case([*groups, _group(policy, Talk().clip(1, 3))], [0, 1, 1, 0], 10**6))
    return cases


def _group(policy: Any, *shown: Visual) -> Group:
    """Return two episodes that show these images and videos."""
    episodes = []
    for member, text in enumerate(("red", "a blue one")):
        turn = Turn((Message("user", (*shown, "what is it")),), text, float(member), (), "stop")
        episode = Episode("Asked", "", "", 0, 0, member, (turn,), "terminated")
        episodes.append(policy.encode(episode))
    return episodes


# --------------------------------------------------------------------------- expected values


def expected(policy: Any, case: Case) -> Tensors:
    """Return gradients and weights of one process that scores all segments in one batch."""
    given = credit(Sloped(), case.groups)
    segments = [each.segment for each in given.own]
    images = {sha256: image for each in given.own for sha256, image in each.images.items()}
    scores = policy.score(segments, images)

    def padded(rows: list[Any]) -> torch.Tensor:
        found = torch.zeros_like(scores.logprobs)
        for line, row in zip(found, rows, strict=True):
            line[: len(row)] = torch.from_numpy(row)
        return found

    old = padded([each.logprobs for each in segments])
    old = torch.where(old.isnan(), scores.logprobs, old).detach()
    batch = Batch(
        logprobs=scores.logprobs,
        old_logprobs=old,
        sampling_logprobs=old,
        reference_logprobs=None,
        entropy=scores.entropy,
        advantages=padded([each.advantages for each in given.own]),
        mask=scores.mask,
        episode_tokens=torch.tensor([each.episode_tokens for each in given.own]),
        total_tokens=sum(int(each.loss_mask.sum()) for each in segments),
        total_episodes=sum(map(len, case.groups)),
    )
    optimizer = make_optimizer(policy, case.optimization())
    for group in optimizer.param_groups:
        group["lr"] = LEARNING_RATE
    Sloped().loss(batch).value.backward()
    named = list(policy.module.named_parameters())
    found = {
        f"gradient of {name}": torch.zeros_like(each) if each.grad is None else each.grad.clone()
        for name, each in named
    }
    optimizer.step()
    return found | {name: each.detach().clone() for name, each in named}


# ------------------------------------------------------------------------------ backend values


def found(policy: Any, case: Case, processes: DistributedContext) -> Tensors:
    """Return gradients and weights of the backend, on every process."""
    pairs = zip(case.groups, case.owners, strict=True)
    own = {id(group[0]) for group, owner in pairs if owner == processes.rank}
    given = credit(Sloped(), case.groups, lambda group: id(group[0]) in own)
    backend = make_backend(policy, case.optimization(), processes)
    updater = Updater(policy, Sloped(), case.optimization(), backend, processes)
    gradients: Tensors = {}
    step = backend.step

    def watched(accept: Any) -> float:
        def look(norm: float) -> bool:
            for name, each in policy.module.named_parameters():
                gradients[f"gradient of {name}"] = _gradient(each).clone()
            return bool(accept(norm))

        return step(look)

    backend.step = watched  # type: ignore[method-assign]
    updater.update(given, LEARNING_RATE, np.random.default_rng(0))
    backend.close()
    return gradients | {name: each.detach() for name, each in policy.module.named_parameters()}


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    if parameter.grad is not None:
        return parameter.grad
    from deepspeed.utils import safe_get_full_grad

    # Replicas leave out the gradient of a weight that no process used.
    gradient: torch.Tensor | None = safe_get_full_grad(parameter)
    return torch.zeros_like(parameter) if gradient is None else gradient


def compare(label: str, wanted: Tensors, got: Tensors) -> None:
    assert wanted.keys() == got.keys()
    for name, value in wanted.items():
        # AdamW's first step is the learning rate times g / (|g| + 1e-8). Where g is small, rounding
        # determines this step, so only the gradients are compared there.
        certain = wanted.get(f"gradient of {name}", torch.ones_like(value)).abs() > 1e-5
        torch.testing.assert_close(
            got[name][certain],
            value[certain],
            rtol=2e-4,
            atol=1e-6,
            msg=lambda said, name=name: f"{label}, {name}: {said}",  # type: ignore[misc]
        )


def check(model: str, processes: DistributedContext) -> None:
    """Run all cases; print how many agreed."""
    cases = toy_cases()[:4] if model else toy_cases()
    for number, case in enumerate(cases):
        policies = [toy.ToyPolicy(seed=number) for _ in range(2)]
        wanted = expected(policies[0], case)
        compare(f"toy case {number}", wanted, found(policies[1], case, processes))
    if model:
        policy = load("policy", "transformers")(model, threads=1)
        for number, case in enumerate(real_cases(policy)):
            trained = load("policy", "transformers")(model, threads=1)
            wanted = expected(policy, case)
            compare(f"real case {number}", wanted, found(trained, case, processes))
            policy.load_weights(Path(model))
            policy.module.zero_grad()
    print(f"{processes.rank}: all cases agree", flush=True)
