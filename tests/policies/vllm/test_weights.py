"""Tests weight updates of the real engine: checked, complete, and without any old state."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.policies.vllm.conftest import scale
from visenv.errors import PolicyError
from visenv.types import Sampling, TurnRequest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.vllm import weights

pytestmark = pytest.mark.component("vllm", "torch", "transformers")

GREEDY = Sampling(0.0, 10)
BOUND = 1e-5


def state(policy: Any) -> dict[str, Any]:
    """Return a copy of a policy's weights."""
    found = policy.network.model.state_dict()
    return {name: weight.clone() for name, weight in found.items()}


def test_names_of_checkpoints_transformers_and_vllm_are_one() -> None:
    layer = "layers.0.mlp.up_proj.weight"
    for prefix in ("model.language_model.", "model.", "language_model.model.", ""):
        assert weights.plain_name(prefix + layer) == layer
    for prefix in ("model.", ""):
        assert (
            weights.plain_name(f"{prefix}visual.blocks.1.norm1.weight")[:16] == "visual.blocks.1."
        )
    for prefix in ("language_model.", ""):
        assert weights.plain_name(f"{prefix}lm_head.weight") == "lm_head.weight"
    assert weights.part_of(layer) == "layers.0"
    assert weights.part_of("visual.blocks.1.norm1.weight") == "visual.blocks.1"
    assert weights.part_of("visual.merger.norm.bias") == "visual.merger"


def test_sums_are_of_bit_patterns() -> None:
    # As float32, 1.0 is 0x3f800000 and 2.0 is 0x40000000; -0.0 counts as 0.0.
    assert weights.bits_of(torch.tensor([1.0, 2.0, -0.0])) == 0x3F800000 + 0x40000000
    # In bfloat16 they are the upper halves.
    halves = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert weights.bits_of(halves) == 0x3F80 + 0x4000
    # 16 of 31 columns are sampled at even distances, 0, 2, 4 ... 30, so odd ones do not count.
    assert weights.columns(31).tolist() == list(range(0, 31, 2))
    assert weights.columns(3).tolist() == [0, 1, 2]
    matrix = torch.zeros(2, 31)
    matrix[0, 5] = 1.0
    assert weights.sum_of(matrix) == 0
    matrix[1, 30] = 1.0
    assert weights.sum_of(matrix) == 0x3F800000
    # A convolution kernel is treated as a matrix of outputs by inputs.
    assert weights.sum_of(matrix.view(2, 31, 1, 1)) == 0x3F800000


def test_load_changes_the_samples_to_those_of_the_trainer(
    vllm3: Any, fresh: Any, exam: Any, restored: None
) -> None:
    before = exam.play(vllm3, range(6), sampling=GREEDY)
    scale(fresh, "", 1.1)
    assert exam.error(fresh, before, exam.images(range(6))) > 1e-2
    vllm3.load(fresh.network.model.state_dict().items(), 5)
    ours, theirs = (exam.play(policy, range(6), sampling=GREEDY) for policy in (vllm3, fresh))
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_ids.tolist() == other.token_ids.tolist()
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=BOUND)
        assert set(one.policy_version[one.loss_mask].tolist()) == {5}
    assert vllm3.version == 5


@pytest.mark.parametrize("part", ["visual", "embed_tokens"])
def test_features_and_heads_of_old_weights_are_not_used_again(
    vllm3: Any, fresh: Any, exam: Any, restored: None, part: str
) -> None:
    """Check the encoder's cache, and the packed copy of a tied head in vLLM's CPU build."""
    images = exam.images(range(6))
    old = exam.play(vllm3, range(6), sampling=GREEDY)
    scale(fresh, part, 1.3)
    assert exam.error(fresh, old, images) > 1e-3
    given = {n: w for n, w in state(fresh).items() if n != "lm_head.weight"}
    vllm3.load(given.items(), 1)
    assert exam.error(fresh, exam.play(vllm3, range(6), sampling=GREEDY), images) < BOUND


def test_keys_and_values_are_kept_between_turns_and_dropped_with_their_weights(
    vllm3: Any, fresh: Any, exam: Any, talk: Any, restored: None, monkeypatch: Any
) -> None:
    """Check prompts longer than 128 tokens, as only whole blocks of 128 are kept."""
    picture = talk.picture(5, 112, 112)
    turns = [talk.shown("a long question " * 14, picture), talk.shown("and then?")]
    step = vllm3._present.engine._engine.step
    kept: list[int] = []

    def watched() -> Any:
        outputs = step()
        kept.extend(output.num_cached_tokens for output in outputs)
        return outputs

    monkeypatch.setattr(vllm3._present.engine._engine, "step", watched)

    def play() -> Any:
        session, _ = talk.alone(vllm3, 0, turns, sampling=GREEDY)
        return session.segments()

    images = {picture.sha256: picture}
    assert exam.error(fresh, play(), images) < BOUND
    assert exam.error(fresh, play(), images) < BOUND
    scale(fresh, "", 1.1)
    vllm3.load(fresh.network.model.state_dict().items(), 1)
    assert exam.error(fresh, play(), images) < BOUND
    # The first turn finds no keys and values; the second turn finds those of the first, and a
    # second conversation finds all; after new weights, the first turn finds none again.
    assert [tokens > 0 for tokens in kept] == [False, True, True, True, False, True]


def test_image_is_processed_once(vllm3: Any, talk: Any) -> None:
    cache = vllm3._present.engine._engine.renderer.mm_processor_cache
    picture = talk.picture(6)
    before = cache.make_stats()
    for _ in range(2):
        talk.alone(vllm3, 0, [talk.shown("a", picture), talk.shown("b")], sampling=GREEDY)
    after = cache.make_stats()
    # The image is looked up in each of four turns and found in all but the first.
    assert (after.total - before.total, after.hits - before.hits) == (4, 3)


def test_weight_need_not_outlive_the_next(
    vllm3: Any, fresh: Any, exam: Any, restored: None
) -> None:
    """Check weights that each exist only briefly, as if gathered from shards."""
    scale(fresh, "", 1.1)

    def passing() -> Any:
        for name, weight in state(fresh).items():
            yield name, weight
            weight.fill_(torch.nan)

    vllm3.load(passing(), 2)
    segments = exam.play(vllm3, range(4), sampling=GREEDY)
    assert exam.error(fresh, segments, exam.images(range(4))) < BOUND


def test_head_left_behind_is_noticed(vllm3: Any, fresh: Any, restored: None) -> None:
    scale(fresh, "embed_tokens", 1.3)
    engine = vllm3._present.engine
    without_head = vllm3.manifest.deliver(state(fresh).items(), engine.dtype, packs=False)
    with pytest.raises(PolicyError, match=r"does not hold the weights.*lm_head"):
        vllm3._present.load(without_head, 1)
    assert vllm3.stale


def drop_one(given: dict[str, Any]) -> None:
    del given["model.language_model.layers.1.mlp.up_proj.weight"]


def add_one(given: dict[str, Any]) -> None:
    given["model.language_model.layers.9.mlp.up_proj.weight"] = torch.zeros(1)


def reshape_one(given: dict[str, Any]) -> None:
    name = "model.language_model.layers.1.mlp.up_proj.weight"
    given[name] = given[name][:-1]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (drop_one, r"1 of 75 are missing, for example model\.language_model\.layers\.1\.mlp\.up"),
        (add_one, r"the model has no weight 'model\.language_model\.layers\.9"),
        (reshape_one, r"layers\.1\.mlp\.up_proj\.weight' must be \[\d+, 128\], got \[\d+, 128\]"),
    ],
)
def test_weights_that_do_not_match_are_refused_and_sampling_waits_for_correct_ones(
    vllm3: Any, qwen3: Any, exam: Any, restored: None, spoil: Any, said: str
) -> None:
    expected = exam.play(vllm3, [2], sampling=GREEDY)
    given = state(qwen3)
    spoil(given)
    with pytest.raises(PolicyError, match=said):
        vllm3.load(given.items(), 3)
    assert vllm3.stale
    assert vllm3.version != 3
    with pytest.raises(PolicyError, match="lacks the current weights"):
        exam.play(vllm3, [0])
    vllm3.load(state(qwen3).items(), 0)
    assert not vllm3.stale
    assert exam.play(vllm3, [2], sampling=GREEDY) == expected


def test_iterator_that_fails_is_named(vllm3: Any, qwen3: Any, restored: None) -> None:
    def failing() -> Any:
        yield from list(state(qwen3).items())[:9]
        raise OSError("the disk is gone")

    with pytest.raises(PolicyError, match="the disk is gone"):
        vllm3.load(failing(), 1)


def test_loading_the_same_weights_changes_nothing(vllm3: Any, qwen3: Any, exam: Any) -> None:
    """Check that log-probabilities do not change by a bit at a learning rate of 0."""
    first = exam.play(vllm3, [3], sampling=GREEDY)
    for _ in range(20):
        vllm3.load(qwen3.network.model.state_dict().items(), 0)
    assert exam.play(vllm3, [3], sampling=GREEDY) == first


def test_turn_continues_with_new_weights_and_each_token_has_its_version(
    vllm3: Any, fresh: Any, qwen3: Any, exam: Any, talk: Any, restored: None, monkeypatch: Any
) -> None:
    scale(fresh, "", 1.1)
    thread, taken = vllm3._present, 0
    engine, step = thread.engine, thread.engine.step
    delivery = vllm3.manifest.deliver(state(fresh).items(), engine.dtype, engine.packs)

    def counted() -> Any:
        nonlocal taken
        taken += 1
        ended = step()
        if taken == 5:
            thread._steps.put(partial(thread._load, delivery, None, 9))
        return ended

    monkeypatch.setattr(engine, "step", counted)
    turns = [talk.shown("a", talk.picture(3))]
    ask = TurnRequest("", (), "[0-9]{30}")  # so that it continues after the fifth token
    session, (reply,) = talk.alone(vllm3, 4, turns, request=ask, sampling=Sampling(1.0, 40))
    (segment,) = session.segments()
    (span,) = segment.turns
    versions = segment.policy_version[segment.loss_mask].tolist()
    assert versions == [0] * 5 + [9] * 26  # 30 digits and the end
    assert reply.text.isdigit()
    images = {image.sha256: image for image in session.stream.images}
    for judge, part in ((qwen3, slice(0, 5)), (fresh, slice(5, 31))):
        scored = judge.score([segment], images).logprobs[0].detach().numpy()[segment.loss_mask]
        recorded = segment.logprobs[segment.loss_mask]
        np.testing.assert_allclose(scored[part], recorded[part], rtol=0, atol=BOUND)
    assert span.finish_reason == "stop"


def test_engine_that_sleeps_samples_nothing_and_continues_after_wake(
    vllm3: Any, exam: Any, talk: Any
) -> None:
    """Check that turns wait for the wake-up; on a CPU, sleep keeps the memory."""
    expected = exam.play(vllm3, [1], sampling=GREEDY)
    vllm3.sleep()

    async def run() -> Any:
        turns = exam.turns(1)
        waiting = asyncio.create_task(talk.converse(vllm3, 1, turns, sampling=GREEDY))
        done, _ = await asyncio.wait({waiting}, timeout=0.5)
        assert not done
        threading.Thread(target=vllm3.wake).start()
        session, _ = await waiting
        return session.segments()[0]

    assert asyncio.run(run()) == expected[0]
