"""Renders chat templates of models within limits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from visenv.child_process.host import ChildLimits
from visenv.decoding.decoder import DecoderError, DecoderProcess, Source
from visenv.errors import DataError

MOST_TEMPLATE_CHARACTERS = 1_000_000
MOST_CHARACTERS = 50_000_000
"""Maximum number of characters of a rendered conversation."""

JINJA = DecoderProcess(
    "jinja2",
    "visenv.decoding.child.template:TemplateTarget",
    ChildLimits(call_s=60.0, memory_bytes=2**30, data_bytes=2**29, processor_s=10.0),
    extra="train",
)
"""The renderer of chat templates."""


def render_chat_template(
    processor: Any, conversation: Sequence[Mapping[str, Any]], add_generation_prompt: bool
) -> str:
    """Return the text of a conversation, as ``processor.apply_chat_template`` returns it.

    Args:
        processor: A processor or a tokenizer of transformers.
        conversation: The messages, with ``role`` and ``content``, JSON-like.
        add_generation_prompt: Whether the text ends with the beginning of the model's turn.

    Raises:
        DataError: If there is no template, it raises an error, or it exceeds a limit of memory,
            time or text.
        ConfigurationError: If Jinja is not installed.
    """
    template = _template_of(processor)
    if len(template) > MOST_TEMPLATE_CHARACTERS:
        raise DataError(
            f"The chat template has {len(template):,} characters, at most "
            f"{MOST_TEMPLATE_CHARACTERS:,} are read."
        )
    variables = {
        **_special_tokens(getattr(processor, "tokenizer", processor)),
        "messages": list(conversation),
        "tools": None,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
    }
    source = Source(hashlib.sha256(template.encode("utf-8", "surrogatepass")).hexdigest(), None)
    try:
        result, arrays = JINJA.call(
            "render", source, template=template, variables=variables, most=MOST_CHARACTERS
        )
    except DecoderError as error:
        raise DataError(f"The chat template {error}.") from error
    if "problem" in result:
        raise DataError(f"The chat template cannot be rendered: {result['problem']}")
    return str(arrays["text"], "utf-8", "surrogatepass")


def _template_of(processor: Any) -> str:
    """Return the default template of a processor or a tokenizer."""
    template = getattr(processor, "chat_template", None)
    if isinstance(template, Mapping):
        template = template.get("default")
    if not isinstance(template, str):
        raise DataError(
            f"{type(processor).__name__} has no default chat template. Use a checkpoint of a chat "
            "model."
        )
    return template


def _special_tokens(tokenizer: Any) -> dict[str, Any]:
    """Return the special tokens by the names that templates use for them."""
    return {
        str(name): [str(each) for each in token] if isinstance(token, list) else str(token)
        for name, token in tokenizer.special_tokens_map.items()
    }
