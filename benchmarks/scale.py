"""Computes tokens, bytes and seconds of a step for Qwen2.5-VL 3B, 7B and 72B on many GPUs.

    python benchmarks/scale.py                       # 1, 8 and 64 GPUs
    python benchmarks/scale.py --groups 512 --size 16 --mfu 0.31

A step plays groups of episodes and learns from them once. The GPUs alternate between sampling and
training or, if an engine on one GPU does not fit beside the trainer, half of the GPUs sample for
the others. Everything is computed by the printed formulas (`benchmarks.training_costs`), under the
assumption that no episode waits for a tool or for a longer episode. Every rate is printed with its
source, or as "assumed" if nothing was measured. The MFU is the output of benchmarks/update.py on a
GPU, if results/ contains it.
"""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import tyro

from benchmarks.training_costs import (
    QWEN2_5_VL,
    ModelSize,
    StepWork,
    activation_bytes,
    exchanged_bytes,
    read_flops,
    state_bytes,
    update_flops,
)

FORMULAS = """\
N groups of G; P prompt tokens; C of a member, S of them sampled; D GPUs; W weights, T trained
update tokens     shared N (P + G C), separate N G (P + C)
attended pairs    shared N (P(P+1)/2 + G (CP + C(C+1)/2)), separate N G (P(P+1)/2 + CP + C(C+1)/2)
forward FLOPs     2 matrices tokens + 4 hidden layers pairs + 2 hidden vocabulary N G S + vision
update FLOPs      3 forward (LoRA 2; frozen vision 1), what checkpointing repeats not counted
update seconds    update FLOPs / (D peak MFU)
state bytes       ZeRO-0 2W + 4T + 12T, -1 2W + 4T + 12T/D, -2 2W + (4T + 12T)/D, -3 all / D
activation bytes  tokens of a micro-batch (2 hidden layers + tensors of a layer) + chunk of logits
KV bytes, a token 2 layers (key-value width) 2
exchanged bytes   (D-1)/D (2T micro-batches + 2T), ZeRO-3 (D-1)/D (2T + 4W) micro-batches
sync              2 bytes x the language model (LoRA is merged), gathered first under ZeRO-3, then
                  read and written once in GPU memory
rollout seconds   FLOPs of what is shown / (D peak MFU of reading) + waves S (seconds of a token)
seconds, a token  max((2W + KV read) / (tp bandwidth), FLOPs / (tp peak MFU of reading))
"""

COLUMNS = (
    "GPUs  trained  ZeRO  state+activations   engine   sends  synced | rollout   update "
    "(separate)  exchange   sync     step | tokens/s  episodes/h"
)

GPU, GPU_BYTES, NODE = "H200 SXM", 141e9, 8
LORA_RANK = 16
RESULTS = Path(__file__).parent / "results"
LEAST_SEQUENCES = 64
"""If an engine has room for fewer sequences at the same time, it gets more GPUs."""


class Rate(NamedTuple):
    """Holds a number and its source."""

    value: float
    source: str


class Rates(NamedTuple):
    """Holds the rates for the computation of seconds."""

    peak: Rate = Rate(989e12, f"dense bf16 FLOP/s of an {GPU}: its data sheet")
    mfu: Rate = Rate(0.25, "assumed: prime-rl publishes 0.22 to 0.37 for Qwen3-4B on an H100")
    reading: Rate = Rate(0.4, "assumed: MFU of reading prompts")
    bandwidth: Rate = Rate(0.6 * 4.8e12, "assumed: bytes/s, 60 % of the data sheet's 4.8 TB/s")
    inside: Rate = Rate(0.8 * 450e9, "assumed: bytes/s in a node, 80 % of NVLink's 450 GB/s")
    between: Rate = Rate(0.8 * 50e9, "assumed: bytes/s of a GPU between nodes, 80 % of 400 Gbit/s")
    usable: Rate = Rate(0.9, "assumed: share of the GPU's 141 GB")

    def link(self, gpus: int) -> float:
        """Return the bytes per second between GPUs."""
        return self.inside.value if gpus <= NODE else self.between.value


def measured_mfu(results: Path) -> Rate | None:
    """Return the median MFU that benchmarks/update.py printed to these files on a GPU, or None."""
    printed = re.compile(r"^MFU of shared, text: ([\d.]+)%", re.MULTILINE)
    found = {path: printed.findall(path.read_text("utf-8")) for path in results.glob("*update*")}
    values = [float(each) / 100 for all_of_file in found.values() for each in all_of_file]
    if not values:
        return None
    names = ", ".join(sorted(path.name for path in found if found[path]))
    return Rate(statistics.median(values), f"measured: median of {names}")


class Engine(NamedTuple):
    """Describes one engine: its number of GPUs, and of sequences at the same time."""

    gpus: int
    sequences: int


@dataclass(frozen=True)
class Plan:
    """Describes one model on a number of GPUs, sharded no more than needed.

    Attributes:
        stage: ZeRO stage.
        trained: Number of trained parameters: the language model, or adapters of it.
        engine: Describes its sampling.
        apart: Whether the engine is a server on other GPUs than the trainer, with the same number.
    """

    model: ModelSize
    work: StepWork
    gpus: int
    batch: int
    stage: int
    trained: int
    engine: Engine
    apart: bool = False

    @property
    def lora(self) -> bool:
        """Return whether only adapters are trained."""
        return self.trained < self.model.language

    @property
    def state(self) -> float:
        """Return the bytes of weights, gradients and optimizer on a GPU."""
        return state_bytes(self.model.parameters, self.trained, self.stage, self.gpus)

    @property
    def exchanged(self) -> float:
        """Return the bytes that a GPU sends in the update."""
        micro_batches = math.ceil(self.work.tokens(shared=True) / self.gpus / self.batch)
        weights = self.model.parameters
        return exchanged_bytes(weights, self.trained, self.stage, self.gpus, micro_batches)

    @property
    def sent(self) -> float:
        """Return the bytes of weights that are sent to the engine."""
        return 2.0 * self.model.language

    def update_seconds(self, rates: Rates, *, shared: bool = True) -> float:
        """Return the seconds of the update's computation."""
        flops = update_flops(self.model, self.work, shared, lora=self.lora)
        return flops / (self.gpus * rates.peak.value * rates.mfu.value)

    def sync_seconds(self, rates: Rates) -> float:
        """Return the seconds to send the weights to the engines, on the same GPUs or on others."""
        gathered = self.sent * (self.gpus - 1) / self.gpus if self.stage == 3 else 0.0
        if self.apart:
            return (gathered + self.sent) / rates.link(2 * self.gpus)
        return gathered / rates.link(self.gpus) + 2 * self.sent / rates.bandwidth.value

    def rollout_seconds(self, rates: Rates) -> float:
        """Return the seconds to sample all episodes, if the prompts of a group are read once."""
        model, work, (width, at_once) = self.model, self.work, self.engine
        compute = rates.peak.value * rates.reading.value
        keys = at_once * (work.prompt + work.completion / 2) * model.key_value_bytes
        moved = (2 * model.parameters + keys) / (width * rates.bandwidth.value)
        token = max(moved, 2 * model.language * at_once / (width * compute))
        waves = math.ceil(work.episodes / (self.gpus // width) / at_once)
        return read_flops(model, work) / (self.gpus * compute) + waves * work.sampled * token


def engine_for(
    model: ModelSize, work: StepWork, gpus: int, room: float, *, apart: bool = False
) -> Engine | None:
    """Return the engine with the fewest GPUs that have room for the weights and enough sequences.

    Each GPU has `room` bytes. An engine beside a trainer has one GPU; a server has as many as it
    needs.
    """
    context = work.prompt + work.completion
    for width in (each for each in ((1, 2, 4, 8) if apart else (1,)) if each <= gpus):
        share = math.ceil(work.episodes / (gpus // width))
        held = int((width * room - 2 * model.parameters) // (context * model.key_value_bytes))
        if min(held, share) >= min(LEAST_SEQUENCES, share):
            return Engine(width, min(held, share))
    return None


def plan(model: ModelSize, work: StepWork, gpus: int, batch: int, usable: float) -> Plan | None:
    """Return the plan with the least sharding that fits into `usable` bytes, or None.

    Training of all weights is preferred to LoRA. If no engine has room beside the trainer, half of
    the GPUs train and servers sample on the others.
    """
    for trained in (model.language, model.lora(LORA_RANK)):
        for apart in (False, True) if gpus > 1 else (False,):
            trainers = gpus // 2 if apart else gpus
            for stage in (0,) if trainers == 1 else (2, 3):
                state = state_bytes(model.parameters, trained, stage, trainers)
                room = usable if apart else usable - state
                engine = engine_for(model, work, trainers, room, apart=apart)
                if engine is not None and state + activation_bytes(model, batch) <= usable:
                    return Plan(model, work, trainers, batch, stage, trained, engine, apart)
    return None


# ------------------------------------------------------------------------------------------ print


def row(made: Plan, rates: Rates) -> str:
    """Return a plan as a row of the table; bytes in GB, times in seconds."""
    rollout, update = made.rollout_seconds(rates), made.update_seconds(rates)
    separate = made.update_seconds(rates, shared=False)
    exchange, sync = made.exchanged / rates.link(made.gpus), made.sync_seconds(rates)
    seconds = rollout + update + exchange + sync
    episodes, sampled = made.work.episodes, made.work.episodes * made.work.sampled
    activations = activation_bytes(made.model, made.batch)
    return (
        f"{made.gpus * (1 + made.apart):4}  {f'LoRA {LORA_RANK}' if made.lora else 'all':7}  "
        f"{made.stage:4}  "
        f"{made.state / 1e9:7.1f} + {activations / 1e9:7.1f}  "
        f"{made.engine.sequences:4} / {made.engine.gpus}{'*' if made.apart else ' '} "
        f"{made.exchanged / 1e9:6.1f}  {made.sent / 1e9:6.1f} | "
        f"{rollout:7.1f}  {update:7.1f} ({separate:8.1f})  {exchange:8.1f}  {sync:5.2f}  "
        f"{seconds:7.1f} | {sampled / rollout:8,.0f}  {3600 * episodes / seconds:10,.0f}"
    )


def show(
    model: ModelSize, work: StepWork, rates: Rates, batch: int, sizes: tuple[int, ...]
) -> None:
    shared, separate = (update_flops(model, work, each) / 1e15 for each in (True, False))
    print(
        f"\nQwen2.5-VL-{model.name}: {model.parameters / 1e9:.2f} G parameters, "
        f"{model.tower / 1e9:.2f} G of them in the vision tower, frozen; "
        f"{model.key_value_bytes / 1e3:.1f} kB of keys and values a token\n"
        f"update {shared:.1f} PFLOP, with separate prompts {separate:.1f} "
        f"({separate / shared:.2f} x); below: GB on each GPU, sequences at once / GPUs of "
        "an engine (*: servers on half of the GPUs), seconds"
    )
    print(COLUMNS)
    for gpus in sizes:
        made = plan(model, work, gpus, batch, GPU_BYTES * rates.usable.value)
        if made is None:
            least = state_bytes(model.parameters, 0, 3, gpus) / 1e9
            print(f"{gpus:4}  does not fit: {least:.0f} GB of frozen weights on each alone")
        else:
            print(row(made, rates))


def main(
    work: tyro.conf.OmitArgPrefixes[StepWork] = StepWork(),  # noqa: B008 - frozen
    mfu: float | None = None,
    batch: int = 16384,
    gpus: tuple[int, ...] = (1, 8, 64),
) -> None:
    """Print the formulas, the rates, and a table for each model.

    Args:
        work: The episodes of a step.
        mfu: Model FLOPs utilization of the update, to replace the measured one.
        batch: Tokens of a micro-batch.
        gpus: Numbers of GPUs.
    """
    given = None if mfu is None else Rate(mfu, "given with --mfu")
    rates = Rates(mfu=given or measured_mfu(RESULTS) or Rates().mfu)
    print(FORMULAS)
    for name, (value, source) in zip(Rates._fields, rates, strict=True):
        print(f"{name:10}{value:10.3g}  {source}")
    print(
        f"\n{work.groups} groups of {work.size}; prompt {work.prompt} tokens, completion "
        f"{work.completion}, {work.sampled} of them sampled; the update reads "
        f"{work.tokens(shared=True):,} tokens, {work.tokens(shared=False):,} with separate prompts"
    )
    for model in QWEN2_5_VL.values():
        show(model, work, rates, batch, gpus)


if __name__ == "__main__":
    tyro.cli(main)
