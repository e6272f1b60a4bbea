"""Tests sampled tokens and their log-probabilities."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import numpy as np
import pytest

from visenv.errors import ImageError, PolicyError
from visenv.types import Image, Message, Sampling, Segment, TurnRequest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.transformers import turn

pytestmark = pytest.mark.component("torch", "transformers")

GREEDY = Sampling(0.0, 12)

# An untrained model is nearly uniform over its vocabulary, so that at temperature 1 a draw can be
# at the border of two tokens, where the last bit of a float decides. A peaked distribution has few
# such borders.
PEAKED = Sampling(0.2, 8)


def mixed_turns(talk: Any, index: int) -> list[list[Message]]:
    """Return two or three turns with 0 to 3 images of several shapes, different for every index."""
    shapes = [(64, 64), (96, 64), (64, 128), (112, 112)]
    images = [talk.picture(10 * index + k, *shapes[(index + k) % 4]) for k in range(index % 4)]
    first, rest = images[: index % 3], images[index % 3 :]
    turns = [talk.shown(f"question {index} " * (1 + index % 3), *first), talk.shown("", *rest)]
    return turns + [talk.shown("and then?")] * (index % 2)


def named_images(sessions: list[Any]) -> dict[str, Image]:
    images = [
        image for session in sessions for stream in session.streams for image in stream.images
    ]
    return {image.sha256: image for image in images}


def recorded(segment: Segment) -> np.ndarray[Any, np.dtype[np.float32]]:
    return segment.logprobs[segment.loss_mask]


def mixed_conversations(policy: Any, talk: Any) -> tuple[list[Segment], dict[str, Image]]:
    """Return the segments and images of eight conversations with `mixed_turns`."""
    played = talk.together([talk.converse(policy, i, mixed_turns(talk, i)) for i in range(8)])
    sessions = [session for session, _ in played]
    segments = [segment for session in sessions for segment in session.segments()]
    return segments, named_images(sessions)


def test_score_equals_what_was_recorded_when_sampling(policy: Any, talk: Any) -> None:
    """Check that the importance ratio is exactly 1 before the first update."""
    segments, images = mixed_conversations(policy, talk)
    assert sorted({len(segment.images) for segment in segments}) == [0, 1, 2, 3]
    assert {len(segment.turns) for segment in segments} == {2, 3}
    scores = policy.score(segments, images)
    for row, segment in enumerate(segments):
        found = scores.logprobs[row].detach().numpy()
        np.testing.assert_allclose(found[: len(segment)], segment.logprobs, rtol=0, atol=1e-5)
        assert not found[len(segment) :].any()
        assert scores.mask[row, : len(segment)].tolist() == segment.loss_mask.tolist()
        assert (recorded(segment) < 0).all()


@pytest.mark.parametrize("temperature", [0.7, 1.5])
def test_recorded_log_probabilities_have_the_temperature(
    qwen3: Any, talk: Any, temperature: float
) -> None:
    turns = mixed_turns(talk, 6)
    session, _ = talk.alone(qwen3, 3, turns, sampling=Sampling(temperature, 8))
    (segment,) = session.segments()
    assert segment.temperature == temperature
    scores = qwen3.score([segment], named_images([session]))
    np.testing.assert_allclose(scores.logprobs[0].detach(), segment.logprobs, rtol=0, atol=1e-5)


def test_kept_keys_and_values_change_nothing(policy: Any, talk: Any) -> None:
    # Greedy, because the rounding of a batch can move a draw to the next token of the vocabulary.
    greedy = Sampling(0.0, 8)

    def forget(session: Any) -> None:
        session.stream.memory = None

    def converse(index: int, **options: Any) -> Any:
        return talk.converse(policy, index, mixed_turns(talk, index), sampling=greedy, **options)

    kept = talk.together([converse(index) for index in range(6)])
    anew = talk.together([converse(index, before=forget) for index in range(6)])
    for (with_memory, _), (without, _) in zip(kept, anew, strict=True):
        (one,), (other,) = with_memory.segments(), without.segments()
        assert one.token_ids.tolist() == other.token_ids.tolist()
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=1e-5)


def test_turns_after_the_first_read_only_new_tokens(
    qwen3: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[int, int]] = []
    original = qwen3.network.read

    def spy(token_ids: Any, *arguments: Any) -> Any:
        read.append((token_ids.shape[1], len(arguments[1])))
        return original(token_ids, *arguments)

    monkeypatch.setattr(qwen3.network, "read", spy)
    turns = [talk.shown("a", talk.picture(1)), talk.shown("b", talk.picture(2))]
    session, replies = talk.alone(qwen3, 0, turns, sampling=Sampling(1.0, 3))
    (segment,) = session.segments()
    prompts = [entry for entry in read if entry[0] > 1]
    first, second = segment.turns
    # The second prompt begins with the last token of the first turn, which was not processed yet.
    assert prompts == [(first.start, 1), (second.start - first.end + 1, 1)]
    assert len(replies) == 2


def test_rest_of_the_batch_does_not_matter(qwen3: Any, talk: Any) -> None:
    together = talk.together(
        [talk.converse(qwen3, i, mixed_turns(talk, i), sampling=PEAKED) for i in range(16)]
    )
    for index in (0, 5, 11):
        _, alone = talk.alone(qwen3, index, mixed_turns(talk, index), sampling=PEAKED)
        for one, other in zip(alone, together[index][1], strict=True):
            assert one.text == other.text
            assert one.token_ids.tolist() == other.token_ids.tolist()


def test_next_turn_does_not_depend_on_the_length_of_other_turns(qwen3: Any, talk: Any) -> None:
    """Check a session whose first turn has 1 token, beside two with 12: it stays in their batch."""
    turns = [talk.shown("a"), talk.shown("b")]
    sampling = Sampling(1.0, 12)

    def short() -> Any:
        return talk.converse(qwen3, 0, turns, request=TurnRequest(max_tokens=1), sampling=sampling)

    def long(seed: int) -> Any:
        request = TurnRequest(regex="[ab]{99}")
        return talk.converse(qwen3, seed, turns, request=request, sampling=sampling)

    ((_, alone),) = talk.together([short()])
    (_, among), *others = talk.together([short(), long(1), long(2)])
    assert {len(reply.token_ids) for _, replies in others for reply in replies} == {12}
    assert [reply.token_ids.tolist() for reply in among] == [
        reply.token_ids.tolist() for reply in alone
    ]


def test_group_shares_its_prompt_but_not_its_draws(qwen3: Any, talk: Any) -> None:
    turns = mixed_turns(talk, 7)
    played = talk.together([talk.converse(qwen3, seed, turns) for seed in range(6)])
    assert len({replies[0].text for _, replies in played}) == 6
    again = talk.together([talk.converse(qwen3, seed, turns) for seed in range(6)])
    assert [replies[1].text for _, replies in played] == [other[1].text for _, other in again]


def test_greedy_equals_generate(policy: Any, talk: Any) -> None:
    session, (reply,) = talk.alone(
        policy, 0, [talk.shown("what?", talk.picture(1, 96, 64))], sampling=GREEDY
    )
    (segment,) = session.segments()
    prompt = torch.from_numpy(segment.token_ids[: segment.turns[0].start]).long()[None]
    patches = policy.codec.family.images.encode(list(session.stream.images))
    generated = policy.network.model.generate(
        input_ids=prompt,
        attention_mask=torch.ones_like(prompt),
        mm_token_type_ids=(prompt == policy.codec.image_id).long(),
        pixel_values=patches[0].values,
        image_grid_thw=torch.tensor([patches[0].grid]),
        do_sample=False,
        max_new_tokens=GREEDY.max_tokens,
        suppress_tokens=np.flatnonzero(policy.codec.banned).tolist(),
    )
    assert generated[0, prompt.shape[1] :].tolist() == reply.token_ids.tolist()


def want(policy: Any, tokens: Any) -> None:
    """Raise the logits of some tokens by 50."""
    head = policy.network.head
    original = head.possible
    boost = torch.zeros(policy.codec.banned.size)
    boost[tokens] = 50.0
    head.possible = lambda logits, temperature: original(logits + boost, temperature)


def test_banned_tokens_are_never_sampled_even_when_the_model_wants_them(
    fresh: Any, talk: Any
) -> None:
    banned = np.flatnonzero(fresh.codec.banned)
    vocabulary = fresh.codec.vocabulary
    assert vocabulary.control["<|image_pad|>"] in banned
    assert vocabulary.control["<|im_start|>"] in banned
    assert len(vocabulary.bytes) - 1 in banned  # a padding row
    assert fresh.codec.template.end_id not in banned
    want(fresh, banned)
    played = talk.together([talk.converse(fresh, i, mixed_turns(talk, i)) for i in range(4)])
    sessions = [session for session, _ in played]
    segments = [segment for session in sessions for segment in session.segments()]
    for segment in segments:
        assert not np.isin(segment.token_ids[segment.loss_mask], banned).any()
    scores = fresh.score(segments, named_images(sessions))
    for row, segment in enumerate(segments):
        found = scores.logprobs[row, : len(segment)].detach()
        np.testing.assert_allclose(found, segment.logprobs, rtol=0, atol=1e-5)


def test_end_token_ends_a_turn_and_is_not_added_twice(fresh: Any, talk: Any) -> None:
    end = fresh.codec.template.end_id
    want(fresh, end)
    turns = [talk.shown("a"), talk.shown("b")]
    session, replies = talk.alone(fresh, 0, turns)
    assert [reply.text for reply in replies] == ["<think>", "<think>"]
    assert [reply.finish_reason for reply in replies] == ["stop", "stop"]
    assert replies[0].token_ids.tolist() == [end]
    decoded = fresh.codec.processor.tokenizer.decode(session.stream.token_ids)
    assert decoded == (
        "<|im_start|>user\nlook: a<|im_end|>\n<|im_start|>assistant\n<think><|im_end|>\n"
        "<|im_start|>user\nlook: b<|im_end|>\n<|im_start|>assistant\n<think><|im_end|>"
    )


def test_turn_that_was_cut_is_closed_before_the_next(qwen3: Any, talk: Any) -> None:
    session, replies = talk.alone(
        qwen3, 0, [talk.shown("a"), talk.shown("b")], sampling=Sampling(1.0, 4)
    )
    assert replies[0].finish_reason == "length"
    decoded = qwen3.codec.processor.tokenizer.decode(session.stream.token_ids)
    assert f"{replies[0].text}<|im_end|>\n<|im_start|>user\nlook: b" in decoded


def test_stop_string_ends_the_turn_and_is_kept(qwen3: Any, talk: Any) -> None:
    turns = [talk.shown("what?", talk.picture(4))]
    sampling = Sampling(1.0, 40)
    _, (free,) = talk.alone(qwen3, 9, turns, sampling=sampling)
    said = free.text.removeprefix("<think>")
    stop = said[len(said) // 2 :][:2]
    ask = TurnRequest("<think>", (stop, "never said at all"))
    _, (stopped,) = talk.alone(qwen3, 9, turns, request=ask, sampling=sampling)
    assert stopped.finish_reason == "stop"
    assert free.text.startswith(stopped.text)
    assert stop in stopped.text.removeprefix("<think>")
    # The last token is the first that completes the stop string.
    assert stop not in qwen3.codec.vocabulary.decode(stopped.token_ids[:-1].tolist())


@pytest.mark.component("outlines-core")
@pytest.mark.parametrize(
    "regex",
    [r"[^<]{0,8}</think><answer>[^<]{1,6}</answer>", r"(yes|no), [0-9]{1,3}é?", r"(ab?)+c\n"],
)
def test_constrained_text_always_matches(qwen3: Any, talk: Any, regex: str) -> None:
    ask = TurnRequest("<think>", ("</answer>",), regex)
    played = talk.together(
        [
            talk.converse(
                qwen3, i, mixed_turns(talk, i)[:1], request=ask, sampling=Sampling(1.0, 200)
            )
            for i in range(12)
        ]
    )
    texts = [replies[0].text.removeprefix("<think>") for _, replies in played]
    assert all(replies[0].finish_reason == "stop" for _, replies in played)
    assert all(re.fullmatch(regex, text) for text in texts), texts
    assert len(set(texts)) > 1


@pytest.mark.component("outlines-core")
def test_constrained_tokens_are_recorded_as_score_sees_them(qwen3: Any, talk: Any) -> None:
    ask = TurnRequest("<think>", (), r"[a-z]{3}</think>")
    session, _ = talk.alone(qwen3, 1, mixed_turns(talk, 4), request=ask)
    (segment,) = session.segments()
    scores = qwen3.score([segment], named_images([session]))
    np.testing.assert_allclose(scores.logprobs[0].detach(), segment.logprobs, rtol=0, atol=1e-5)
    # First come three letters, each one of 26 or more; then only the tag, perhaps in several
    # tokens, and then the end.
    assert recorded(segment)[0] < -1
    assert recorded(segment)[-1] == 0


@pytest.mark.component("outlines-core")
def test_forced_token_has_no_gradient_and_an_excluded_one_is_not_pushed(
    fresh: Any, talk: Any
) -> None:
    ask = TurnRequest("<think>", (), r"(yes|no)")
    session, _ = talk.alone(fresh, 1, mixed_turns(talk, 4), request=ask)
    (segment,) = session.segments()
    embedding = fresh.network.model.get_output_embeddings().weight  # tied to the input
    (gradient,) = torch.autograd.grad(
        fresh.score([segment], named_images([session])).logprobs.sum(), embedding
    )
    starts = (b"y", b"e", b"s", b"n", b"o")
    excluded = [
        token
        for token, spelled in enumerate(fresh.codec.vocabulary.bytes)
        if spelled and not spelled.startswith(starts) and token not in segment.token_ids
    ]
    assert len(excluded) > 100
    assert not gradient[excluded].any()
    assert gradient.any()


@pytest.mark.component("outlines-core")
def test_limit_may_cut_a_constrained_turn(qwen3: Any, talk: Any) -> None:
    ask = TurnRequest("", (), r"[a-z]{50}", max_tokens=2)
    _, (reply,) = talk.alone(qwen3, 1, [talk.shown("a")], request=ask)
    assert reply.finish_reason == "length"
    assert len(reply.token_ids) == 2


@pytest.mark.component("outlines-core")
def test_regular_expression_that_is_none_is_refused(qwen3: Any, talk: Any) -> None:
    with pytest.raises(PolicyError, match="Cannot constrain sampling"):
        talk.alone(qwen3, 1, [talk.shown("a")], request=TurnRequest("", (), "(unclosed"))


def test_replaced_context_is_a_new_segment(qwen3: Any, talk: Any) -> None:
    async def run() -> Any:
        session = qwen3.open(0)
        for context in ("append", "append", "replace"):
            session.observe(talk.shown("a", talk.picture(1)), context)
            await qwen3.respond(session, talk.request, talk.sampling)
        return session

    session = asyncio.run(run())
    first, second = session.segments()
    assert [span.turn for span in first.turns] == [0, 1]
    assert [span.turn for span in second.turns] == [2]
    assert len(session.messages) == 2
    start = first.turns[0].start
    assert second.token_ids[: second.turns[0].start].tolist() == first.token_ids[:start].tolist()


def test_new_weights_make_old_keys_and_values_stale(fresh: Any, talk: Any) -> None:
    def train_a_little(session: Any) -> None:
        if session.turn == 1:
            with torch.no_grad():
                for parameter in fresh.parameters():
                    parameter.mul_(1.1)
            fresh.updated()

    turns = [talk.shown("a", talk.picture(1)), talk.shown("b")]
    session, _ = talk.alone(fresh, 0, turns, before=train_a_little)
    (segment,) = session.segments()
    first, second = segment.turns
    assert set(segment.policy_version[first.start : first.end].tolist()) == {0}
    assert set(segment.policy_version[second.start : second.end].tolist()) == {1}
    scores = fresh.score([segment], named_images([session])).logprobs[0].detach().numpy()
    later = slice(second.start, second.end)
    np.testing.assert_allclose(scores[later], segment.logprobs[later], rtol=0, atol=1e-5)
    earlier = slice(first.start, first.end)
    assert np.abs(scores[earlier] - segment.logprobs[earlier]).max() > 1e-2


def test_broken_image_fails_its_own_conversation_alone(qwen3: Any, talk: Any) -> None:
    narrow = talk.picture(1, width=2, height=500)
    broken = Image.from_bytes(b"not an image")

    async def run() -> list[Any]:
        shown = [talk.picture(0), narrow, broken, talk.picture(2)]
        conversations = [
            talk.converse(qwen3, k, [talk.shown("a", image)]) for k, image in enumerate(shown)
        ]
        return list(await asyncio.gather(*conversations, return_exceptions=True))

    good, too_narrow, unreadable, other = asyncio.run(run())
    assert isinstance(too_narrow, ImageError)
    assert isinstance(unreadable, ImageError)
    assert "2x500" in str(too_narrow)
    assert good[1][0].text
    assert other[1][0].text


def test_full_context_is_an_error_of_its_own_conversation(
    qwen3: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qwen3.decoder, "_context", 60)

    async def run() -> list[Any]:
        texts = ["short", "far too long " * 30]
        conversations = [
            talk.converse(qwen3, 0, [talk.shown(text)], sampling=Sampling(1.0, 500))
            for text in texts
        ]
        return list(await asyncio.gather(*conversations, return_exceptions=True))

    short, long = asyncio.run(run())
    assert isinstance(long, PolicyError)
    assert "context" in str(long)
    session, (reply,) = short
    assert reply.finish_reason == "length"
    assert len(session.stream.token_ids) == 60


def test_stream_is_sampled_at_one_temperature(qwen3: Any, talk: Any) -> None:
    async def run() -> None:
        session = qwen3.open(0)
        session.observe(talk.shown("a"))
        await qwen3.respond(session, talk.request, Sampling(1.0, 4))
        session.observe(talk.shown("b"))
        await qwen3.respond(session, talk.request, Sampling(0.5, 4))

    with pytest.raises(PolicyError, match=r"1\.0.*0\.5"):
        asyncio.run(run())


def test_draw_inverts_the_cumulative_distribution() -> None:
    # Probabilities 0, .5, .25, .25, 0 have cumulative sums 0, .5, .75, 1, 1. A number below .5
    # gives token 1, from .5 to .75 token 2, from .75 token 3, but never 0 or 4, whose probability
    # is 0.
    scores = torch.tensor([0.0, 0.5, 0.25, 0.25, 0.0]).log().expand(6, -1)
    uniform = torch.tensor([0.0, 0.4999, 0.5, 0.74, 0.75, 1 - 2**-53], dtype=torch.float64)
    assert turn.draw(scores, uniform).tolist() == [1, 1, 2, 2, 3, 3]
