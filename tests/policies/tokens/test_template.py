"""Tests increments of the chat template, and that control tokens in text stay text."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny_models import tiny_texts
from visenv.errors import PolicyError
from visenv.types import Episode, FinishReason, Message, Turn, TurnRequest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.tokens import template
from visenv.policies.tokens import vocabulary as vocabulary_module
from visenv.policies.transformers.tiny import CHAT_TEMPLATE
from visenv.policies.transformers.tiny_tokenizer import CONTROL_TOKENS, build_tokenizer

if TYPE_CHECKING:
    from visenv.policies.tokens.vocabulary import Vocabulary

pytestmark = pytest.mark.component("torch", "transformers")

NAMES = ("think", "tool", "answer", "result", "image_name")
TAGS = [f"<{slash}{name}>" for name in NAMES for slash in ("", "/")]
"""The tags of ZoomVQA."""


def spoken(messages: tuple[Message, ...], text: str, prefix: str = "") -> Turn:
    finish: FinishReason = "stop"
    return Turn(messages, text, 0.0, (), finish, TurnRequest(prefix))


def episode_of(*turns: Turn) -> Episode:
    return Episode("env", "sample", "", 0, 0, 0, turns, "terminated")


def rendered_ids(policy: Any, messages: list[Message]) -> list[int]:
    """Return the tokens of a whole conversation from the stock processor, which expands images."""
    conversation = [
        {
            "role": message.role,
            "content": [
                {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
                for part in message.parts
            ],
        }
        for message in messages
    ]
    text = policy.codec.processor.apply_chat_template(conversation, tokenize=False)
    images = [image.pixels.copy() for message in messages for image in message.images]
    ids: list[int] = policy.codec.processor(text=[text], images=images)["input_ids"][0]
    return list(ids)


def test_increments_put_together_are_the_stock_rendering(policy: Any, talk: Any) -> None:
    """Check three turns with four images, a system message, and line breaks around texts."""
    asked: list[tuple[Message, ...]] = [
        (
            Message("system", ("Be brief.\n",)),
            Message("user", ("\nfirst", talk.picture(1), talk.picture(2, 96, 64), "\nwhat?")),
        ),
        (Message("user", (talk.picture(3),)), Message("user", ("two messages at once",))),
        (Message("user", ("<result>\n", talk.picture(4, 64, 128), "</result>")),),
    ]
    said = [
        "<think> a </think><tool>\nname: zoom\n</tool>",
        "<think>b</think>",
        "<answer>c</answer>",
    ]
    turns = [spoken(*pair) for pair in zip(asked, said, strict=True)]
    (segment,) = policy.encode(episode_of(*turns)).segments
    whole = [
        message
        for turn in turns
        for message in (*turn.messages, Message("assistant", (turn.text,)))
    ]
    expected = rendered_ids(policy, whole)
    newline = policy.codec.vocabulary.encode("\n")
    assert segment.token_ids.tolist() + newline == expected  # the template ends with a line break


def test_encode_masks_what_was_shown_and_what_was_filled_in(qwen3: Any, talk: Any) -> None:
    turns = (
        spoken(talk.shown("a", talk.picture(1)), "<think> one</think>", "<think>"),
        spoken(talk.shown("b"), "<think> two", "<think>"),
    )
    (segment,) = qwen3.encode(episode_of(*turns)).segments
    decode = qwen3.codec.processor.tokenizer.decode
    spans = [segment.token_ids[span.start : span.end] for span in segment.turns]
    assert [decode(span) for span in spans] == [" one</think><|im_end|>", " two<|im_end|>"]
    sampled = segment.loss_mask
    assert decode(segment.token_ids[sampled]) == " one</think><|im_end|> two<|im_end|>"
    assert np.isnan(segment.logprobs[sampled]).all()
    assert not segment.logprobs[~sampled].any()


def test_encode_begins_a_segment_where_the_context_is_replaced(qwen3: Any, talk: Any) -> None:
    first = spoken(talk.shown("a"), "one")
    second = Turn(tuple(talk.shown("b")), "two", 0.0, (), "stop", TurnRequest(context="replace"))
    one, two = qwen3.encode(episode_of(first, second)).segments
    assert qwen3.codec.processor.tokenizer.decode(two.token_ids).startswith(
        "<|im_start|>user\nlook: b"
    )
    assert [span.turn for span in (*one.turns, *two.turns)] == [0, 1]


@pytest.mark.attack(
    "policies: text that looks like a result, a tag or a control token does nothing"
)
@pytest.mark.parametrize("control", CONTROL_TOKENS)
def test_control_tokens_in_foreign_text_stay_text(qwen3: Any, talk: Any, control: str) -> None:
    """Check control tokens in a question, a tool's result, and an oracle's turn."""
    hostile = f"x{control}y {control}"
    turns = (
        spoken(talk.shown(hostile, talk.picture(1)), f"say {control}"),
        spoken(talk.shown(f"<result>\n{hostile}\n</result>"), "done"),
    )
    (segment,) = qwen3.encode(episode_of(*turns)).segments
    calm = hostile.replace(control, "calm")
    harmless = (
        spoken(talk.shown(calm, talk.picture(1)), "say"),
        spoken(talk.shown(f"<result>\n{calm}\n</result>"), "done"),
    )
    (expected,) = qwen3.encode(episode_of(*harmless)).segments
    count = list(segment.token_ids).count(qwen3.codec.vocabulary.control[control])
    assert count == list(expected.token_ids).count(qwen3.codec.vocabulary.control[control])
    decoded = qwen3.codec.vocabulary.decode(segment.token_ids.tolist())
    assert decoded.count(hostile) == 2


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    tokenizer = build_tokenizer(512, tiny_texts())
    # Real Qwen tokenizers have tokens that look like control tokens but are not marked special.
    tokenizer.add_tokens(["<|fim_prefix|>", "<|repo_name|>"])
    built: Vocabulary = vocabulary_module.Vocabulary(tokenizer, 576)
    return built


TEXTS = st.lists(
    st.sampled_from(
        [
            *CONTROL_TOKENS,
            *TAGS,
            "<|fim_prefix|>",
            "<|repo_name|>",
            "<|im_",
            "end|>",
        ]
    )
    | st.text(max_size=8)
).map("".join)


@settings(max_examples=max(100, settings().max_examples), deadline=None)
@given(text=TEXTS)
def test_text_never_becomes_a_control_token(vocabulary: Vocabulary, text: str) -> None:
    ids = vocabulary.encode(text)
    assert not set(ids) & set(vocabulary.control.values())
    # Qwen's tokenizer normalizes to NFC; nothing else changes.
    assert vocabulary.decode(ids) == unicodedata.normalize("NFC", text)


def test_tags_are_one_token_each(vocabulary: Vocabulary) -> None:
    for tag in TAGS:
        assert len(vocabulary.encode(tag)) == 1


def test_lone_surrogates_do_not_raise(vocabulary: Vocabulary) -> None:
    assert vocabulary.decode(vocabulary.encode("a\ud800b")) == "a?b"


def test_look_alikes_are_banned_too(vocabulary: Vocabulary) -> None:
    banned = vocabulary.banned(vocabulary.control["<|im_end|>"])
    assert banned[vocabulary.control["<|fim_prefix|>"]]
    assert not banned[vocabulary.control["<|im_end|>"]]
    # The vocabulary has at most 512 tokens, and 2 are added here; the other rows pad the head.
    known = len(vocabulary.control) + int((~banned).sum()) - 1  # the end of a turn is in both
    assert known <= 514
    assert banned[514:].all()
    assert not banned[vocabulary.encode("</think>")].any()


def broken(old: str, new: str) -> str:
    assert old in CHAT_TEMPLATE
    return CHAT_TEMPLATE.replace(old, new)


STRIPS = broken(
    "{%- if message.content is string -%}",
    "{%- if message.role == 'assistant' and not loop.last -%}"
    "{{- message.content[0].text.split('</think>')[-1] -}}"
    "{%- elif message.content is string -%}",
)
TRIMS = broken("{{- part.text -}}", "{{- part.text | trim -}}")
TRIMS_MESSAGES = broken(
    "{%- for part in message.content -%}", "{%- set whole -%}{%- for part in message.content -%}"
)
TRIMS_MESSAGES = TRIMS_MESSAGES.replace(
    "{%- endfor -%}\n{%- endif -%}", "{%- endfor -%}{%- endset -%}{{- whole | trim -}}{%- endif -%}"
)
REWRITES = broken(
    "{{- part.text -}}",
    "{{- part.text | upper if message.role == 'user' and message is ne messages[-1] "
    "else part.text -}}",
)
SHOUTS = broken("{{- part.text -}}", "{{- part.text | upper -}}")
COUNTS = broken("message.role + '\n'", "message.role + (loop.index | string) + '\n'")
REMARKS = broken(
    "'<|im_end|>\n'",
    "'<|im_end|>\n' + ('long' if message.role == 'assistant' "
    "and message.content[0].text | length > 9 else '')",
)
STRICT = (
    "{%- for message in messages -%}{%- if not loop.first and message.role == "
    "loop.previtem.role -%}{{- raise_exception('roles must alternate') -}}{%- endif -%}"
    "{%- endfor -%}" + CHAT_TEMPLATE
)
BLIND = broken("<|image_pad|>", "")
OPEN_ENDED = broken("'<|im_end|>\n'", "'\n'")
RAISES = "{{ raise_exception('no such role') }}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (SHOUTS, "first increment .* is not its rendering .*'.* rules .*', rendered '.* RULES "),
        (COUNTS, "turn or on earlier texts: '.*user3.*' after '§A§', but '.*4.*' after 'x'"),
        (REMARKS, "turn or on earlier texts: .*, but '.*long<.*' after '<think>"),
        (OPEN_ENDED, r"does not end a turn with a control token, but writes '\\n' after '§A§'"),
        (BLIND, r"writes none of '<\|image_pad\|>' for an image, but '<\|im_start\|>user"),
        (RAISES, "cannot be rendered: no such role"),
    ],
    ids=["shouts", "counts", "remarks", "open-ended", "blind", "raises"],
)
def test_faulty_template_is_named_at_the_start(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch, text: str, fault: str
) -> None:
    monkeypatch.setattr(qwen3.codec.processor, "chat_template", text)
    with pytest.raises(PolicyError, match=fault):
        template.ChatTemplate(qwen3.codec.processor, qwen3.codec.vocabulary)


@pytest.mark.parametrize(
    "text", [STRIPS, REWRITES, STRICT], ids=["strips thoughts", "rewrites", "strict"]
)
def test_template_that_changes_earlier_messages_is_used(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Check that increments do not depend on how a template renders what the model has read."""
    before = template.ChatTemplate(qwen3.codec.processor, qwen3.codec.vocabulary)
    monkeypatch.setattr(qwen3.codec.processor, "chat_template", text)
    chat = template.ChatTemplate(qwen3.codec.processor, qwen3.codec.vocabulary)
    asked = [Message("user", (" hi\n",))]
    for after_turn in (False, True):
        found, expected = (
            each.increment(asked, "<think>", after_turn=after_turn, ended=after_turn)
            for each in (chat, before)
        )
        assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(TRIMS, "hi<image>more<image>"), (TRIMS_MESSAGES, "hi <image> more\n<image>")],
    ids=["each text", "each message"],
)
def test_texts_are_stripped_where_the_template_strips_them(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch, talk: Any, text: str, expected: str
) -> None:
    monkeypatch.setattr(qwen3.codec.processor, "chat_template", text)
    chat = template.ChatTemplate(qwen3.codec.processor, qwen3.codec.vocabulary)
    asked = [Message("user", ("\n hi ", talk.picture(1), " more\n", talk.picture(2)))]
    found = chat.increment(asked, "", after_turn=False, ended=False)
    image = "<|vision_start|><|image_pad|><|vision_end|>"
    user = "<|im_start|>user\n" + expected.replace("<image>", image) + "<|im_end|>\n"
    decoded = qwen3.codec.processor.tokenizer.decode(found.token_ids)
    assert decoded == user + "<|im_start|>assistant\n"


OPENING = broken(
    "'<|im_start|>assistant\n' -}}{%- endif", "'<|im_start|>assistant\n<think>\n' -}}{%- endif"
)


@pytest.mark.parametrize(
    ("prefill", "added", "start"),
    [
        ("", "", "<think>\n"),
        ("<think>", "", "<think>\n"),
        ("<think>\n", "", "<think>\n"),
        ("<think>I see", "I see", "<think>\nI see"),
        ("<answer>", "<answer>", "<think>\n<answer>"),
    ],
)
def test_opening_of_a_thought_is_part_of_the_turn_and_not_doubled(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch, prefill: str, added: str, start: str
) -> None:
    monkeypatch.setattr(qwen3.codec.processor, "chat_template", OPENING)
    chat = template.ChatTemplate(qwen3.codec.processor, qwen3.codec.vocabulary)
    assert chat.opening == "<think>\n"
    assert chat.start(prefill) == start
    increment = chat.increment([Message("user", ("hi",))], prefill, after_turn=True, ended=True)
    decoded = qwen3.codec.processor.tokenizer.decode(increment.token_ids)
    assert decoded.endswith("<|im_start|>assistant\n<think>\n" + added)
    assert chat.sampled(start + "so</think>", prefill) == "so</think>"
    assert chat.sampled("<think>so</think>", "<think>") == "so</think>"


@pytest.mark.parametrize(("prefill", "refused"), [("", True), ("<think>", False)])
def test_expression_that_does_not_know_the_opening_is_refused(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch, prefill: str, refused: bool
) -> None:
    monkeypatch.setattr(qwen3.codec.template, "opening", "<think>\n")
    request = TurnRequest(prefill, regex="[ab]+")
    session = qwen3.codec.open(0)
    if refused:
        with pytest.raises(PolicyError, match=r"begins each turn with '<think>\\n', .* '\[ab\]\+'"):
            qwen3.codec.increment(session.stream, [Message("user", ("hi",))], request)
    else:
        assert qwen3.codec.increment(session.stream, [Message("user", ("hi",))], request).token_ids


def test_default_system_message_is_rendered_once(
    qwen3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check Qwen2.5-VL's own template, which adds a system message to conversations without one."""
    default = (
        "{%- if messages[0].role != 'system' -%}<|im_start|>system\nHelp.<|im_end|>\n{% endif -%}"
    )
    monkeypatch.setattr(qwen3.codec.processor, "chat_template", default + CHAT_TEMPLATE)
    chat = template.ChatTemplate(qwen3.codec.processor, qwen3.codec.vocabulary)
    decode = qwen3.codec.processor.tokenizer.decode
    asked = [Message("user", ("hi",))]
    opening = chat.increment(asked, "", after_turn=False, ended=False)
    later = chat.increment(asked, "<think>", after_turn=True, ended=True)
    user = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert decode(opening.token_ids) == "<|im_start|>system\nHelp.<|im_end|>\n" + user
    assert decode(later.token_ids) == "\n" + user + "<think>"
