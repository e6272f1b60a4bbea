"""Tests LoRA: trained parameters, exported weights, and a reference without a second model."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.environments import few
from visenv.errors import ConfigurationError, RunError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
safetensors = pytest.importorskip("safetensors.torch")

from tests.policies.transformers import naive
from visenv.policies import transformers as package
from visenv.policies.transformers import shards

pytestmark = pytest.mark.component("torch", "transformers", "peft")

SETTINGS = package.LoraSettings(rank=4, alpha=8)


@pytest.fixture(params=few(["qwen3", "qwen2_5"], 1))
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(f"{request.param}_folder")
    return found


def adapted(folder: Path, **options: Any) -> Any:
    return package.TransformersPolicy(folder, threads=1, lora=SETTINGS, **options)


class Lesson:
    """Holds a segment, and trains a policy to make the segment more likely."""

    def __init__(self, policy: Any, talk: Any) -> None:
        image = talk.picture(1)
        self.images = {image.sha256: image}
        parts = [(5,) * 18, image, naive.Said((6, 7, 8))]
        self.segment = naive.segment_of(policy.codec, parts)

    def score(self, policy: Any) -> Any:
        return policy.score([self.segment], self.images).logprobs

    def teach(self, policy: Any, steps: int = 2) -> None:
        optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2)
        for _ in range(steps):
            optimizer.zero_grad()
            (-self.score(policy).sum()).backward()
            optimizer.step()
            policy.updated()


@pytest.fixture
def taught(folder: Path, talk: Any) -> tuple[Any, Lesson]:
    policy = adapted(folder)
    lesson = Lesson(policy, talk)
    lesson.teach(policy)
    return policy, lesson


def test_fresh_adapters_change_nothing_and_learn_alone(folder: Path, talk: Any) -> None:
    policy, plain = adapted(folder), package.TransformersPolicy(folder, threads=1)
    lesson = Lesson(policy, talk)
    assert torch.equal(lesson.score(policy), lesson.score(plain))
    names = [name for name, one in policy.module.named_parameters() if one.requires_grad]
    # 3 layers with 7 linear layers of 2 matrices each; none in the vision tower
    assert len(names) == 3 * 7 * 2
    assert all("language_model" in name and ".lora_" in name for name in names)
    assert policy.network.vision.frozen
    before = lesson.score(policy).detach()
    lesson.teach(policy)
    assert float((lesson.score(policy) - before).sum().detach()) > 0.5


def test_adapter_is_seeded(qwen3_folder: Path) -> None:
    state = torch.random.get_rng_state()
    one, same = adapted(qwen3_folder), adapted(qwen3_folder)
    assert torch.equal(torch.random.get_rng_state(), state)
    for weight, other in zip(one.parameters(), same.parameters(), strict=True):
        assert torch.equal(weight, other)


def test_gradients_are_those_of_peft_on_the_stock_model(folder: Path, talk: Any) -> None:
    policy = adapted(folder, gradient_checkpointing=True)
    lesson = Lesson(policy, talk)
    lesson.teach(policy)  # away from B = 0, where A has no gradient
    policy.train_mode(True)
    members = [lesson.segment, naive.segment_of(policy.codec, [
        (5,) * 18, *talk_images(lesson), naive.Said((9, 9))])]  # fmt: skip
    for weight in policy.parameters():
        weight.grad = None
    policy.score(members, lesson.images).logprobs.sum().backward()
    stock = naive.stock(folder, torch.float32)
    from visenv.policies.transformers import lora

    lora.adapt(stock, SETTINGS)
    with torch.no_grad():
        for own, learned in zip(lora.adapters(stock).values(), policy.parameters(), strict=True):
            own.copy_(learned)
    for member in members:
        naive.logprobs(stock, policy.codec, member, lesson.images).sum().backward()
    for own, learned in zip(lora.adapters(stock).values(), policy.parameters(), strict=True):
        torch.testing.assert_close(learned.grad, own.grad, atol=2e-5, rtol=1e-4)


def talk_images(lesson: Lesson) -> list[Any]:
    return list(lesson.images.values())


def test_checkpoint_is_merged_and_stock_loaders_read_it(
    taught: tuple[Any, Lesson], tmp_path: Path
) -> None:
    policy, lesson = taught
    policy.save(tmp_path)
    plain = package.TransformersPolicy(tmp_path, threads=1)
    torch.testing.assert_close(lesson.score(plain), lesson.score(policy), atol=1e-5, rtol=1e-5)
    model = transformers.AutoModelForImageTextToText.from_pretrained(tmp_path)
    assert not [name for name in model.state_dict() if "lora" in name]


def test_adapters_are_saved_apart_as_peft_reads_them(
    taught: tuple[Any, Lesson], folder: Path, tmp_path: Path
) -> None:
    policy, lesson = taught
    policy.save(tmp_path)
    stock = naive.stock(folder, torch.float32)
    model = peft.PeftModel.from_pretrained(stock, str(tmp_path / "adapter"))
    found = naive.logprobs(model, policy.codec, lesson.segment, lesson.images)
    expected = lesson.score(policy)[0, -3:]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_adapter_as_saved_is_read_back_exactly(
    taught: tuple[Any, Lesson], folder: Path, tmp_path: Path
) -> None:
    policy, lesson = taught
    policy.save(tmp_path)
    again = adapted(folder)
    again.load_weights(tmp_path)
    assert again.version == 1
    assert torch.equal(lesson.score(again), lesson.score(policy))
    for weight, other in zip(again.parameters(), policy.parameters(), strict=True):
        assert torch.equal(weight, other)


def test_adapters_of_another_model_or_shape_are_refused(
    taught: tuple[Any, Lesson], folder: Path, tmp_path: Path
) -> None:
    policy, _ = taught
    policy.save(tmp_path / "taught")
    wider = package.TransformersPolicy(folder, lora=package.LoraSettings(rank=8, alpha=8))
    with pytest.raises(RunError, match="rank, alpha and targets"):
        wider.load_weights(tmp_path / "taught")
    scaled = package.TransformersPolicy(folder, lora=package.LoraSettings(rank=4, alpha=9))
    with pytest.raises(RunError, match="rank, alpha and targets"):
        scaled.load_weights(tmp_path / "taught")
    other = package.TransformersPolicy(folder)
    with torch.no_grad():
        other.network.model.model.language_model.norm.weight.add_(1)
    other.save(tmp_path / "other")
    on_other = adapted(tmp_path / "other")
    with pytest.raises(RunError, match=r"other weights: .*norm\.weight differs"):
        on_other.load_weights(tmp_path / "taught")


def test_load_weights_replaces_all_weights_and_resets_adapters(
    taught: tuple[Any, Lesson], folder: Path, tmp_path: Path
) -> None:
    policy, lesson = taught
    other = package.TransformersPolicy(folder, threads=1)
    with torch.no_grad():
        for weight in other.parameters():
            weight.mul_(1.1)
    other.save(tmp_path)
    policy.load_weights(tmp_path)
    assert torch.equal(lesson.score(policy), lesson.score(other))


def test_engines_get_merged_weights_by_their_names_and_the_model_stays_apart(
    taught: tuple[Any, Lesson], tmp_path: Path
) -> None:
    policy, lesson = taught
    before = lesson.score(policy)
    sent = dict(policy.named_weights())
    assert torch.equal(lesson.score(policy), before)
    policy.save(tmp_path)
    merged = transformers.AutoModelForImageTextToText.from_pretrained(tmp_path).state_dict()
    assert sent.keys() == merged.keys()
    assert "lm_head.weight" in sent
    for name, weight in merged.items():
        assert torch.equal(sent[name], weight), name
        assert not sent[name].requires_grad


@pytest.mark.parametrize("lora", [None, SETTINGS])
def test_weights_are_merged_when_they_are_named(qwen3_folder: Path, lora: Any) -> None:
    """Check under simulated ZeRO-3 that only parameters gathered by the context are read."""
    policy = package.TransformersPolicy(qwen3_folder, lora=lora)
    whole: set[int] = set()
    most = 0

    @contextmanager
    def gather(parameters: Any) -> Any:
        nonlocal most
        most = max(most, len(parameters))
        for one in parameters:
            one.data = kept[id(one)]
        yield
        for one in parameters:
            one.data = torch.empty(0)
            whole.add(id(one))

    expected = {name: weight.clone() for name, weight in policy.named_weights()}
    parameters = list(policy.module.parameters())
    kept = {id(one): one.data for one in parameters}
    for one in parameters:
        one.data = torch.empty(0)
    for name, weight in policy.named_weights(gather):
        assert torch.equal(weight, expected.pop(name)), name
    assert not expected
    assert whole == kept.keys()
    assert most == (1 if lora is None else 3)


def test_first_reference_is_the_same_model_without_adapters(
    folder: Path, talk: Any, tmp_path: Path
) -> None:
    policy = adapted(folder)
    lesson = Lesson(policy, talk)
    reference = policy.copy_frozen()
    before = lesson.score(reference)
    assert reference.network.model is policy.network.model
    assert list(reference.parameters()) == []
    assert not before.requires_grad
    lesson.teach(policy)
    assert torch.equal(lesson.score(reference), before)
    assert not torch.equal(lesson.score(policy), before)
    assert all(weight.requires_grad for weight in policy.parameters())
    reference.save(tmp_path)  # a resumed run reads its reference from this
    reference.load_weights(tmp_path)
    assert reference.network.model is policy.network.model
    _, (one,) = talk.alone(reference, 0, [talk.shown("a")])
    _, (other,) = talk.alone(package.TransformersPolicy(folder), 0, [talk.shown("a")])
    assert one.token_ids.tolist() == other.token_ids.tolist()


def test_references_after_the_first_are_copies(taught: tuple[Any, Lesson], tmp_path: Path) -> None:
    policy, lesson = taught
    reference = policy.copy_frozen()
    before = lesson.score(reference)
    assert torch.equal(before, lesson.score(policy))
    lesson.teach(policy)
    assert torch.equal(lesson.score(reference), before)
    assert list(reference.parameters()) == []


def test_shared_reference_that_is_given_other_weights_gets_a_model_of_its_own(
    folder: Path, talk: Any, tmp_path: Path
) -> None:
    policy = adapted(folder)
    lesson = Lesson(policy, talk)
    reference = policy.copy_frozen()
    other = package.TransformersPolicy(folder, threads=1)
    lesson.teach(other, 1)
    other.save(tmp_path)
    before = lesson.score(policy)
    reference.load_weights(tmp_path)
    assert torch.equal(lesson.score(reference), lesson.score(other))
    assert torch.equal(lesson.score(policy), before)


def test_adapters_stay_in_float32_beside_a_bfloat16_model(qwen3_folder: Path, talk: Any) -> None:
    policy = adapted(qwen3_folder, dtype="bfloat16")
    lesson = Lesson(policy, talk)
    lesson.teach(policy, 1)
    assert {weight.dtype for weight in policy.parameters()} == {torch.float32}
    assert {weight.dtype for _, weight in policy.named_weights()} == {torch.bfloat16}


def test_settings_that_cannot_be_are_refused(qwen3_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="rank must be at least 1"):
        package.LoraSettings(rank=0)
    unknown = package.LoraSettings(targets=("nothing",))
    with pytest.raises(ConfigurationError, match="LoRA cannot be applied"):
        package.TransformersPolicy(qwen3_folder, lora=unknown)


def test_adapter_that_leaves_the_policy_is_what_peft_reads(
    taught: Any, folder: Path, tmp_path: Path
) -> None:
    policy, lesson = taught
    sent = policy.adapter()
    (tmp_path / "adapter_config.json").write_text(json.dumps(sent.config))
    safetensors.save_file(sent.weights, tmp_path / "adapter_model.safetensors")
    saved = tmp_path / "saved"
    policy.save(saved)
    read = safetensors.load_file(saved / "adapter" / "adapter_model.safetensors")
    assert read.keys() == sent.weights.keys()
    assert all(torch.equal(read[name], sent.weights[name]) for name in read)
    config = peft.LoraConfig.from_pretrained(str(tmp_path))
    assert (config.r, config.lora_alpha) == (SETTINGS.rank, SETTINGS.alpha)
    # The adapter is a copy, and the base weights are those of the checkpoint.
    before = {name: weight.clone() for name, weight in sent.weights.items()}
    lesson.teach(policy)
    assert all(torch.equal(before[name], sent.weights[name]) for name in before)
    plain = package.TransformersPolicy(folder, threads=1)
    beneath = dict(policy.named_weights(merge=False))
    for name, weight in plain.named_weights():
        assert torch.equal(beneath[name], weight), name
    assert plain.adapter() is None
    assert policy.copy_frozen().adapter() is not None


def test_weight_in_shards_takes_its_part_of_a_full_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check 5 values on two processes, with 3 and 2 values; the second shard has padding."""

    class Sharded:
        def __init__(self) -> None:
            self.ds_tensor = torch.full((3,), -1.0)
            self.ds_tensor.ds_numel = 3

    value = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    for rank, expected in enumerate(([1.0, 2.0, 3.0], [4.0, 5.0, -1.0])):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        weight = Sharded()
        shards.assign(weight, value)
        assert weight.ds_tensor.tolist() == expected
    whole = torch.zeros(1, 5)
    shards.assign(whole, value)
    assert torch.equal(whole, value)
