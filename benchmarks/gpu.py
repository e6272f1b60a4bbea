"""Measures the engine on one GPU, in at most 8 minutes: numerics, updates, sampling, the main job.

    python benchmarks/gpu.py --device cuda --out FOLDER
    python benchmarks/gpu.py                      # tiny shapes on a CPU, in a minute

Each result is appended at once to ``gpu.jsonl`` and ``gpu.txt`` in the folder, so that an
interrupted run leaves its results. A part without enough time left is skipped, and an error of a
part is a result. Needed are the repository, PyTorch, transformers, triton (on a GPU) and the
packages of ``gpu_wheels.txt``. vLLM, DeepSpeed, TRL, Liger and FlashAttention are used or named as
missing. No weights are downloaded: models have random weights of the published shapes.

Parts, the most valuable ones first:

parity      float32: log-probabilities and gradients of both Qwen-VL architectures against a CPU
update      seconds, tokens per second, MFU and peak memory of an update of Qwen2.5-VL 3B and 7B,
            G 8: prefixes shared and unshared, a padded loop, TRL. Weights are bfloat16, AdamW
            float32, 18 bytes a parameter; `layers` says how many fit: 12 of 28 of the 7B in 80 GB
profile     kernels, launches, waits of the host, and the longest kernels of one update
gap         bf16: gaps of log-probabilities, with and without a float32 head
sampling    tokens per second of 64 conversations; vLLM, as the last part, on the same small model
train       some steps of the main job by `visenv train --model.device`
attention   the padded loop with each attention of transformers that loads
magnifier   crops per second, and the difference to a CPU
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import gymnasium as gym
import torch

import visenv  # noqa: F401 - registers the environments
from benchmarks import gpu_policy, gpu_update
from benchmarks.gpu_policy import Machine
from benchmarks.gpu_report import Report, describe, missing_wheels
from benchmarks.random_vlm import Shape, build

PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40": 181e12, "B200": 2250e12}
"""Peak of dense bfloat16 in FLOP/s, by a word of the device's name (data sheets of NVIDIA)."""

TRAIN_PACKAGES = ("cv2", "nltk", "reportlab", "pypdfium2", "matplotlib", "tensorboard")
"""Packages that only the part `train` needs. Together they exceed 60 MB as wheels."""

TRAIN = [
    "--phases.warm-up.steps", "3", "--phases.warm-up.demonstrations.episodes", "4",
    "--phases.warm-up.demonstrations.batch-size", "2",
    "--phases.rl.steps", "2", "--phases.rl.rollouts.prompts-per-step", "2",
    "--phases.rl.rollouts.num-generations", "2", "--phases.rl.rollouts.max-tokens", "12",
    "--evaluation.episodes", "1", "--evaluation.max-tokens", "8", "--no-controls",
]  # fmt: skip


TRAIN_SHARE = 0.25
"""Largest share of the budget for the part `train`, so that a run that hangs leaves time."""


def main() -> int:
    """Run all parts, and return 1 if a needed package is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("build/gpu"))
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--peak-tflops", type=float, help="peak of the device in bfloat16")
    options = parser.parse_args()
    missing = missing_wheels()
    if missing:
        print(f"missing: {', '.join(missing)}. Run: pip install -r benchmarks/gpu_wheels.txt")
        return 1
    # The default action would leave the folder of the models, and the process of the part `train`.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    cuda = options.device != "cpu"
    peak = options.peak_tflops * 1e12 if options.peak_tflops else _peak(options.device)
    report = Report(options.out, options.minutes)
    with tempfile.TemporaryDirectory() as scratch:
        machine = Machine(
            device=options.device,
            scratch=Path(scratch),
            peak=peak,
            members=8 if cuda else 2,
            rounds=3 if cuda else 1,
            turns={
                "one turn": Shape(1100, 4, 100) if cuda else Shape(300, 1, 20),
                "two turns": Shape(600, 2, 100, 300) if cuda else Shape(300, 1, 20, 270),
            },
            sessions=64 if cuda else 2,
            new_tokens=64 if cuda else 4,
        )
        describe(report, options.device, peak)
        run(report, machine)
    report.add("end", left_seconds=report.left)
    return 0


def run(report: Report, machine: Machine) -> None:
    """Run the parts in the order of their value."""
    cuda = machine.device != "cpu"
    small = "3b" if cuda else "8m"
    with report.part("parity", 20 if cuda else 0) as runs:
        for architecture in ("qwen2_5_vl", "qwen3_vl") if runs else ():
            found = gpu_policy.parity(machine, _tiny(machine, architecture))
            within = max(found.values()) < 1e-5
            report.add("parity", architecture=architecture, within_1e_5=within, **found)
    updates(report, machine, small, 25 if cuda else 0)
    with report.part("profile", 20 if cuda else 0) as runs:
        if runs:
            report.add("profile", **gpu_update.profile_update(machine, small))
    with report.part("gap", 25 if cuda else 0) as runs:
        if runs:
            report.add("gap", size=small, nats=gpu_policy.bf16_gaps(machine, small))
    for size in dict.fromkeys((small, "22m" if cuda else small)):
        with report.part("sampling", 20 if cuda else 0, engine="transformers", size=size) as runs:
            if runs:
                report.add("sampling", **sampling(machine, size))
    with report.part("train", 30 if cuda else 0) as runs:
        if runs:
            report.add("train", **train(machine, min(report.left, TRAIN_SHARE * report.budget)))
    if cuda:
        updates(report, machine, "7b", 40)
    for name in ("eager", "flash_attention_2", "flex_attention"):
        with report.part("attention", 20 if cuda else 0, attention=name) as runs:
            if runs:
                report.add("attention", **attention(machine, small, name))
    with report.part("magnifier", 10 if cuda else 0) as runs:
        if runs:
            report.add("magnifier", **magnifier(machine.device))
    # The last part, because an engine in this process may keep memory of the device.
    with report.part("sampling", 60 if cuda else 0, engine="vllm", size="22m") as runs:
        if runs:
            report.add("sampling", **vllm_sampling(machine, "22m"))


def updates(report: Report, machine: Machine, size: str, seconds: float) -> None:
    """Measure the ways of an update on both shapes."""
    for way in ("shared", "unshared", "loop", "trl"):
        for turns in machine.turns:
            measured = {"size": size, "way": way, "turns": turns}
            with report.part("update", seconds, **measured) as runs:
                problem = gpu_update.trl_problem() if runs and way == "trl" else None
                if problem is not None:
                    report.add("update", **measured, skipped=problem)
                elif runs:
                    report.add("update", **gpu_update.measure_update(machine, size, turns, way))


def attention(machine: Machine, size: str, name: str) -> dict[str, Any]:
    """Measure the padded loop with an attention of transformers in the language model."""
    if name == "flash_attention_2" and importlib.util.find_spec("flash_attn") is None:
        return {"attention": name, "skipped": "flash_attn is missing"}
    if name == "flex_attention" and machine.device == "cpu":
        return {"attention": name, "skipped": "it needs a GPU for gradients"}
    return gpu_update.measure_update(machine, size, "two turns", "loop", name)


def sampling(machine: Machine, size: str) -> dict[str, Any]:
    """Measure the sampler of transformers."""
    policy = gpu_policy.make_policy(machine, size, _dtype(machine))
    found = gpu_policy.measure_sampling(machine, policy)
    return {"engine": "transformers", "size": size, **found}


def vllm_sampling(machine: Machine, size: str) -> dict[str, Any]:
    """Measure the sampler of vLLM on a model that is small enough to be written to the disk."""
    named = {"engine": "vllm", "size": size}
    if importlib.util.find_spec("vllm") is None:
        return {**named, "skipped": "vllm is missing"}
    if machine.device == "cpu":
        return {**named, "skipped": "it is measured on a GPU only"}
    from visenv.registration import load

    folder = build(machine.scratch / size, size)
    engine = load("policy", "vllm")(str(folder), dtype=_dtype(machine), context=1024)
    try:
        return {**named, **gpu_policy.measure_sampling(machine, engine)}
    finally:
        engine.close()


def train(machine: Machine, seconds: float) -> dict[str, Any]:
    """Run some steps of the main job as a user does."""
    missing = [name for name in TRAIN_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return {"skipped": f"missing: {' '.join(missing)}"}
    command = [sys.executable, "-m", "visenv", "train", *TRAIN, "--name", "gpu"]
    command += ["--model.device", machine.device, "--runs", str(machine.scratch / "runs")]
    start = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    return {
        "seconds": time.perf_counter() - start,
        "status": done.returncode,
        "error": done.stderr.strip()[-300:] if done.returncode else "",
    }


def magnifier(device: str) -> dict[str, Any]:
    """Enlarge crops by the small network on the device and on a CPU."""
    from visenv.envs.mags.magnifier.backend import PACKAGED
    from visenv.envs.mags.magnifier.small import load_small

    crops = torch.rand(16, 3, 64, 64)  # [crops, colors, height, width]
    network = load_small(PACKAGED["small"])
    with torch.no_grad():
        expected = network(crops)
        network = network.to(device)
        found = network(crops.to(device))
        start = time.perf_counter()
        for _ in range(8):
            found = network(crops.to(device)).cpu()
        seconds = time.perf_counter() - start
    return {
        "crops_per_second": 8 * len(crops) / seconds,
        "largest_difference": float((found - expected).abs().max()),
    }


def _dtype(machine: Machine) -> str:
    return "float32" if machine.device == "cpu" else "bfloat16"


def _tiny(machine: Machine, architecture: str) -> Path:
    from visenv.policies.transformers import TinyConfig, build_tiny, collect_texts

    patch = {"qwen2_5_vl": 14, "qwen3_vl": 16}[architecture]
    config = TinyConfig(
        architecture,  # type: ignore[arg-type]
        patch_size=patch,
        view_side=patch * 8,
        context=4096,
    )
    texts = collect_texts(lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny"), episodes=16)
    return build_tiny(machine.scratch / architecture, texts, config)


def _peak(device: str) -> float:
    """Return the peak of a device in FLOP/s; of a CPU, 1e11 stands in for it."""
    if device == "cpu":
        return 1e11
    name = torch.cuda.get_device_name(device)
    return next((peak for word, peak in PEAKS.items() if word in name), 989e12)


if __name__ == "__main__":
    sys.exit(main())
