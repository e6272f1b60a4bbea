from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.component("torch")

from visenv.envs.mags.magnifier import backend as backends
from visenv.envs.mags.magnifier import magnify as magnify_module
from visenv.envs.mags.magnifier.backend import PACKAGED, MagnifierBackend, Magnify
from visenv.envs.mags.magnifier.magnify import NetworkMagnifier, open_magnifier, target_size
from visenv.envs.mags.magnifier.small import SmallNet, load_small
from visenv.envs.mags.magnifier.smfanet import VARIANTS, SMFANet
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.images import Window
from visenv.types import Image, Pixels, Sample

BUDGET = 1024 * 1024


def noise(width: int, height: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def enlarged(name: str, pixels: Pixels, budget: int = BUDGET, **options: Any) -> Pixels:
    image = Image.from_pixels(pixels)
    magnifier = open_magnifier(name, **options)
    return asyncio.run(magnifier.enlarge(image, Window.whole(image.size), budget)).pixels


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "SMFANet.pth"
    torch.save({"params": SMFANet(*VARIANTS["SMFANet"], 4).state_dict()}, path)
    return path


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ((20, 30), (80, 120)),
        ((223, 240), (892, 960)),
        ((224, 300), (448, 600)),
        ((600, 600), (1024, 1024)),  # twice is 1200 x 1200, over the budget
        ((2048, 2048), (1024, 1024)),
    ],
)
def test_scale_is_4_below_224_px_and_otherwise_2(
    size: tuple[int, int], shown: tuple[int, int]
) -> None:
    assert target_size(size, BUDGET) == shown


@pytest.mark.parametrize("name", ["small", "small-deblur", "lanczos", "resize"])
def test_magnifiers_enlarge_by_4(name: str) -> None:
    assert enlarged(name, noise(20, 30)).shape == (120, 80, 3)


def test_interpolation_is_that_of_pillow() -> None:
    crop = noise(24, 16)
    for name, kernel in (("lanczos", 1), ("resize", 3)):
        assert PIL.Image.Resampling(kernel).name.lower() in (name, "bicubic")
        expected = PIL.Image.fromarray(crop).resize((96, 64), PIL.Image.Resampling(kernel))
        assert np.array_equal(enlarged(name, crop), np.asarray(expected))


def test_bare_crop_shows_the_crop_as_it_is() -> None:
    crop = noise(24, 16)
    assert np.array_equal(enlarged("none", crop), crop)
    assert enlarged("none", crop, budget=96).shape == (8, 12, 3)


@pytest.mark.parametrize("name", ["small", "lanczos"])
def test_crop_over_the_budget_is_shrunk(name: str) -> None:
    shown = enlarged(name, noise(200, 100), budget=5000)
    assert shown.shape == (50, 100, 3)


@pytest.mark.parametrize("size", [(1, 1), (7, 7), (300, 3), (3, 300)])
def test_odd_crops_are_enlarged(size: tuple[int, int], weights: Path) -> None:
    for name in ("small", f"smfanet:{weights}"):
        assert enlarged(name, noise(*size)).shape == (4 * size[1], 4 * size[0], 3)


def test_output_of_the_network_is_rounded_and_clamped(weights: Path) -> None:
    crop = noise(12, 10)
    network = open_magnifier(f"smfanet:{weights}")
    assert isinstance(network, NetworkMagnifier)
    from visenv.envs.mags.magnifier.weights import load_smfanet

    image = torch.from_numpy(crop).permute(2, 0, 1)[None].double() / 255
    with torch.no_grad():
        expected = (load_smfanet(weights).double()(image).clamp(0, 1) * 255).round()[0]
    assert np.array_equal(
        enlarged(f"smfanet:{weights}", crop), expected.permute(1, 2, 0).numpy().astype(np.uint8)
    )


def check_bytes(name: str, device: str = "cpu") -> None:
    """Check that a crop has the same bytes in any batch and with 1 or 2 threads."""
    crops = [Magnify(Image.from_pixels(noise(40, 30, seed))) for seed in range(5)]
    crops += [Magnify(Image.from_pixels(noise(17, 30, seed))) for seed in range(3)]
    backend = MagnifierBackend(name, device)
    backend.deterministic = True
    backend.load()
    alone = [backend.compute([crop])[0] for crop in crops]
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            together = backend.compute(crops[::-1])[::-1]
            for one, other in zip(alone, together, strict=True):
                assert np.array_equal(one, other)
    finally:
        torch.set_num_threads(before)


def test_crop_has_the_same_bytes_in_any_batch_and_with_any_threads(weights: Path) -> None:
    for name in ("small", str(weights)):
        check_bytes(name)


@pytest.mark.component("gpu")
def test_crop_has_the_same_bytes_in_any_batch_on_a_gpu(weights: Path) -> None:
    for name in ("small", str(weights)):
        check_bytes(name, "cuda")


@pytest.mark.component("smfanet-weights")
def test_published_weights_give_the_same_bytes_in_any_batch(smfanet_weights: Path) -> None:
    for file in ("SMFANet_DF2K_100w_x4SR.pth", "SMFANet_plus_DIV2K_100w_x2SR.pth"):
        check_bytes(str(smfanet_weights / file))


def test_batches_of_a_size_are_limited_by_their_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = MagnifierBackend("small")
    backend.load()
    sizes: list[int] = []

    def counted(crops: Any) -> list[Pixels]:
        sizes.append(len(crops))
        return [crop[:1, :1] for crop in crops]

    monkeypatch.setattr(backend, "_enlarge", counted)
    monkeypatch.setattr(backends, "_PIXELS", 1000)
    crops = [noise(20, 20, seed) for seed in range(5)]  # two of 400 pixels fit into 1000
    crops += [noise(40, 30, 9), noise(40, 30, 10)]  # 1200 pixels each: one per batch
    results = backend.compute([Magnify(Image.from_pixels(crop)) for crop in crops])
    assert sizes == [2, 2, 1, 1, 1]
    assert all(np.array_equal(one, crop[:1, :1]) for one, crop in zip(results, crops, strict=True))


def test_large_crop_that_the_budget_reduces_is_interpolated() -> None:
    magnifier = open_magnifier("small")
    assert isinstance(magnifier, NetworkMagnifier)
    sent = magnifier.scorer.counts().sent
    crop = noise(600, 600)  # twice its size would be 1.4 million pixels
    assert np.array_equal(enlarged("small", crop), enlarged("lanczos", crop))
    assert magnifier.scorer.counts().sent == sent


def test_small_crop_that_the_budget_reduces_is_given_to_the_network() -> None:
    crop = noise(60, 60)  # shown at 96 x 96, as in the tiny presets
    assert not np.array_equal(
        enlarged("small", crop, budget=96 * 96), enlarged("lanczos", crop, budget=96 * 96)
    )


def test_8k_image_is_played_with_the_network() -> None:
    import gymnasium as gym

    pixels = np.zeros((4320, 7680, 3), np.uint8)
    sample = Sample("p", "What is it?", (Image.from_pixels(pixels),), ("cat",), "attribute")
    env = gym.make("visenv/MagsZoom-v0", data=[sample], magnifier="small")
    env.reset(seed=0)
    boxes = [[0, 0, 40, 30], [500, 500, 1000, 900], [0, 0, 2800, 1500]]
    result = env.step(f"<think>a<zoom>{boxes}</zoom></think>")[4]["step"]
    sizes = [image.size for image in result.messages[0].images]
    assert len(sizes) == 3
    assert all(width * height <= BUDGET for width, height in sizes)


def test_device_of_a_network_is_an_option(weights: Path) -> None:
    for name in ("small", f"smfanet:{weights}"):
        magnifier = open_magnifier(f"{name}?device=cuda:1")
        assert isinstance(magnifier, NetworkMagnifier)
        assert magnifier.scorer.options["device"] == "cuda:1"


@pytest.mark.parametrize("query", ["device", "device=", "timeout=3", "device=cpu&&", "=cpu"])
@pytest.mark.parametrize("name", ["small", "smfanet"])
def test_network_refuses_other_options(name: str, query: str, weights: Path) -> None:
    path = "small" if name == "small" else f"smfanet:{weights}"
    with pytest.raises((ConfigurationError, UnknownNameError)):
        open_magnifier(f"{path}?{query}")


def test_interpolation_has_no_options() -> None:
    with pytest.raises(UnknownNameError):
        open_magnifier("lanczos?device=cuda")


def test_concurrent_crops_are_batched_and_equal_ones_cached(weights: Path) -> None:
    magnifier = open_magnifier(f"smfanet:{weights}")
    assert isinstance(magnifier, NetworkMagnifier)
    images = [Image.from_pixels(noise(16, 16, seed % 6)) for seed in range(12)]

    async def all_at_once() -> list[Image]:
        whole = Window(0, 0, 16, 16)
        return list(
            await asyncio.gather(*(magnifier.enlarge(each, whole, BUDGET) for each in images))
        )

    first = asyncio.run(all_at_once())
    counts = magnifier.scorer.counts()
    assert counts.sent == 6
    assert counts.batches < 6
    assert asyncio.run(all_at_once()) == first
    after = magnifier.scorer.counts()
    assert (after.sent, after.memory_hits) == (6, counts.memory_hits + 12)


def test_equal_magnifiers_share_one_network(weights: Path) -> None:
    from visenv.scorers.services import resolve

    one, other = (open_magnifier(f"smfanet:{weights}") for _ in range(2))
    assert isinstance(one, NetworkMagnifier)
    assert isinstance(other, NetworkMagnifier)
    assert resolve(one.scorer) is resolve(other.scorer)


@pytest.mark.parametrize("file", PACKAGED.values(), ids=PACKAGED)
def test_shipped_weights_are_small(file: Path) -> None:
    assert file.stat().st_size <= 500_000
    assert sum(each.numel() for each in load_small(file).parameters()) == 146_832


def test_untrained_network_interpolates() -> None:
    image = torch.rand(1, 3, 9, 8)
    expected = torch.nn.functional.interpolate(image, scale_factor=4, mode="bicubic")
    with torch.no_grad():
        assert torch.equal(SmallNet()(image), expected)


def test_interpolation_needs_no_torch() -> None:
    program = (
        "import sys, gymnasium, visenv\n"
        "env = gymnasium.make('visenv/MagsZoom-v0', preset='tiny-stage1', magnifier='lanczos')\n"
        "env.reset(seed=0)\n"
        "env.step('<think>a<zoom>[[0, 0, 20, 20]]</zoom></think>')\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_output_of_another_scale_is_interpolated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a network for x2, whose output is interpolated to x4 for every member of a group."""
    resized: list[tuple[int, int]] = []
    whole = magnify_module._resized

    def counted(pixels: Pixels, size: tuple[int, int]) -> Pixels:
        resized.append(size)
        return whole(pixels, size)

    monkeypatch.setattr(magnify_module, "_resized", counted)
    outputs = [noise(40, 60, seed) for seed in (1, 1, 2, 1)]
    found = [magnify_module._resized_once(each, (80, 120)) for each in outputs]
    assert resized == [(80, 120)] * 2
    for output, shown in zip(outputs, found, strict=True):
        assert np.array_equal(shown, whole(output, (80, 120)))
    magnify_module._resized_once(outputs[0], (81, 120))
    assert len(resized) == 3
    assert magnify_module._resized_once(outputs[0], (40, 60)) is outputs[0]
