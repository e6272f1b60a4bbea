"""Tests the vision tower: cached features while it is frozen, and equal passes on all processes."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.policies.transformers import naive
from visenv.errors import ConfigurationError
from visenv.policies import transformers as package

pytestmark = pytest.mark.component("torch", "transformers")


class Counted:
    """Records how many images each run of the vision tower processes."""

    def __init__(self, policy: Any) -> None:
        self.runs: list[int] = []
        tower = policy.network.model.model.visual
        tower.register_forward_hook(self._count, with_kwargs=True)

    def _count(self, _: Any, arguments: Any, options: Any, result: Any) -> None:
        self.runs.append(len(options["grid_thw"]))


@pytest.fixture(params=["qwen3", "qwen2_5"])
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(f"{request.param}_folder")
    return found


@pytest.fixture
def frozen(folder: Path) -> Any:
    return package.TransformersPolicy(folder, threads=1, freeze_vision=True)


def showing(policy: Any, *images: Any) -> Any:
    parts = [part for image in images for part in ((5,), image)]
    return naive.segment_of(policy.codec, [*parts, (6,), naive.Said((7, 8))])


def named(*images: Any) -> dict[str, Any]:
    return {image.sha256: image for image in images}


def test_patches_are_projected_as_by_the_convolution(folder: Path) -> None:
    model = package.TransformersPolicy(folder, threads=1).network.model.model
    projection = copy.deepcopy(model.visual.patch_embed.proj).double()
    assert type(projection) is not torch.nn.Conv3d
    patches = torch.randn(5, projection.in_channels, *projection.kernel_size, dtype=torch.float64)
    outputs = [projection(patches), torch.nn.Conv3d.forward(projection, patches).flatten(1)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)
    gradients = [torch.autograd.grad((output**2).sum(), projection.weight)[0] for output in outputs]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


def test_frozen_tower_has_no_gradient_and_the_rest_has_the_same(
    folder: Path, frozen: Any, talk: Any
) -> None:
    trained = package.TransformersPolicy(folder, threads=1)
    image = talk.picture(1)
    for policy in (frozen, trained):
        policy.score([showing(policy, image)], named(image)).logprobs.sum().backward()
    others = dict(trained.network.model.named_parameters())
    for name, weight in frozen.network.model.named_parameters():
        if ".visual." in name:
            assert weight.grad is None, name
            assert others[name].grad is not None, name
        else:
            torch.testing.assert_close(weight.grad, others[name].grad)
    assert all(".visual." not in name for name, weight in
               frozen.network.model.named_parameters() if weight.requires_grad)  # fmt: skip


def test_features_of_a_frozen_tower_are_kept_for_sampling_and_scoring(
    frozen: Any, talk: Any
) -> None:
    counted = Counted(frozen)
    image, other = talk.picture(1), talk.picture(2)
    session, _ = talk.alone(frozen, 0, [talk.shown("a", image)])
    (segment,) = session.segments()
    assert counted.runs == [1]
    frozen.score([segment], named(image)).logprobs.sum().backward()
    assert counted.runs == [1]
    frozen.score([segment, showing(frozen, image, other)], named(image, other))
    assert counted.runs == [1, 1]  # only the other image


def test_tower_that_learns_is_run_each_time(fresh: Any, talk: Any) -> None:
    counted = Counted(fresh)
    image = talk.picture(1)
    for _ in range(2):
        fresh.score([showing(fresh, image)], named(image))
    assert counted.runs == [1, 1]


def test_features_kept_are_bounded_in_bytes(qwen3_folder: Path, talk: Any) -> None:
    """Check images of 64 px, whose 4 x 4 tokens of width 128 at two depths need 16 KiB."""
    options: dict[str, Any] = {"threads": 1, "freeze_vision": True, "vision_cache": 2 * 16 * 1024}
    policy = package.TransformersPolicy(qwen3_folder, **options)
    counted = Counted(policy)
    images = [talk.picture(seed, 64, 64) for seed in range(3)]
    for image in (images[0], images[1], images[0], images[2], images[0], images[1]):
        policy.score([showing(policy, image)], named(image))
    assert counted.runs == [1, 1, 1, 1]  # images 0, 1 and 2, which evicts 1, and then 1 again
    policy.score([showing(policy, *images)], named(*images))
    assert counted.runs[4:] == [1]  # image 1 evicted 2; a batch may exceed the limit


def test_patches_kept_are_bounded_in_bytes(qwen3_folder: Path, talk: Any) -> None:
    image, video = talk.picture(0, 64, 64), talk.clip(0, 2, 64, 64)
    for capacity, kept in ((2**20, True), (1024, False)):
        policy = package.TransformersPolicy(qwen3_folder, threads=1, vision_cache=capacity)
        family: Any = policy.codec.family
        for encoder, item in ((family.images, image), (family.videos, video)):
            first, second = (encoder.encode([item])[0] for _ in range(2))
            assert (first is second) == kept


def test_features_depend_on_the_weights(frozen: Any, folder: Path, tmp_path: Path) -> None:
    from tests.policies.conftest import Talk

    image = Talk().picture(1)
    segment = showing(frozen, image)
    before = frozen.score([segment], named(image)).logprobs
    other = package.TransformersPolicy(folder, threads=1)
    with torch.no_grad():
        for weight in other.network.model.model.visual.parameters():
            weight.mul_(1.5)
    other.save(tmp_path)
    frozen.load_weights(tmp_path)
    after = frozen.score([segment], named(image)).logprobs
    assert float((after - before).detach().abs().max()) > 1e-3
    torch.testing.assert_close(after, other.score([segment], named(image)).logprobs)


# ------------------------------------------------------------------- versions of transformers


def split_by_image(seen: Any, sizes: list[int]) -> None:
    """Split the features for each language layer, as transformers 5.18 and later versions do."""
    layers = seen.deepstack_features
    if isinstance(layers[0], torch.Tensor):
        seen.deepstack_features = [torch.split(layer, sizes) for layer in layers]


def joined(seen: Any, sizes: list[int]) -> None:
    """Join the features for each language layer, as in transformers 5.17 and older versions."""
    layers = seen.deepstack_features
    if not isinstance(layers[0], torch.Tensor):
        seen.deepstack_features = [torch.cat(layer) for layer in layers]


def changed(model: Any, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a model, or a class of models, return features of images in another form."""
    real = model.get_image_features

    @functools.wraps(real)
    def features(*arguments: Any, **options: Any) -> Any:
        seen = real(*arguments, **options)
        change(seen, [len(each) for each in seen.pooler_output])
        return seen

    monkeypatch.setattr(model, "get_image_features", features)


@pytest.mark.parametrize("change", [split_by_image, joined])
def test_features_for_language_layers_may_be_split_by_image_or_joined(
    change: Any, qwen3_folder: Path, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = package.TransformersPolicy(qwen3_folder, threads=1)
    images = [talk.picture(1), talk.picture(2, 64, 96)]
    segment = showing(policy, *images)
    expected = policy.score([segment], named(*images)).logprobs
    changed(policy.network.model.model, change, monkeypatch)
    assert torch.equal(policy.score([segment], named(*images)).logprobs, expected)


def drop_rows(seen: Any, sizes: list[int]) -> None:
    seen.pooler_output = [each[1:] for each in seen.pooler_output]


def join_rows(seen: Any, sizes: list[int]) -> None:
    seen.pooler_output = torch.cat([*seen.pooler_output])


def drop_layer_rows(seen: Any, sizes: list[int]) -> None:
    seen.deepstack_features = [layer[:0] for layer in seen.deepstack_features]


def drop_field(seen: Any, sizes: list[int]) -> None:
    seen.pooler_output = None


@pytest.mark.parametrize("change", [drop_rows, join_rows, drop_layer_rows, drop_field])
def test_unknown_form_of_features_is_refused_when_the_policy_is_built(
    change: Any, qwen3_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLModel

    changed(Qwen3VLModel, change, monkeypatch)
    with pytest.raises(ConfigurationError, match="returns features of images in a form that"):
        package.TransformersPolicy(qwen3_folder, threads=1)


# ---------------------------------------------------------------------------------- process groups


@pytest.fixture
def distributed(tmp_path: Path) -> Iterator[None]:
    """Initialize a process group of only this process, separate from those of vLLM engines."""
    address = f"file://{tmp_path / 'meeting'}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_process_without_images_still_runs_a_tower_that_learns(
    folder: Path, talk: Any, distributed: None
) -> None:
    """Check that all weights of the tower get gradients of 0, and other weights theirs."""
    policy = package.TransformersPolicy(folder, threads=1)
    counted = Counted(policy)
    segment = showing(policy)
    policy.score([segment], {}).logprobs.sum().backward()
    assert counted.runs == [1]
    found = dict(policy.network.model.named_parameters())
    stock = naive.stock(folder, torch.float32)
    naive.logprobs(stock, policy.codec, segment, {}).sum().backward()
    for name, weight in stock.named_parameters():
        assert found[name].grad is not None, name
        if weight.grad is None:
            assert not found[name].grad.any(), name
        else:
            torch.testing.assert_close(found[name].grad, weight.grad, atol=1e-5, rtol=1e-4)
    image = talk.picture(1)
    policy.score([showing(policy, image)], named(image))
    assert counted.runs == [1, 1]  # with an image, no blank image is processed


def test_frozen_tower_need_not_keep_step_unless_it_is_in_parts(
    frozen: Any, talk: Any, distributed: None
) -> None:
    counted = Counted(frozen)
    image = talk.picture(1)
    frozen.score([showing(frozen)], {})
    assert counted.runs == []
    # DeepSpeed's ZeRO-3 marks sharded weights like this.
    next(frozen.network.model.model.visual.parameters()).ds_id = 0
    for shown in ((), (image,), (image,)):
        frozen.score([showing(frozen, *shown)], named(*shown))
    assert counted.runs == [1, 1, 1]  # blank, the image, and blank, as the image is cached


def test_sampling_reads_no_blank_image(fresh: Any, talk: Any, distributed: None) -> None:
    counted = Counted(fresh)
    talk.alone(fresh, 0, [talk.shown("a")])
    assert counted.runs == []
