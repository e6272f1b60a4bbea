"""Tests the writer: how it reads replies, how often it asks again, and its prompts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.curation.writer import (
    UnusableReplyError,
    Writer,
    is_refusal,
    read_reply,
    read_text,
    read_texts,
)
from visenv.errors import ConfigurationError, ImageError, PolicyError
from visenv.types import Sampling

GOOD = {"responses": ["a", "b"]}


def two(reply: dict[str, Any]) -> list[str]:
    return read_texts(reply, "responses", 2)


def write(
    writer: Writer, read: Callable[[dict[str, Any]], Any] = two, images: Any = (), seed: int = 3
) -> Any:
    return asyncio.run(writer.write("Write two.", images, read, seed))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x"}',
        '  \n{"a": "x"}\n',
        'Sure, here it is:\n```json\n{"a": "x"}\n```\nI hope it helps.',
        '<think>Perhaps {"a": "y"}? I cannot say.</think>{"a": "x"}',
    ],
)
def test_object_in_a_reply(text: str) -> None:
    assert read_reply(text) == {"a": "x"}


BAD = {
    "": "empty reply",
    " \n": "empty reply",
    '<think>{"responses": []}</think>': "empty reply",
    "I'm sorry, but I can't help with that.": "refusal",
    "I’m unable to see the image": "refusal",
    "As an AI model, I have no opinion": "refusal",
    "The answer is 7": "no JSON",
    '{"responses": ["a", "b"]': "no JSON",
    '["a", "b"]': "no JSON",
    "{" * 5000: "no JSON",
    '{"a": ' * 20_000 + "}" * 20_000: "no JSON",
    '{"answers": ["a", "b"]}': "wrong shape",
    '{"responses": "a"}': "wrong shape",
    '{"responses": {"0": "a"}}': "wrong shape",
    '{"responses": ["a", 7]}': "wrong shape",
    '{"responses": ["a", null]}': "wrong shape",
    '{"responses": ["a", " "]}': "wrong shape",
    '{"responses": ["a"]}': "wrong count",
    '{"responses": ["a", "b", "c"]}': "wrong count",
    '{"responses": []}': "wrong count",
    '{"responses": ["a", "I cannot tell from this image."]}': "refusal",
    '{"responses": ["a", "' + "b" * 100_001 + '"]}': "too long",
}


@pytest.mark.parametrize(("text", "code"), BAD.items(), ids=[str(k) for k in range(len(BAD))])
def test_reply_that_cannot_be_used_has_one_of_few_reasons(kit: Any, text: str, code: str) -> None:
    policy = kit.Replies(text)
    with pytest.raises(UnusableReplyError) as error:
        write(Writer(policy, attempts=2))
    assert error.value.code == code
    assert len(str(error.value)) < 1500  # it is written to the journal
    assert len(policy.sampling) == 2


def test_reply_that_was_cut_off_is_called_so(kit: Any) -> None:
    with pytest.raises(UnusableReplyError) as error:
        write(Writer(kit.Replies("CUT"), attempts=1))
    assert error.value.code == "reply cut off"
    with pytest.raises(UnusableReplyError, match="too long"):
        read_reply('<think>Perhaps {"responses": ["a", "b"]}? No,', cut=True)


def test_writer_asks_again_with_the_reason(kit: Any) -> None:
    policy = kit.Replies("nonsense", {"responses": ["a"]}, GOOD)
    assert write(Writer(policy, Sampling(0.7, 99))) == ["a", "b"]
    first, second, third = policy.prompts()
    assert first == "Write two."
    assert second.startswith("The reply must be one JSON object")
    assert third.startswith("There must be 2 texts under 'responses', not 1.")
    assert policy.sampling == [Sampling(0.7, 99, seed) for seed in (3, 4, 5)]
    roles = [message.role for message in policy.conversations[-1]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]


def test_seed_stays_within_32_bits(kit: Any) -> None:
    policy = kit.Replies("x", GOOD)
    write(Writer(policy), seed=2**32 - 1)
    assert [each.seed for each in policy.sampling] == [2**32 - 1, 0]


def test_policy_error_is_not_repeated_by_the_writer(kit: Any) -> None:
    policy = kit.Replies(PolicyError("the server is down"))
    with pytest.raises(PolicyError, match="is down"):
        write(Writer(policy))
    assert len(policy.sampling) == 1


@pytest.mark.component("opencv")
def test_images_are_shown_first_and_no_larger_than_allowed(kit: Any) -> None:
    names = kit.image("large.png", size=(40, 30)), kit.image("small.png")
    paths = [str(kit.folder / name) for name in names]
    policy = kit.Replies(GOOD)
    write(Writer(policy, image_pixels=300), images=paths)
    (message,) = policy.conversations[0]
    # 40 x 30 = 1200 pixels; with half of each side, 300
    assert [image.size for image in message.images] == [(20, 15), (8, 6)]
    assert message.parts[-1] == "Write two."
    with pytest.raises(ImageError, match="There is no image"):
        write(Writer(policy), images=[str(kit.folder / "no.png")])
    with pytest.raises(ImageError):
        write(Writer(policy), images=["a\0b.png"])


def test_writer_makes_at_least_one_attempt() -> None:
    policy: Any = None
    with pytest.raises(ConfigurationError, match="attempts must be at least 1"):
        Writer(policy, attempts=0)


@given(st.text(max_size=300))
def test_reply_of_any_text_raises_nothing_else(text: str) -> None:
    for read in (read_reply, lambda said: read_text(read_reply(said), "a")):
        with contextlib.suppress(UnusableReplyError):
            read(text)


@pytest.mark.parametrize(
    "text",
    ["A man is sorry", "The sign reads: I am here", "Imports cannot rise", "Aim unable"],
)
def test_answers_that_are_no_refusal(text: str) -> None:
    assert not is_refusal(text)


def test_refusal_far_into_a_text_is_a_quotation() -> None:
    assert not is_refusal(
        "The poster shows a robot whose speech bubble, in large letters all "
        "over the wall, reads: I cannot do that"
    )
