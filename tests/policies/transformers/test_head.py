"""Tests the head: chunks, stored tensors, and precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies import transformers as package
from visenv.policies.transformers import head as head_module

pytestmark = pytest.mark.component("torch", "transformers")

WIDTH, VOCABULARY, CHUNK_ROWS = 8, 1000, 3


def make_head(dtype: Any = None, *, single: bool = False) -> Any:
    torch.manual_seed(0)
    weight = torch.nn.Linear(WIDTH, VOCABULARY, bias=False, dtype=dtype).weight
    banned = torch.zeros(VOCABULARY, dtype=torch.bool)
    banned[5] = True
    return head_module.LogprobHead(weight, banned, single=single)


def places_of(count: int, temperature: float = 1.0) -> Any:
    distinct = torch.zeros(2, VOCABULARY, dtype=torch.bool)
    distinct[1, :500] = True
    which = torch.arange(count) % 2
    exclusions = head_module.ExcludedTokens(distinct, which)
    tokens = 500 + torch.arange(count)
    return head_module.TokenPositions(tokens, torch.full((count,), temperature), exclusions)


def test_probabilities_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check equal logits for 999 allowed tokens, and for 500 if the first half is excluded."""
    head = make_head()
    with torch.no_grad():
        head.weight.zero_()
    picked, entropy = head(torch.randn(2, WIDTH), places_of(2))
    expected = torch.tensor([999.0, 500.0]).log()
    torch.testing.assert_close(picked, -expected)
    torch.testing.assert_close(entropy, expected)


def test_gradient_of_a_bfloat16_head_is_summed_over_chunks_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check 600 equal chunks of one position: in bfloat16 their sum would stop at 256 chunks."""
    monkeypatch.setattr(head_module, "CHUNK", 4 * VOCABULARY)
    head = make_head(torch.bfloat16)
    with torch.no_grad():
        head.weight.zero_()
    alike = places_of(1)._replace(tokens=torch.full((600,), 700), temperature=torch.ones(600))
    alike = alike._replace(
        exclusions=alike.exclusions._replace(which=torch.zeros(600, dtype=torch.int64))
    )
    picked, _ = head(torch.ones(600, WIDTH, dtype=torch.bfloat16), alike)
    picked.sum().backward()
    # Each position adds (1 - 1/999) times a hidden state of ones to the row of its token.
    expected = 600 * (1 - 1 / 999)
    torch.testing.assert_close(
        head.weight.grad[700].float(), torch.full((WIDTH,), expected), rtol=2**-7, atol=0
    )


def test_logits_do_not_outlive_their_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that, for 50 positions in chunks of 3, autograd stores hidden states but no logits."""
    monkeypatch.setattr(head_module, "CHUNK", CHUNK_ROWS * 4 * VOCABULARY)
    head, places = make_head(), places_of(50)
    hidden = torch.randn(50, WIDTH, requires_grad=True)
    kept: list[Any] = []

    def keep(tensor: Any) -> Any:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, _same):
        picked, _ = head(hidden, places)
    others = [one for one in kept if one.data_ptr() != head.weight.data_ptr()]
    assert max(one.numel() for one in others) == hidden.numel() < VOCABULARY
    (gradient,) = torch.autograd.grad(picked.sum(), hidden)
    monkeypatch.setattr(head_module, "CHUNK", 2**30)
    whole, _ = head(hidden, places)
    torch.testing.assert_close(picked, whole)
    torch.testing.assert_close(gradient, torch.autograd.grad(whole.sum(), hidden)[0])


def _same(tensor: Any) -> Any:
    return tensor


def test_head_in_float32_does_not_round_logits() -> None:
    """Check a logit near 8, which is a multiple of 1/32 in bfloat16 but not in float32."""
    hidden = torch.full((1, WIDTH), 1.0, dtype=torch.bfloat16)
    row = torch.full((WIDTH,), 1.0, dtype=torch.bfloat16)
    row[0] = 1.0078125  # 1 + 1/128: the sum is 8 + 1/128
    for single, expected in ((False, 8.0), (True, 8.0078125)):
        head = make_head(torch.bfloat16, single=single)
        with torch.no_grad():
            head.weight[0] = row
        logits = head(hidden)
        assert logits.dtype == (torch.float32 if single else torch.bfloat16)
        assert logits[0, 0].item() == expected
        assert head(hidden, places_of(1))[0].dtype == torch.float32
        head(hidden, places_of(1))[0].sum().backward()
        assert head.weight.grad.dtype == torch.bfloat16


@pytest.mark.component("outlines-core")
def test_option_reaches_sampling_and_scoring(qwen3_folder: Path, talk: Any) -> None:
    options: dict[str, Any] = {"threads": 1, "dtype": "bfloat16"}
    exact = package.TransformersPolicy(qwen3_folder, fp32_head=True, **options)
    rounded = package.TransformersPolicy(qwen3_folder, **options)
    image = talk.picture(1)
    session, _ = talk.alone(exact, 0, [talk.shown("a", image)])
    (segment,) = session.segments()
    scored = exact.score([segment], {image.sha256: image}).logprobs[0].detach()
    # The remaining difference, a few steps of 2^-8, is from bfloat16 layers with other shapes.
    assert float((scored - torch.from_numpy(segment.logprobs)).abs().max()) < 8 * 2**-8
    other = rounded.score([segment], {image.sha256: image}).logprobs[0].detach()
    assert not torch.equal(scored, other)


def test_head_is_the_models_own(fresh: Any) -> None:
    model = fresh.network.model
    assert model.lm_head is fresh.network.head
    assert model.lm_head.weight is model.model.language_model.embed_tokens.weight
    assert "lm_head.banned" not in model.state_dict()
    assert fresh.copy_frozen().network.head is not fresh.network.head
