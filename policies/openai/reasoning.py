"""Puts the reasoning that a server splits off back into the turn.

llama.cpp (by default), vLLM and SGLang (with a reasoning parser), Ollama and others return the
thought of a model in a field of its own, and only the rest as ``content``. The grammar of an
environment reads the whole turn, with the thought inside its tags. Servers also put a whole reply
into that field if the model wrote no closing tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from visenv.types import Message, TurnRequest

THOUGHT_TAGS = ("think", "rethink")
"""The tags inside which environments ask for a thought."""


class SplitReply(NamedTuple):
    """Holds a reply as the server sent it.

    Attributes:
        content: The text outside the reasoning; ``""`` if there is none.
        reasoning: The text of the reasoning; ``""`` if the server did not split any off.
        is_cut: Whether the token limit ended the reply.
    """

    content: str
    reasoning: str
    is_cut: bool


class JoinedReply(NamedTuple):
    """Holds the text of a turn.

    Attributes:
        text: The text, which continues the prefill if one was sent.
        thought_end: The place of the closing tag of the thought; a stop string before it does not
            end the turn.
    """

    text: str
    thought_end: int = 0


def joined(
    reply: SplitReply, messages: Iterable[Message], request: TurnRequest, sent_prefill: bool
) -> JoinedReply:
    """Return the turn of a reply, with its reasoning in the form that the environment asked for.

    A thought that the token limit cut stays open, so that the turn counts as one that was cut. If
    the environment asked for no thought, the reasoning is left out.

    Args:
        reply: The reply, split into reasoning and content.
        messages: The conversation.
        request: The request of the environment.
        sent_prefill: Whether the server continues the prefill of the request.
    """
    content, reasoning, is_cut = reply
    if not reasoning.strip():
        return JoinedReply(content)
    prefill = request.prefill if sent_prefill else ""
    tag = _open_tag(prefill) or asked_tag(messages, request)
    if not tag:
        return JoinedReply(content if content.strip() or is_cut else reasoning)
    opening, closing = f"<{tag}>", f"</{tag}>"
    if content.lstrip().startswith(opening):  # the model wrote a thought of its own
        return JoinedReply(content)
    is_open = _open_tag(prefill) == tag
    if not is_open and not reasoning.lstrip().startswith(opening):
        reasoning = opening + reasoning
    if content.strip():
        if closing not in reasoning:
            reasoning += closing
        return JoinedReply(reasoning + content, reasoning.find(closing))
    if closing in reasoning or is_cut or not _holds_action(reasoning, request.stop):
        # The whole turn, a thought that was cut, or a thought that the server ended.
        return JoinedReply(reasoning, max(0, reasoning.find(closing)))
    return JoinedReply(reply.reasoning)  # the model wrote an action and no thought


def asked_tag(messages: Iterable[Message], request: TurnRequest) -> str:
    """Return the tag inside which the environment asks for the thought of the next turn.

    The newest messages count first: a later turn can ask for another tag than the first one.
    """
    told = [each for each in messages if each.role != "assistant"]
    newest = _texts(told[-1:])
    tags = [tag for tag in THOUGHT_TAGS if f"<{tag}>" in newest]
    if len(tags) == 1:
        return tags[0]
    everything = _texts(told) + request.prefill
    return next((tag for tag in THOUGHT_TAGS if f"<{tag}>" in everything), "")


def _texts(messages: Sequence[Message]) -> str:
    return "\n".join(
        part for message in messages for part in message.parts if isinstance(part, str)
    )


def _open_tag(text: str) -> str:
    """Return the thought tag that a text opens and does not close, or ``""``."""
    opened = [tag for tag in THOUGHT_TAGS if text.rfind(f"<{tag}>") > text.rfind(f"</{tag}>")]
    return opened[0] if opened else ""


def _holds_action(text: str, stops: Iterable[str]) -> bool:
    """Return whether a text has the opening tag of an action that a stop string closes."""
    names = [match[1] for stop in stops if (match := re.fullmatch(r"</(\w+)>", stop))]
    return any(f"<{name}>" in text for name in names if name not in THOUGHT_TAGS)
