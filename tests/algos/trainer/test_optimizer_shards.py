"""Tests shards of the optimizer state: every reader restores its part with identical bits."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.errors import ConfigurationError, RunError

if TYPE_CHECKING:
    import torch

    from visenv.algos.trainer.optimizer_shards import Slot

pytestmark = pytest.mark.component("torch")

SIZES = {"a": 5, "b": 3}


class Holder:
    """Holds one process's slice of two consecutive parameters, of 5 and 3 weights.

    Args:
        begin: Index of the first of the 8 weights in the slice.
        end: Index after the last weight in the slice.
        steps: Number of AdamW steps, each with a gradient equal to the weights.
    """

    def __init__(self, begin: int, end: int, steps: int = 0) -> None:
        import torch

        from visenv.algos.trainer.optimizer_shards import Slot

        values = torch.arange(1.0, 9.0) if steps else torch.zeros(8)
        self.master = torch.nn.Parameter(values[begin:end].clone())
        self.optimizer = torch.optim.AdamW([self.master], lr=0.01, weight_decay=0.1)
        for _ in range(steps):
            self.master.grad = self.master.detach().clone()
            self.optimizer.step()
        self.slots: list[Slot] = []
        for name, first, last in (("a", 0, 5), ("b", 5, 8)):
            low, high = max(first, begin), min(last, end)
            if low < high:
                self.slots.append(Slot(name, low - first, high - low, self.master, low - begin))

    def save(self, folder: Path, rank: int, count: int) -> None:
        from visenv.algos.trainer.optimizer_shards import save_shard

        save_shard(folder, self.slots, self.optimizer, rank, count)

    def load(self, folder: Path, sizes: dict[str, int] = SIZES) -> None:
        from visenv.algos.trainer.optimizer_shards import load_shards

        load_shards(folder, self.slots, self.optimizer, sizes)

    def state(self) -> dict[str, torch.Tensor]:
        return {"weights": self.master.detach(), **self.optimizer.state[self.master]}


def _save(folder: Path, cuts: list[int], steps: int = 2) -> None:
    pairs = list(pairwise(cuts))
    for rank, (begin, end) in enumerate(pairs):
        Holder(begin, end, steps).save(folder, rank, len(pairs))


def test_second_moment_by_hand_is_where_it_belongs(tmp_path: Path) -> None:
    # The first step's gradients are 1 to 8, so the second moments are 0.001 times their squares.
    _save(tmp_path, [0, 4, 8], steps=1)
    third = Holder(3, 6)  # weights 4 and 5 of a, 6 of b: from both shards
    third.load(tmp_path)
    squares = third.state()["exp_avg_sq"].tolist()
    assert squares == pytest.approx([0.016, 0.025, 0.036], rel=1e-6)
    assert third.state()["step"] == 1
    assert [(slot.name, slot.start, slot.length) for slot in third.slots] == [
        ("a", 3, 2),
        ("b", 0, 1),
    ]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 7), max_size=4), st.lists(st.integers(1, 7), max_size=4))
def test_shards_of_any_number_of_writers_are_read_by_any_number_of_readers(
    writers: list[int], readers: list[int]
) -> None:
    import torch

    with TemporaryDirectory() as name:
        folder = Path(name)
        _save(folder, sorted({0, *writers, 8}))
        whole = Holder(0, 8, steps=2).state()
        cuts = sorted({0, *readers, 8})
        for begin, end in pairwise(cuts):
            reader = Holder(begin, end)
            reader.load(folder)
            found = reader.state()
            assert found.keys() == whole.keys()
            assert found["step"] == whole["step"] == 2
            for key in ("weights", "exp_avg", "exp_avg_sq"):
                assert torch.equal(found[key], whole[key][begin:end]), key


def test_run_resumed_from_shards_equals_an_uninterrupted_run(tmp_path: Path) -> None:
    import torch

    _save(tmp_path, [0, 3, 8])
    reader, straight = Holder(0, 8), Holder(0, 8, steps=3)
    reader.load(tmp_path)
    reader.master.grad = reader.master.detach().clone()
    reader.optimizer.step()
    assert torch.equal(reader.master, straight.master)


def test_checkpoint_before_the_first_step_contains_only_weights(tmp_path: Path) -> None:
    Holder(0, 8).save(tmp_path, 0, 1)
    reader = Holder(0, 8)
    reader.load(tmp_path)
    assert not reader.optimizer.state[reader.master]


def test_missing_shard_one_too_many_and_broken_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"must hold every shard .* holds none"):
        Holder(0, 8).load(tmp_path)
    _save(tmp_path, [0, 4, 8])
    second = tmp_path / "shard_00001_of_00002.pt"
    content = second.read_bytes()
    second.unlink()
    with pytest.raises(RunError, match=r"every shard .* holds shard_00000_of_00002.pt"):
        Holder(0, 8).load(tmp_path)
    second.write_bytes(content[:100])
    with pytest.raises(RunError, match="cannot be read"):
        Holder(0, 8).load(tmp_path)
    second.write_bytes(content)
    Holder(0, 8).save(tmp_path, 0, 1)  # a shard of another checkpoint
    with pytest.raises(RunError, match="every shard of one checkpoint"):
        Holder(0, 8).load(tmp_path)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"a": 5, "b": 4}, "1 of 2 parameters differ; b has 4 weights in the model and 3 in"),
        ({"a": 5}, "1 of 1 parameters differ; b has 0 weights in the model and 3 in"),
        ({"a": 5, "b": 3, "c": 1}, "1 of 3 parameters differ; c has 1 weights in the model and 0"),
    ],
)
def test_shards_of_other_parameters_are_refused(
    tmp_path: Path, sizes: dict[str, int], said: str
) -> None:
    _save(tmp_path, [0, 4, 8])
    with pytest.raises(RunError, match=said):
        Holder(0, 8).load(tmp_path, sizes)


def test_state_that_cannot_be_shared_out_is_refused(tmp_path: Path) -> None:
    import torch

    holder: Any = Holder(0, 8, steps=1)
    holder.optimizer.state[holder.master]["largest_by_block"] = torch.zeros(2)
    with pytest.raises(ConfigurationError, match=r"'largest_by_block' has the shape \[2\]"):
        holder.save(tmp_path, 0, 1)
