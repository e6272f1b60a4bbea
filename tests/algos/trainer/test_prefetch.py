"""Tests prefetching: micro-batches are made one ahead, in order, without changes of the results."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments import few
from tests.tiny_models import tiny_model
from visenv.errors import PolicyError

pytestmark = pytest.mark.component("torch")

SECONDS = 60.0


def test_prefetch_prepares_one_item_while_the_caller_uses_another() -> None:
    from visenv.algos.trainer.micro_batches import prefetched

    begun = [threading.Event() for _ in range(4)]
    threads: set[str] = set()

    def make(item: int) -> int:
        begun[item].set()
        threads.add(threading.current_thread().name)
        return item * item

    found: list[int] = []
    with closing(prefetched(make, range(4))) as made:
        for number, value in enumerate(made):
            found.append(value)
            assert all(event.wait(SECONDS) for event in begun[: number + 2])
            assert not any(event.is_set() for event in begun[number + 2 :])
    assert found == [0, 1, 4, 9]
    assert threads == {"visenv-prefetch_0"}


class Batch:
    """Supports weak references."""


def test_prefetch_holds_at_most_two_items() -> None:
    from visenv.algos.trainer.micro_batches import prefetched

    alive: list[weakref.ref[Batch]] = []

    def make(_: int) -> Batch:
        batch = Batch()
        alive.append(weakref.ref(batch))
        return batch

    most = 0
    # A collection then takes milliseconds, whatever other tests have loaded. After `gc.unfreeze`,
    # each full collection of all later tests would take a second.
    gc.freeze()
    for batch in prefetched(make, range(20)):
        gc.collect()
        most = max(most, sum(each() is not None for each in alive))
        assert isinstance(batch, Batch)
    assert most <= 2
    assert len(alive) == 20


def test_error_comes_in_its_place_and_the_thread_ends() -> None:
    from visenv.algos.trainer.micro_batches import prefetched

    def make(item: int) -> int:
        if item == 2:
            raise PolicyError("An image is missing.")
        return item

    found: list[int] = []
    with (
        pytest.raises(PolicyError, match="An image is missing"),
        closing(prefetched(make, range(5))) as made,
    ):
        found.extend(made)
    assert found == [0, 1]
    with closing(prefetched(make, [0, 1])) as made:
        next(made)  # the caller stops here
    assert not [each for each in threading.enumerate() if "visenv-prefetch" in each.name]


def test_prefetch_of_one_or_no_item_starts_no_thread() -> None:
    from visenv.algos.trainer.micro_batches import prefetched

    name = threading.current_thread().name
    assert list(prefetched(lambda _: threading.current_thread().name, [0])) == [name]
    assert not list(prefetched(lambda _: 0, []))


def _in_turn(make: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    yield from map(make, items)


@pytest.mark.component("transformers")
@pytest.mark.parametrize("old_logprobs", few(["sampler", "trainer"], 1))
def test_weights_are_to_the_bit_those_without_prefetching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old_logprobs: Any
) -> None:
    import gymnasium as gym
    import torch

    import visenv  # noqa: F401 - registers the environments
    from tests.algos.runs import Sloped
    from visenv.algos.trainer import OptimizationConfig, update
    from visenv.algos.trainer.credit import credit
    from visenv.algos.trainer.ddp import make_backend
    from visenv.algos.trainer.distributed import DistributedContext
    from visenv.algos.trainer.micro_batches import prefetched
    from visenv.registration import load
    from visenv.rollout import Collector
    from visenv.types import Sampling

    model = tiny_model(tmp_path)
    optimization = OptimizationConfig(
        learning_rate=0.01, tokens_per_batch=300, old_logprobs=old_logprobs, num_minibatches=2
    )
    groups: Any = None
    found: list[list[torch.Tensor]] = []
    made: list[int] = []
    real = prefetched

    def counting(make: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        made.append(len(items))
        yield from real(make, items)

    for way in (counting, _in_turn):
        monkeypatch.setattr(update, "prefetched", way)
        policy = load("policy", "transformers")(model, threads=1)
        if groups is None:
            collector = Collector(
                lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny"), policy, Sampling(max_tokens=6)
            )
            groups = collector.groups(range(4), size=2)
        processes = DistributedContext(timeout=60)
        reference = policy.copy_frozen()
        policy.codec.family.images.forget()  # images are processed again
        with closing(make_backend(policy, optimization, processes)) as backend:
            updater = update.Updater(
                policy, Sloped(kl_coef=0.1), optimization, backend, processes, None, reference
            )
            updater.update(credit(Sloped(), groups), 0.01, np.random.default_rng(0))
        found.append([each.detach().clone() for each in policy.parameters()])
    assert max(made) > 1
    assert all(map(torch.equal, *found))


def test_packed_row_in_pinned_memory_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gymnasium as gym
    import torch

    import visenv  # noqa: F401
    from visenv.algos.trainer.micro_batches import pinned
    from visenv.registration import load
    from visenv.rollout import Collector
    from visenv.types import Sampling

    policy = load("policy", "transformers")(tiny_model(tmp_path), threads=1)
    collector = Collector(
        lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny"), policy, Sampling(max_tokens=6)
    )
    ((episode,),) = collector.groups([0])
    images = {image.sha256: image for image in episode.images}
    packed = policy.collate(episode.segments, images)
    assert images
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pinned(packed) is packed
    copied: list[int] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        copied.append(tensor.nbytes)
        return tensor.clone()

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    copy = pinned(packed)
    # `places` has 4 tensors, each image has 1, and the batch itself has 4 others.
    assert len(copied) == 4 + 4 + len(packed.images)
    assert copy.layout == packed.layout
    assert torch.equal(policy.module(copy).logprobs, policy.module(packed).logprobs)
    assert pinned([1, 2]) == [1, 2]  # unsupported objects are returned unchanged
