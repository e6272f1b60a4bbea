"""Tests the calculated scaling: its seconds by hand, and the sources of its rates."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.training_costs import QWEN2_5_VL, ModelSize, StepWork, read_flops, update_flops
from tests.programs import load_program, run_python

SCALE = Path(__file__).parents[2] / "benchmarks" / "scale.py"

SMALL = ModelSize("small", 8, 2, 4, 16, 32, True, 8, vision=4, vision_layers=2, vision_full=1)
WORK = StepWork(groups=2, size=3, text=6, image=4, sampled=2, tool_image=3)


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    return load_program("benchmarks/scale.py")


def test_seconds_by_hand(scale: ModuleType) -> None:
    rates = scale.Rates(**{name: scale.Rate(1.0, "") for name in scale.Rates._fields})
    rates = rates._replace(
        peak=scale.Rate(1000.0, ""),
        mfu=scale.Rate(0.5, ""),
        reading=scale.Rate(0.4, ""),
        bandwidth=scale.Rate(100.0, ""),
    )
    made = scale.Plan(SMALL, WORK, 4, 10, 3, SMALL.language, scale.Engine(2, 2))
    assert made.update_seconds(rates) == update_flops(SMALL, WORK, shared=True) / (4 * 1000 * 0.5)
    assert made.sent == 2 * SMALL.language
    # Each GPU gathers 3/4 of the bytes at 1 byte/s, then reads and writes at 100 byte/s.
    assert made.sync_seconds(rates) == pytest.approx(made.sent * 0.75 + 2 * made.sent / 100)
    # 50 tokens on 4 GPUs are 2 micro-batches of at most 10: 3/4 · 2 · (2T + 4W).
    language, weights = SMALL.language, SMALL.parameters
    assert made.exchanged == 0.75 * 2 * (2 * language + 4 * weights)
    # Two engines of 2 GPUs have 3 episodes each, 2 at once: 2 waves of 2 tokens. A token moves the
    # weights and the keys and values of 2 sequences of 10 + 5/2 tokens, 2·2·4·2 bytes each.
    moved = (2 * weights + 2 * 12.5 * 32) / (2 * 100)
    computed = 2 * language * 2 / (2 * 1000 * 0.4)
    reading = read_flops(SMALL, WORK) / (4 * 1000 * 0.4)
    assert made.rollout_seconds(rates) == pytest.approx(reading + 2 * 2 * max(moved, computed))


def test_engine_gets_as_many_gpus_as_it_needs(scale: ModuleType) -> None:
    weights, context = 2 * SMALL.parameters, 15 * 32
    assert scale.engine_for(SMALL, WORK, 1, weights + 6 * context) == scale.Engine(1, 6)
    # One GPU has too little memory for all six contexts. Two GPUs have twice as much memory, but
    # only if no trainer runs on them.
    room = weights / 2 + 3 * context
    assert scale.engine_for(SMALL, WORK, 2, room) is None
    assert scale.engine_for(SMALL, WORK, 2, room, apart=True) == scale.Engine(2, 6)
    assert scale.engine_for(SMALL, WORK, 1, weights) is None


def test_sharding_is_the_least_that_fits(scale: ModuleType) -> None:
    def chosen(name: str, gpus: int) -> tuple[bool, int] | None:
        made = scale.plan(QWEN2_5_VL[name], StepWork(), gpus, 16384, 0.9 * 141e9)
        return None if made is None else (made.lora, made.stage)

    assert chosen("3B", 1) == (False, 0)
    assert chosen("7B", 1) == (True, 0)  # 2 · 8.3 + 14 · 7.6 = 123 GB leave no room for an engine
    assert chosen("7B", 8) == (False, 2)
    assert chosen("72B", 1) is None  # 147 GB of weights
    assert chosen("72B", 8) == (True, 3)
    assert chosen("72B", 64) == (False, 3)


def test_measured_mfu_is_taken_from_the_results(scale: ModuleType, tmp_path: Path) -> None:
    cpu = "ceiling 4.50x, reached 3.9x = 87%\n"
    (tmp_path / "2026-11-21-update.txt").write_text(cpu)
    assert scale.measured_mfu(tmp_path) is None
    printed = "".join(f"{cpu}MFU of shared, text: {value}%\n" for value in (21.5, 40.0, 31.0))
    (tmp_path / "2026-12-01-update-h200.txt").write_text(printed)
    value, source = scale.measured_mfu(tmp_path)
    assert value == 0.31
    assert source == "measured: median of 2026-12-01-update-h200.txt"


def test_rates_name_their_sources() -> None:
    command = [str(SCALE), "--mfu", "0.31", "--gpus", "8"]
    done = run_python(*command)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "0.31  given with --mfu" in lines["mfu"]
    assert "data sheet" in lines["peak"]
    for name in ("reading", "bandwidth", "inside", "between", "usable"):
        assert "assumed" in lines[name]
    assert done.stdout.count("\n   8  ") == 3


def test_engine_that_needs_several_gpus_is_a_server_on_half_of_them(scale: ModuleType) -> None:
    """Check that 72B gets a server: its 147 GB do not fit beside a trainer on one GPU of 141 GB."""
    model = QWEN2_5_VL["72B"]
    made = scale.plan(model, StepWork(), 64, 16384, 0.9 * 141e9)
    assert (made.apart, made.gpus, made.engine.gpus, made.stage) == (True, 32, 2, 3)
    # All weights are split into 32 parts: 2 bytes per weight, and 16 more per trained weight.
    assert made.state == pytest.approx((2 * model.parameters + 16 * model.language) / 32)
    small = scale.plan(QWEN2_5_VL["3B"], StepWork(), 8, 16384, 0.9 * 141e9)
    assert (small.apart, small.gpus, small.engine.gpus) == (False, 8, 1)
