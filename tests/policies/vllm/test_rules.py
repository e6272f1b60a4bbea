"""Tests stop strings and masks of turns, without an engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.vllm import rules as rules_module

pytestmark = pytest.mark.component("vllm", "torch", "transformers", "outlines-core")

STOPS = ("</answer>", "ab", "é", "a")
EXPRESSIONS = (None, r"[a-e]{2,9}", r"(ab?)+c\n", r"é{1,4}")


@pytest.fixture(scope="module")
def rules(qwen3: Any) -> Any:
    return rules_module.TokenRules(qwen3.codec)


def decoded_end(qwen3: Any, tokens: list[int], stop: tuple[str, ...], regex: str | None) -> int:
    """Return the number of tokens that `TransformersPolicy` accepts until a stop string."""
    from visenv.policies.tokens.session import TokenStream
    from visenv.policies.tokens.template import Increment
    from visenv.policies.transformers.turn import RunningTurn

    codec = qwen3.codec
    turn = RunningTurn(
        TokenStream(),
        Increment([], ()),
        None,
        1.0,
        limit=10**6,
        stop=tuple(text.encode() for text in stop),
        constraint=None if regex is None else codec.constraints.get(regex),
    )
    for place, token in enumerate(tokens):
        turn.take(token, 0.0, token == codec.end_id, codec.vocabulary.bytes[token])
        if turn.finish is not None:
            return place + 1
    return 0


@pytest.mark.parametrize(("stop", "kept"), [("#", b""), ("#!", b"c"), ("#!?", b"bc")])
def test_turn_remembers_one_byte_less_than_its_stop_string(
    rules: Any, stop: str, kept: bytes
) -> None:
    from visenv.policies.tokens.session import TokenStream
    from visenv.policies.tokens.template import Increment
    from visenv.policies.transformers.turn import RunningTurn

    turn = RunningTurn(
        TokenStream(), Increment([], ()), None, 1.0, limit=10**6, stop=(stop.encode(),)
    )
    state = rules.start((stop,), None)
    spelling = {1: b"a", 2: b"b", 3: b"c"}
    state._rules = type("Spelled", (), {"spelling": spelling, "end_id": 0})
    for token in (1, 2, 3):
        turn.take(token, 0.0, ends=False, spelled=spelling[token])
        assert not state.take(token)
    assert turn.tail == state._tail == kept


@given(data=st.data())
@settings(max_examples=200)
def test_stop_string_ends_a_turn_where_transformers_policy_ends_it(
    qwen3: Any, rules: Any, data: st.DataObject
) -> None:
    regex = data.draw(st.sampled_from(EXPRESSIONS))
    stop = tuple(data.draw(st.lists(st.sampled_from(STOPS), max_size=2, unique=True)))
    state = rules.start(stop, regex)
    tokens: list[int] = []
    ended = 0
    for _ in range(data.draw(st.integers(1, 12))):
        allowed = state.allowed()
        choices = ~rules.banned if allowed is None else allowed
        choices = torch.nonzero(choices & ~rules.end_alone).flatten().tolist()
        likely = [t for t in choices if rules.spelling[t] in (b"a", b"b", b"ab", b"\xc3", b"\xa9")]
        if not choices:
            break
        tokens.append(data.draw(st.sampled_from(likely or choices)))
        if state.take(tokens[-1]):
            ended = len(tokens)
            break
    assert ended == decoded_end(qwen3, tokens, stop, regex)
    assert state.stopped == bool(ended)
    if ended:
        assert torch.equal(state.allowed(), rules.end_alone)


def processor(qwen3_folder: Any, rules: Any) -> Any:
    """Return the logits processor as vLLM makes it."""
    from types import SimpleNamespace

    from visenv.policies.vllm.processor import TurnProcessor

    rules_module.share(str(qwen3_folder), rules)
    model = SimpleNamespace(tokenizer=str(qwen3_folder), get_vocab_size=lambda: len(rules.banned))
    return TurnProcessor(SimpleNamespace(model_config=model), torch.device("cpu"), False)


def parameters(stop: tuple[str, ...], regex: str | None, said: int = 0) -> Any:
    from vllm import SamplingParams

    from visenv.policies.vllm.request import EngineRequest

    request = EngineRequest([1], (), 1.0, 0, 9, stop, regex, said)
    return SamplingParams(**request.parameters(end_id=2))


def test_rows_are_masked_each_by_its_own_turn_wherever_they_move(
    qwen3_folder: Any, qwen3: Any, rules: Any
) -> None:
    from vllm.v1.sample.logits_processor import BatchUpdate, MoveDirectionality

    processor_ = processor(qwen3_folder, rules)
    digits = torch.from_numpy(
        np.array([bool(spelled) and spelled.isdigit() for spelled in rules.spelling])
    )
    three = qwen3.codec.vocabulary.encode("3")
    free, bound, stopped = parameters((), None), parameters((), "[0-9]+"), parameters(("3",), None)
    outputs: list[list[int]] = [[], [], []]
    added = [(0, free, [1], outputs[0]), (1, bound, [1], outputs[1]), (2, stopped, [1], outputs[2])]
    processor_.update_state(BatchUpdate(3, [], added, []))

    def possible() -> Any:
        return processor_.apply(torch.zeros(3, len(rules.banned))) == 0

    rows = possible()
    assert torch.equal(rows[0], ~rules.banned)
    assert torch.equal(rows[1], digits & ~rules.banned)
    assert torch.equal(rows[2], ~rules.banned)
    for output in outputs:
        output.extend(three)
    processor_.update_state(None)
    rows = possible()
    assert torch.equal(rows[0], ~rules.banned)
    assert torch.equal(rows[1], (digits & ~rules.banned) | rules.end_alone)
    assert torch.equal(rows[2], rules.end_alone)
    swap = [(1, 2, MoveDirectionality.SWAP)]
    processor_.update_state(BatchUpdate(3, [], [], swap))
    assert torch.equal(possible()[1], rules.end_alone)
    processor_.update_state(BatchUpdate(2, [1], [], []))
    assert torch.equal(possible()[1], ~rules.banned)


def test_turn_continues_where_it_was_interrupted(qwen3_folder: Any, qwen3: Any, rules: Any) -> None:
    from vllm.v1.sample.logits_processor import BatchUpdate

    processor_ = processor(qwen3_folder, rules)
    said = qwen3.codec.vocabulary.encode("12")
    rest = parameters((), "[0-9]{3}", said=len(said))
    processor_.update_state(BatchUpdate(1, [], [(0, rest, [1, *said], [])], []))
    possible = (processor_.apply(torch.zeros(1, len(rules.banned))) == 0)[0]
    spelled = {rules.spelling[token] for token in torch.nonzero(possible).flatten().tolist()}
    assert spelled == {b"%d" % digit for digit in range(10)}


def test_vocabularies_of_other_sizes_are_noticed(qwen3_folder: Any, rules: Any) -> None:
    with pytest.raises(RuntimeError, match="size"):
        processor(qwen3_folder, rules).apply(torch.zeros(1, len(rules.banned) + 64))
