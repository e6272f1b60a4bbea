"""Tests the benchmark of a GPU: a complete run on a CPU, and its counts of weights and FLOPs."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import gpu_report
from benchmarks.model_costs import Architecture
from benchmarks.random_vlm import SIZES, Shape
from tests.programs import run_python

pytestmark = [
    pytest.mark.component("torch", "transformers", "accelerate", "trl"),
    pytest.mark.timeout(600),
]

Rows = dict[str, list[dict[str, Any]]]

UPDATE = {
    "size": str, "layers": int, "layers_of_the_size": int, "turns": str, "members": int,
    "way": str, "attention": str, "seconds": float, "tokens_per_second": float,
    "needed_tflops": float, "mfu": float, "mfu_formula": str, "peak_gib": type(None),
}  # fmt: skip
FIELDS: dict[str, dict[str, type]] = {
    "machine": {
        "device": str, "memory_gib": float, "python": str, "torch": str, "cuda": str,
        "transformers": str, "optional": dict, "missing": list, "peak_tflops": float,
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
    done = run_python("benchmarks/gpu.py", "--out", out, gpu=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def rows(folder: Path) -> Rows:
    found: Rows = defaultdict(list)
    for line in (folder / "gpu.jsonl").read_text().splitlines():
        row = json.loads(line)
        found[row["part"]].append(row)
    return found


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


def test_run_measures_each_way_on_both_shapes(rows: Rows) -> None:
    measured = {(row["way"], row["turns"]) for row in rows["update"]}
    ways = ("shared", "unshared", "loop", "trl")
    assert measured == {(way, turns) for way in ways for turns in ("one turn", "two turns")}
    for row in rows["update"]:
        # The peak that stands in for a CPU is 0.1 TFLOP/s.
        assert row["mfu"] == pytest.approx(row["needed_tflops"] / row["seconds"] / 0.1, rel=1e-3)
    tokens = {row["turns"]: row["tokens_per_second"] * row["seconds"] for row in rows["update"]}
    assert tokens["one turn"] == pytest.approx(2 * (300 + 20), rel=1e-3)
    assert tokens["two turns"] == pytest.approx(2 * (300 + 20 + 270), rel=1e-3)


def test_device_equals_the_cpu_in_both_architectures(rows: Rows) -> None:
    assert [row["architecture"] for row in rows["parity"]] == ["qwen2_5_vl", "qwen3_vl"]
    assert all(row["within_1e_5"] for row in rows["parity"])


def test_gaps_are_those_of_bfloat16(rows: Rows) -> None:
    (row,) = rows["gap"]
    assert len(row["nats"]) == 6
    for pair, gap in row["nats"].items():
        assert gap["mean"] <= gap["most"] < 0.1, pair  # bfloat16 has 8 bits
    assert row["nats"]["shared - float32"]["mean"] > 1e-5  # the passes differ


# --------------------------------------------------------------------------------------- report


def test_part_that_fails_is_a_result_and_the_next_part_runs(tmp_path: Path) -> None:
    report = gpu_report.Report(tmp_path, minutes=1)
    with report.part("first", 1) as runs:
        assert runs
        report.add("first", value=1.23456789)
        raise RuntimeError("out of memory")
    with report.part("long", 100) as runs:
        assert not runs
    with report.part("second", 1) as runs:
        assert runs
    rows = [json.loads(line) for line in (tmp_path / "gpu.jsonl").read_text().splitlines()]
    assert [row["part"] for row in rows] == ["first", "first", "long"]
    assert rows[0]["value"] == 1.2346
    assert rows[1]["error"] == "RuntimeError: out of memory"
    assert rows[2]["skipped"].startswith("needs 100 s, ")


def test_results_are_in_the_files_before_the_next_part(tmp_path: Path) -> None:
    report = gpu_report.Report(tmp_path, minutes=1)
    with pytest.raises(KeyboardInterrupt), report.part("first", 1):  # noqa: PT012
        report.add("first", value=1)
        raise KeyboardInterrupt
    assert json.loads((tmp_path / "gpu.jsonl").read_text())["value"] == 1
    assert "first" in (tmp_path / "gpu.txt").read_text()


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert gpu_report.missing_wheels() == []
    wheels = tmp_path / "wheels.txt"
    lines = ["# a comment # import x", "there==1  # import json", "gone==2.0  # import gone_x"]
    wheels.write_text("\n".join(lines))
    monkeypatch.setattr(gpu_report, "WHEELS", wheels)
    assert gpu_report.missing_wheels() == ["gone==2.0"]


# --------------------------------------------------------------------------------------- counts


def test_weights_of_the_3b_are_counted_as_by_hand() -> None:
    model = Architecture.of("3b")
    # q and o: 2048 * 2048; k and v: 2048 * 256; feed-forward: 3 * 2048 * 11008
    assert model.layer_matrices == 2 * 4_194_304 + 2 * 524_288 + 67_633_152 == 77_070_336
    # biases of q, k, v: 2048 + 2 * 256; two norms of 2048
    assert model.layer_weights == 77_070_336 + 2_560 + 4_096 == 77_076_992
    # 36 layers, an embedding that is also the head, 151936 * 2048, and the last norm
    assert model.text_weights == 2_774_771_712 + 311_164_928 + 2_048 == 3_085_938_688
    # a block: 4 * 1280**2 + 3 * 1280 * 3420; biases 3840 + 1280 + 2 * 3420 + 1280; norms 2 * 1280
    block = 6_553_600 + 13_132_800 + 13_240 + 2_560
    # patches: 1176 * 1280; merger: norm 1280, 5120 * 5120 + 5120, 5120 * 2048 + 2048
    merger = 1_280 + 26_214_400 + 5_120 + 10_485_760 + 2_048
    assert model.vision_weights == 1_505_280 + 32 * block + merger == 668_684_288


def test_weights_of_the_7b_are_counted_as_by_hand() -> None:
    model = Architecture.of("7b")
    # q and o: 3584 * 3584; k and v: 3584 * 512; feed-forward: 3 * 3584 * 18944
    assert model.layer_matrices == 2 * 12_845_056 + 2 * 1_835_008 + 203_685_888 == 233_046_016
    # 28 layers with biases 3584 + 2 * 512 and two norms; embedding and head are separate
    layers = 28 * (233_046_016 + 4_608 + 7_168)
    assert model.text_weights == layers + 2 * 544_997_376 + 3_584 == 7_615_616_512


@pytest.mark.parametrize("size", ["3b", "7b"])
def test_weights_are_those_of_the_model_of_transformers(size: str) -> None:
    import transformers

    text, vision = SIZES[size]["text"], SIZES[size]["vision"]
    config = transformers.Qwen2_5_VLConfig(
        text_config=dict(text),
        vision_config={**vision, "out_hidden_size": text["hidden_size"]},
        tie_word_embeddings=text.get("tie_word_embeddings", True),
    )
    with torch.device("meta"):
        model: Any = transformers.Qwen2_5_VLForConditionalGeneration(config)
    tower = sum(weight.numel() for weight in model.model.visual.parameters())
    counted = Architecture.of(size)
    assert counted.vision_weights == tower
    assert counted.text_weights == sum(weight.numel() for weight in model.parameters()) - tower


def test_flops_of_an_update_are_counted_as_by_hand() -> None:
    model = Architecture.of("3b")
    tokens = 1100 + 8 * 100
    matrices = 2 * 36 * 77_070_336 * tokens
    # prompt: 1100 * 1101 / 2; each member: 100 * 1100 + 100 * 101 / 2
    attention = 4 * 36 * 2048 * (605_550 + 8 * 115_050)
    head = 2 * 2048 * 151_936 * 800
    text = matrices + attention + head
    assert text == 11_491_106_816_000
    # four images of 784 patches; 4 of 32 blocks attend to the whole image, the others to 64 patches
    patches = 4 * 784
    tower = 2 * patches * (1_505_280 + 32 * 19_686_400)
    seen = 4 * 1280 * (4 * 4 * 784**2 + 28 * patches * 64)
    merger = 2 * 784 * (5120 * 5120 + 5120 * 2048)
    assert tower + seen + merger == 4_097_251_737_600
    # the gradient of the text takes twice its forward pass; the tower is frozen
    expected = 3 * 11_491_106_816_000 + 4_097_251_737_600
    assert model.update_flops(Shape(1100, 4, 100), 8) == expected == 38_570_572_185_600
    # eight tool results of 256 tokens: 300 tokens for each member, and 1024 patches each
    two = model.update_flops(Shape(600, 2, 100, 300), 8)
    own = 400 * 600 + 400 * 401 // 2
    pairs = 600 * 601 // 2 + 8 * own
    text = model.text_flops(600 + 8 * 400, pairs, 800)
    assert two == 3 * text + model.vision_flops([784] * 2 + [1024] * 8)


def test_memory_of_training_is_counted_as_by_hand() -> None:
    small, large = Architecture.of("3b"), Architecture.of("7b")
    # bfloat16 weights, gradients and two moments: 8 bytes; a frozen weight has 2
    assert small.training_bytes() == 8 * 3_085_938_688 + 2 * 668_684_288 == 26_024_878_080
    # DeepSpeed with bfloat16: weight 2, float32 gradient 4, master copy and moments 12
    zero = small.training_bytes(weight=2, gradient=4, moments=12)
    assert zero == 18 * 3_085_938_688 + 2 * 668_684_288
    # 80 GiB hold all 28 layers of the 7B. Of 40 GiB, 10 are reserved, and embedding, head, norm and
    # tower take 8 * 1_089_998_336 + 2 * 676_550_144; each layer takes 8 * 233_057_792.
    assert large.layers_that_fit(80 * 2**30, 10 * 2**30) == 28
    left = 30 * 2**30 - 8 * 1_089_998_336 - 2 * 676_550_144
    assert left // (8 * 233_057_792) == 11 == large.layers_that_fit(40 * 2**30, 10 * 2**30)
