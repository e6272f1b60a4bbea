"""Tests sampling with the real engine."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from typing import Any

import numpy as np
import pytest

from tests.listeners import listeners, require_listed
from visenv.errors import ImageError, PolicyError
from visenv.types import Image, Sampling, TurnRequest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.component("vllm", "torch", "transformers", "outlines-core")

# An untrained model is nearly uniform. With a peaked distribution, fewer draws are at the border of
# two tokens, where the rounding of another batch shape decides.
PEAKED = Sampling(0.2, 8)


def spoken(segments: Any) -> list[list[int]]:
    return [segment.token_ids.tolist() for segment in segments]


def test_seeds_repeat_and_do_not_depend_on_companions(vllm3: Any, exam: Any, talk: Any) -> None:
    together = exam.play(vllm3, range(12), sampling=PEAKED)
    assert spoken(together) == spoken(exam.play(vllm3, range(12), sampling=PEAKED))
    for index in (0, 5, 11):
        (alone,) = exam.play(vllm3, [index], sampling=PEAKED)
        assert alone.token_ids.tolist() == together[index].token_ids.tolist()


@pytest.mark.attack("servers: the table of listeners is complete")
def test_engine_in_this_process_listens_as_documented(vllm3: Any) -> None:
    found = {port for port in listeners([os.getpid()]) if port.port}
    if torch.cuda.is_available():
        assert not found  # no group of gloo
    else:
        require_listed("vLLM engine", found)


def test_members_of_a_group_draw_each_for_itself(vllm3: Any, exam: Any, talk: Any) -> None:
    turns = exam.turns(7)
    played = talk.together([talk.converse(vllm3, seed, turns) for seed in range(6)])
    assert len({replies[0].text for _, replies in played}) == 6
    # Each turn has its own draws, too.
    assert all(len({reply.text for reply in replies}) == len(replies) for _, replies in played)


def test_stop_string_ends_the_turn_and_is_kept(vllm3: Any, talk: Any) -> None:
    turns = [talk.shown("what?", talk.picture(4)), talk.shown("and?")]
    sampling = Sampling(1.0, 40)
    _, (free, _) = talk.alone(vllm3, 9, turns, sampling=sampling)
    said = free.text.removeprefix("<think>")
    stop = said[len(said) // 2 :][:2]
    ask = TurnRequest("<think>", (stop, "never said at all"))
    session, (stopped, _) = talk.alone(vllm3, 9, turns, request=ask, sampling=sampling)
    assert stopped.finish_reason == "stop"
    assert free.text.startswith(stopped.text)
    assert stop in stopped.text.removeprefix("<think>")
    # The last token is the first that completes the stop string, and the forced end is removed.
    assert stop not in vllm3.codec.vocabulary.decode(stopped.token_ids[:-1].tolist())
    assert stopped.token_ids[-1] != vllm3.codec.end_id
    assert stopped.logprobs.tolist() == free.logprobs[: len(stopped.logprobs)].tolist()
    decoded = vllm3.codec.processor.tokenizer.decode(session.stream.token_ids)
    assert f"{stopped.text}<|im_end|>\n<|im_start|>user\nlook: and?" in decoded


def test_stop_string_in_the_last_token_is_a_stop(vllm3: Any, talk: Any) -> None:
    turns, sampling = [talk.shown("what?")], Sampling(1.0, 2)
    _, (free,) = talk.alone(
        vllm3, 9, turns, request=TurnRequest("", (), "[0-9]{2,9}"), sampling=sampling
    )
    ask = TurnRequest("", (free.text,), "[0-9]{2,9}")
    _, (stopped,) = talk.alone(vllm3, 9, turns, request=ask, sampling=sampling)
    assert (free.text, len(free.token_ids)) == (stopped.text, 2)
    assert (free.finish_reason, stopped.finish_reason) == ("length", "stop")


@pytest.mark.parametrize(
    "regex",
    [r"[^<]{0,8}</think><answer>[^<]{1,6}</answer>", r"(yes|no), [0-9]{1,3}é?", r"(ab?)+c\n"],
)
def test_constrained_text_always_matches(vllm3: Any, exam: Any, talk: Any, regex: str) -> None:
    ask = TurnRequest("<think>", ("</answer>",), regex)
    played = talk.together(
        [
            talk.converse(vllm3, k, exam.turns(k)[:1], request=ask, sampling=Sampling(1.0, 100))
            for k in range(8)
        ]
    )
    texts = [replies[0].text.removeprefix("<think>") for _, replies in played]
    assert all(replies[0].finish_reason == "stop" for _, replies in played)
    assert all(re.fullmatch(regex, text) for text in texts), texts
    assert len(set(texts)) > 1


def test_limit_may_cut_a_constrained_turn(vllm3: Any, talk: Any) -> None:
    ask = TurnRequest("", (), r"[a-z]{50}", max_tokens=2)
    _, (reply,) = talk.alone(vllm3, 1, [talk.shown("a")], request=ask)
    assert (reply.finish_reason, len(reply.token_ids)) == ("length", 2)


def test_empty_completion(vllm3: Any, qwen3: Any, exam: Any, talk: Any) -> None:
    session, replies = talk.alone(
        vllm3, 1, [talk.shown("a"), talk.shown("b")], request=TurnRequest("<think>", (), "(a{0})")
    )
    assert [reply.text for reply in replies] == ["<think>", "<think>"]
    assert [reply.token_ids.tolist() for reply in replies] == [[vllm3.codec.end_id]] * 2
    assert exam.error(qwen3, session.segments(), {}) == 0


def test_request_that_cannot_be_served_is_refused(vllm3: Any, talk: Any) -> None:
    with pytest.raises(PolicyError, match="Cannot constrain sampling"):
        talk.alone(vllm3, 1, [talk.shown("a")], request=TurnRequest("", (), "(unclosed"))
    with pytest.raises(PolicyError, match=r"got 0\.005"):
        talk.alone(vllm3, 1, [talk.shown("a")], sampling=Sampling(0.005, 4))


def test_images_beyond_the_limit_are_refused_with_their_number(vllm3: Any, talk: Any) -> None:
    pictures = [talk.picture(k) for k in range(20)]
    with pytest.raises(PolicyError, match=r"20 images.*at most 8 \(max_images\)"):
        talk.alone(vllm3, 0, [talk.shown("a", *pictures)])
    session, _ = talk.alone(vllm3, 0, [talk.shown("a", *pictures[:8])])
    assert len(session.segments()[0].images) == 8


def test_full_context_is_an_error_of_its_own_conversation(vllm3: Any, talk: Any) -> None:
    async def run() -> list[Any]:
        endless = TurnRequest("", (), "[0-9]{600}")  # each digit is a token
        conversations = [
            talk.converse(
                vllm3, 0, [talk.shown(text)], request=endless, sampling=Sampling(1.0, 600)
            )
            for text in ("short " * 40, "far too long " * 90)
        ]
        return list(await asyncio.gather(*conversations, return_exceptions=True))

    short, long = asyncio.run(run())
    assert isinstance(long, PolicyError)
    assert str(long) == "The context of 512 tokens is full."
    session, (reply,) = short
    assert reply.finish_reason == "length"
    assert len(session.stream.token_ids) == 512


def test_broken_image_fails_its_own_conversation_alone(vllm3: Any, talk: Any) -> None:
    async def run() -> list[Any]:
        broken = [talk.picture(1, width=2, height=500), Image.from_bytes(b"not an image")]
        shown = [talk.picture(0), *broken, talk.picture(2)]
        conversations = [
            talk.converse(vllm3, k, [talk.shown("a", image)]) for k, image in enumerate(shown)
        ]
        return list(await asyncio.gather(*conversations, return_exceptions=True))

    good, *bad, other = asyncio.run(run())
    assert [type(each) for each in bad] == [ImageError, ImageError]
    assert good[1][0].text
    assert other[1][0].text


def test_resizing_other_than_the_engines_is_noticed(
    vllm3: Any, qwen3_folder: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an unequal prompt is an error; training would use tokens that were not sampled."""
    from visenv.policies.vllm.settings import EngineSettings

    other = EngineSettings(qwen3_folder, max_pixels=48 * 48).codec()
    monkeypatch.setattr(vllm3, "codec", other)
    # 64 x 64 pixels are 4 x 4 placeholders, 48 x 48 are 3 x 3. Before them are <|im_start|>user\n,
    # "look: " and <|vision_start|>, so the tenth placeholder is the first that only one side has.
    prompt = r"'qwen3_vl' .*: (\d+) tokens instead of (\d+), the first difference at token (\d+)"
    with pytest.raises(PolicyError, match=prompt) as raised:
        talk.alone(vllm3, 0, [talk.shown("a", talk.picture(1))])
    found = re.search(prompt, str(raised.value))
    assert found is not None
    theirs, ours, place = map(int, found.groups())
    assert theirs - ours == 16 - 9
    session = other.open(0)
    session.observe(talk.shown("a", talk.picture(1)))
    increment = other.increment(session.stream, session.pending, TurnRequest("<think>"))
    assert place == increment.token_ids.index(other.image_id) + 9


def test_cancelled_turn_is_aborted_and_the_others_continue(
    vllm3: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = vllm3._present.engine
    steps, begun = engine.step, threading.Event()

    def counted() -> Any:
        ended = steps()
        begun.set()
        return ended

    monkeypatch.setattr(engine, "step", counted)

    async def run() -> Any:
        long = Sampling(1.0, 450)
        doomed = asyncio.create_task(
            talk.converse(vllm3, 0, [talk.shown("a", talk.picture(1))], sampling=long)
        )
        other = asyncio.create_task(talk.converse(vllm3, 1, [talk.shown("b")], sampling=PEAKED))
        await asyncio.to_thread(begun.wait, 60)
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        await other
        # At the end of one more turn, the engine has handled all earlier requests.
        await talk.converse(vllm3, 2, [talk.shown("c")], sampling=PEAKED)
        return engine._engine.get_num_unfinished_requests()

    assert asyncio.run(run()) == 0
    assert not vllm3._present._waiting


def test_banned_tokens_are_never_sampled_even_when_the_model_wants_them(
    vllm3: Any, fresh: Any, exam: Any, restored: None
) -> None:
    import torch

    banned = torch.from_numpy(fresh.codec.banned)
    assert banned[fresh.codec.image_id]
    assert banned[-1]  # a padding row
    with torch.no_grad():
        fresh.network.model.get_input_embeddings().weight[banned] *= 30
    wanted: list[int] = []
    head = fresh.network.model.lm_head.register_forward_hook(
        lambda _, __, logits: wanted.extend(logits.argmax(-1).flatten().tolist())
    )
    theirs = exam.play(fresh, range(6))
    head.remove()
    assert np.mean(fresh.codec.banned[wanted]) > 0.5  # most tokens would be banned ones
    vllm3.load(fresh.network.model.state_dict().items(), 1)
    ours = exam.play(vllm3, range(6))
    for segment in ours:
        assert not np.isin(segment.token_ids[segment.loss_mask], np.flatnonzero(banned)).any()
    assert exam.error(fresh, ours, exam.images(range(6))) < 1e-5
    assert len(ours) == len(theirs)
