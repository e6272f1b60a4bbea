"""Tests the benchmark of a GPU: a complete run on a CPU, and its counts of weights and FLOPs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import weakref
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent

from benchmarks import gpu_costs, gpu_policy, gpu_report, gpu_update
from benchmarks.random_vlm import SIZES, Shape, build, group
from benchmarks.training_costs import QWEN2_5_VL
from tests.environments import few
from tests.programs import ROOT, run_python
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.transformers.pack import pack

pytestmark = [
    pytest.mark.component("torch", "transformers", "accelerate", "trl"),
    pytest.mark.timeout(3600),
]

Rows = dict[str, list[dict[str, Any]]]

UPDATE = {
    "size": str, "layers": int, "layers_of_the_size": int, "turns": str, "members": int,
    "way": str, "attention": str, "seconds": float, "optimizer_seconds": float,
    "pack_seconds": (float, type(None)), "tokens_per_second": float, "needed_tflops": float,
    "mfu": float, "state_gib": float, "peak_gib": type(None),
}  # fmt: skip
FIELDS: dict[str, dict[str, Any]] = {
    "machine": {
        "device": str, "memory_gib": float, "python": str, "torch": str, "cuda": str,
        "transformers": str, "optional": dict, "missing": list, "peak_tflops": float,
        "mfu_formula": str,
    },
    "parity": {"architecture": str, "within_1e_5": bool, "logprobs": float, "gradients": float},
    "update": UPDATE,
    "profile": {
        "size": str, "seconds": float, "busy_seconds": float, "kernels": int, "launches": int,
        "host_syncs": int, "copies": int, "longest": list,
    },
    "gap": {"size": str, "nats": dict},
    "sampling": {
        "engine": str, "size": str, "sessions": int, "tokens": int, "seconds": float,
        "tokens_per_second": float,
    },
    "train": {"seconds": float, "status": int, "error": str},
    "attention": UPDATE,
    "magnifier": {"crops_per_second": float, "largest_difference": float},
    "end": {"left_seconds": float},
}  # fmt: skip
"""The fields of a row of each part, besides ``part`` and ``at``."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the command on a CPU, and return the folder of its results."""
    out = tmp_path_factory.mktemp("gpu")
    done = run_python("benchmarks/gpu.py", "--out", out, "--minutes", "60", gpu=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def rows(folder: Path) -> Rows:
    found: Rows = defaultdict(list)
    for line in (folder / "gpu.jsonl").read_text().splitlines():
        row = json.loads(line)
        found[row["part"]].append(row)
    return found


@pytest.mark.soak
@pytest.mark.parametrize("part", FIELDS)
def test_rows_of_each_part_have_all_fields(rows: Rows, part: str) -> None:
    measured = [dict(row) for row in rows[part] if "skipped" not in row]
    assert measured
    for row in measured:
        assert row.pop("part") == part
        assert row.pop("at") >= 0
        assert row.keys() == FIELDS[part].keys()
        for name, kind in FIELDS[part].items():
            assert isinstance(row[name], int | float if kind is float else kind), name
            if kind is float and name not in ("memory_gib", "logprobs", "gradients"):
                assert row[name] > 0 or name == "largest_difference", name


@pytest.mark.soak
def test_run_has_no_error_and_names_what_it_skipped(rows: Rows, folder: Path) -> None:
    every = [row for found in rows.values() for row in found]
    assert [row["error"] for row in every if row.get("error")] == []
    assert rows["train"][0]["status"] == 0
    skipped = {row["skipped"] for row in every if "skipped" in row}
    assert skipped == {
        "it is measured on a GPU only",
        "flash_attn is missing",
        "it needs a GPU for gradients",
    }
    parts = [line.split()[2] for line in (folder / "gpu.txt").read_text().splitlines()]
    assert sorted(parts) == sorted(row["part"] for row in every)


@pytest.mark.soak
def test_run_measures_each_way_on_both_shapes(rows: Rows) -> None:
    measured = {(row["way"], row["turns"]) for row in rows["update"]}
    ways = ("shared", "unshared", "loop", "trl")
    assert measured == {(way, turns) for way in ways for turns in ("one turn", "two turns")}
    for row in rows["update"]:
        assert 0 < row["optimizer_seconds"] < row["seconds"]
        assert (row["pack_seconds"] is not None) == (row["way"] in ("shared", "unshared"))
        # The peak that stands in for a CPU is 0.1 TFLOP/s.
        assert row["mfu"] == pytest.approx(row["needed_tflops"] / row["seconds"] / 0.1, rel=1e-3)
    tokens = {row["turns"]: row["tokens_per_second"] * row["seconds"] for row in rows["update"]}
    assert tokens["one turn"] == pytest.approx(2 * (300 + 20), rel=1e-3)
    assert tokens["two turns"] == pytest.approx(2 * (300 + 20 + 270), rel=1e-3)


@pytest.mark.soak
def test_device_equals_the_cpu_in_both_architectures(rows: Rows) -> None:
    assert [row["architecture"] for row in rows["parity"]] == ["qwen2_5_vl", "qwen3_vl"]
    assert all(row["within_1e_5"] for row in rows["parity"])


@pytest.mark.soak
def test_gaps_are_those_of_bfloat16(rows: Rows) -> None:
    (row,) = rows["gap"]
    assert len(row["nats"]) == 6
    for pair, gap in row["nats"].items():
        assert gap["mean"] <= gap["most"] < 0.1, pair  # bfloat16 has 8 bits
    assert row["nats"]["shared - float32"]["mean"] > 1e-5  # the passes differ


# --------------------------------------------------------------------------------------- report


def test_part_that_fails_is_a_result_and_the_next_part_runs(tmp_path: Path) -> None:
    report = gpu_report.Report(tmp_path, minutes=1)
    with report.part("first", 1, size="3b") as runs:
        assert runs
        report.add("first", value=1.23456789)
        raise RuntimeError("out of memory")
    with report.part("long", 100, size="7b") as runs:
        assert not runs
    with report.part("second", 1) as runs:
        assert runs
    rows = [json.loads(line) for line in (tmp_path / "gpu.jsonl").read_text().splitlines()]
    assert [row["part"] for row in rows] == ["first", "first", "long"]
    assert rows[0]["value"] == 1.2346
    assert (rows[1]["size"], rows[1]["error"]) == ("3b", "RuntimeError: out of memory")
    assert rows[2]["size"] == "7b"
    assert rows[2]["skipped"].startswith("needs 100 s, ")


def test_tensors_of_a_part_that_failed_are_gone_when_the_next_part_starts(tmp_path: Path) -> None:
    report = gpu_report.Report(tmp_path, minutes=1)
    alive: list[weakref.ref[Any]] = []

    def fail() -> None:
        model = torch.nn.Linear(1, 1)
        alive.append(weakref.ref(model))
        raise RuntimeError("out of memory")

    with report.part("first", 0):
        fail()
    with report.part("second", 0):
        assert alive[0]() is None


def test_results_are_in_the_files_before_the_next_part(tmp_path: Path) -> None:
    report = gpu_report.Report(tmp_path, minutes=1)
    with pytest.raises(KeyboardInterrupt), report.part("first", 1):  # noqa: PT012
        report.add("first", value=1)
        raise KeyboardInterrupt
    assert json.loads((tmp_path / "gpu.jsonl").read_text())["value"] == 1
    assert "first" in (tmp_path / "gpu.txt").read_text()


def test_text_has_four_digits_of_each_number(tmp_path: Path) -> None:
    report = gpu_report.Report(tmp_path, minutes=1)
    report.add(
        "gap", nats={"pair": {"mean": 0.0123456, "most": 1.0}}, steps=[0.98765, 2], peak=None
    )
    text = (tmp_path / "gpu.txt").read_text()
    assert text.endswith("nats (pair (mean 0.01235, most 1)), steps 0.9877 | 2, peak None\n")


@pytest.mark.soak
def test_command_that_is_terminated_leaves_its_results_and_no_other_file(tmp_path: Path) -> None:
    """Terminate it after its first line, which describes the machine."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = subprocess.Popen(
        [sys.executable, "benchmarks/gpu.py", "--out", tmp_path / "out"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(scratch), "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    with command:
        assert command.stdout is not None
        assert "machine" in command.stdout.readline()
        command.terminate()
    assert command.returncode == 128 + signal.SIGTERM
    first = (tmp_path / "out" / "gpu.jsonl").read_text().splitlines()[0]
    assert json.loads(first)["part"] == "machine"
    assert not list(scratch.iterdir())


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert gpu_report.missing_wheels() == []
    wheels = tmp_path / "wheels.txt"
    lines = ["# a comment # import x", "there==1  # import json", "gone==2.0  # import gone_x"]
    wheels.write_text("\n".join(lines))
    monkeypatch.setattr(gpu_report, "WHEELS", wheels)
    assert gpu_report.missing_wheels() == ["gone==2.0"]


# --------------------------------------------------------------------------------------- updates


def test_policy_that_is_deepened_scores_as_one_that_was_built_with_all_layers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Give the grown model the weights of a whole one; real sizes are grown only on a GPU.

    With 9 blocks of the vision tower, block 7 attends to the whole image, and the others to
    windows. The model that is read from the disk has one block, which attends to the whole image.
    """
    text, vision = SIZES["8m"]["text"], SIZES["8m"]["vision"]
    deep = {"text": {**text, "num_hidden_layers": 3}, "vision": {**vision, "depth": 9}}
    monkeypatch.setitem(SIZES, "deep", deep)
    whole = TransformersPolicy(build(tmp_path / "whole", "deep"), threads=1, freeze_vision=True)
    monkeypatch.setattr(gpu_policy, "REAL", ("deep",))
    grown = gpu_policy.make_policy(machine(tmp_path), "deep", "float32")
    grown.network.model.load_state_dict(whole.network.model.state_dict())

    shape = Shape(230, 1, 6, 270)
    scores = []
    for policy in (whole, grown):
        segments, images = group(policy, shape, 2)
        batch = pack(policy.codec, segments, images)
        found = gpu_policy.scored(policy, batch)
        scores.append(found.logprobs[found.mask].detach())
        replies = gpu_policy.measure_sampling(machine(tmp_path), policy)  # fills all its caches
        assert replies["sessions"] == 2
    assert torch.equal(*scores)
    # `gpu.py` selects the attention of all layers in the configuration of the language model.
    language_model = grown.network.model.model.language_model
    assert all(layer.self_attn.config is language_model.config for layer in language_model.layers)


@pytest.mark.parametrize("way", few(["shared", "loop", "trl"], 1))
def test_model_of_an_update_is_gone_when_the_next_part_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str
) -> None:
    alive: list[weakref.ref[Any]] = []

    def make_policy(*arguments: Any, **options: Any) -> TransformersPolicy:
        policy = gpu_policy.make_policy(*arguments, **options)
        alive.append(weakref.ref(policy.network.model))
        return policy

    monkeypatch.setattr(gpu_update, "make_policy", make_policy)
    if way == "trl":
        assert gpu_update.trl_problem() is None
    gpu_update.measure_update(machine(tmp_path), "8m", "two turns", way)
    gpu_report.free()
    assert alive[0]() is None


def machine(folder: Path) -> gpu_policy.Machine:
    return gpu_policy.Machine(
        device="cpu", scratch=folder, peak=1e11, members=2, rounds=1,
        turns={"two turns": Shape(230, 1, 6, 270)}, sessions=2, new_tokens=2,
    )  # fmt: skip


def test_optimizer_steps_as_adamw_of_float32_weights() -> None:
    """Accumulate two backward passes for each of three steps."""
    torch.manual_seed(0)
    one, other = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    other.load_state_dict(one.state_dict())
    ours = gpu_update.Float32AdamW(one.parameters(), fused=False, lr=0.1)
    plain = torch.optim.AdamW(other.parameters(), lr=0.1)
    for inputs in torch.randn(3, 2, 4, 5):
        for half in inputs:
            for layer in (one, other):
                layer(half).square().sum().backward()
        assert one.weight.grad is None
        ours.step()
        plain.step()
        plain.zero_grad()
        torch.testing.assert_close(one.weight, other.weight, rtol=0, atol=0)
        torch.testing.assert_close(one.bias, other.bias, rtol=0, atol=0)


def test_optimizer_keeps_steps_that_bfloat16_rounds_away() -> None:
    """Take 40 steps of 0.001 from 1, where bfloat16 has a spacing of 1/256 below 1."""
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    optimizer = gpu_update.Float32AdamW([weight], fused=False, lr=0.001)
    for _ in range(40):
        weight.sum().backward()  # with a constant gradient, AdamW steps by its rate
        optimizer.step()
    assert float(weight.detach()) == 1 - 10 / 256  # 0.960 with its decay, to the next of 1/256


def test_profile_counts_each_kernel_of_a_gpu_once() -> None:
    """Summarize the events of PyTorch for an operator and an annotation with the same kernel."""
    gpu, cpu = DeviceType.CUDA, DeviceType.CPU
    operator = event(1, "aten::mm", cpu, 0, 9)
    operator.append_kernel("gemm", 0, 40)
    events = EventList(
        [
            operator,
            event(2, "cudaLaunchKernelExC", cpu, 1, 3),
            event(3, "cudaStreamSynchronize", cpu, 4, 8),
            event(4, "cudaDeviceSynchronize", cpu, 50, 90),
            event(5, "gemm", gpu, 10, 50),
            event(6, "gemm", gpu, 50, 60),
            event(7, "Memcpy HtoD", gpu, 60, 65),
            event(8, "Optimizer.step#AdamW.step", gpu, 10, 65, annotation=True),
        ],
        use_device="cuda",
    )
    events._build_tree()  # as the profiler does when it ends
    averages = events.key_averages()
    assert {one.key: one.self_device_time_total for one in averages}["aten::mm"] == 40
    assert gpu_update.summarize(averages, on_gpu=True) == {
        "busy_seconds": 55e-6,
        "kernels": 2,
        "launches": 1,
        "host_syncs": 1,
        "copies": 0,
        "longest": [
            {"name": "gemm", "ms": 0.05, "count": 2},
            {"name": "Memcpy HtoD", "ms": 0.005, "count": 1},
        ],
    }


def event(
    number: int, name: str, device: DeviceType, start: int, end: int, *, annotation: bool = False
) -> FunctionEvent:
    return FunctionEvent(
        number, name, 0, start, end, device_type=device, use_device="cuda",
        is_user_annotation=annotation, stack=[],
    )  # fmt: skip


# --------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize(("size", "published"), [("3b", "3B"), ("7b", "7B")])
def test_sizes_are_the_published_ones(size: str, published: str) -> None:
    assert gpu_costs.model_size(size) == replace(QWEN2_5_VL[published], name=size)


def test_flops_of_an_update_are_counted_as_by_hand() -> None:
    model = gpu_costs.model_size("3b")
    # q and o: 2048 * 2048; k and v: 2048 * 256; feed-forward: 3 * 2048 * 11008
    layer = 2 * 2048 * 2048 + 2 * 2048 * 256 + 3 * 2048 * 11_008
    tokens = 1100 + 8 * 100
    # prompt: 1100 * 1101 / 2; each member: 100 * 1100 + 100 * 101 / 2
    attention = 4 * 36 * 2048 * (605_550 + 8 * 115_050)
    head = 2 * 2048 * 151_936 * 800
    text = 2 * 36 * layer * tokens + attention + head
    assert text == 11_491_106_816_000
    # four images of 784 patches; 4 of 32 blocks attend to the whole image, the others to 64 patches
    patches = 4 * 784
    tower = 2 * patches * (1_505_280 + 32 * 19_686_400)
    attended = 4 * 1280 * (4 * 4 * 784**2 + 28 * patches * 64)
    merger = 2 * 784 * (5120 * 5120 + 5120 * 2048)
    assert tower + attended + merger == 4_097_251_737_600
    # the gradient of the text takes twice its forward pass; the tower is frozen
    expected = 3 * 11_491_106_816_000 + 4_097_251_737_600
    assert gpu_costs.needed_flops(model, Shape(1100, 4, 100), 8) == expected == 38_570_572_185_600


def test_flops_of_two_turns_of_the_7b_are_counted_as_by_hand() -> None:
    # q and o: 3584 * 3584; k and v: 3584 * 512; feed-forward: 3 * 3584 * 18944
    layer = 2 * 3584 * 3584 + 2 * 3584 * 512 + 3 * 3584 * 18_944
    tokens = 600 + 8 * 400
    pairs = 600 * 601 // 2 + 8 * (400 * 600 + 400 * 401 // 2)
    text = 2 * 28 * layer * tokens + 4 * 28 * 3584 * pairs + 2 * 3584 * 152_064 * 800
    # two images of 784 patches in the prompt, and one of 1024 patches for each member
    patches = 2 * 784 + 8 * 1024
    tower = 2 * patches * (1_505_280 + 32 * 19_686_400)
    attended = 4 * 1280 * (4 * (2 * 784**2 + 8 * 1024**2) + 28 * patches * 64)
    merger = 2 * (patches // 4) * (5120 * 5120 + 5120 * 3584)
    expected = 3 * text + tower + attended + merger
    two_turns = Shape(600, 2, 100, 300)
    assert gpu_costs.needed_flops(gpu_costs.model_size("7b"), two_turns, 8) == expected


def test_memory_of_training_is_counted_as_by_hand() -> None:
    # bfloat16 weight 2, float32 gradient 4, float32 copy 4, two moments 8; a frozen weight has 2
    small, large = gpu_costs.model_size("3b"), gpu_costs.model_size("7b")
    assert gpu_costs.training_bytes(small) == 18 * 3_085_938_688 + 2 * 668_684_288
    assert gpu_costs.training_bytes(large) == 18 * 7_615_616_512 + 2 * 676_550_144


def test_layers_that_fit_are_counted_as_by_hand() -> None:
    # Of 80 GiB, 10 are reserved. Embedding, head, last norm and tower of the 7B take
    # 18 * (2 * 152064 * 3584 + 3584) + 2 * 676_550_144 bytes; a layer takes 18 * 233_057_792.
    small, large = gpu_costs.model_size("3b"), gpu_costs.model_size("7b")
    left = 70 * 2**30 - 18 * 1_089_998_336 - 2 * 676_550_144
    assert left // (18 * 233_057_792) == 12
    assert gpu_costs.layers_that_fit(large, 80 * 2**30, 10 * 2**30) == 12
    assert gpu_costs.layers_that_fit(large, 160 * 2**30, 10 * 2**30) == 28  # all of them
    assert gpu_costs.layers_that_fit(large, 2**30, 0) == 1
    assert gpu_costs.layers_that_fit(small, 80 * 2**30, 10 * 2**30) == 36
