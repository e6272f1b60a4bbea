"""Breaks texts that a chat template would read as control tokens.

A server inserts messages into the chat template of its model and reads special tokens in the
result, so that ``<|im_end|>`` in a web page would end the message. The policies in this process
encode text without special tokens and do not need this.
"""

from __future__ import annotations

import re

_NAMES = (
    *("s", "/s", "bos", "eos", "pad", "unk", "mask", "cls", "sep"),
    *("image", "/image", "img", "/img", "video", "/video", "audio", "IMG_CONTEXT", "im_patch"),
    *("im_start", "im_end", "image_soft_token", "start_of_image", "end_of_image"),
    *("start_of_turn", "end_of_turn", "start_of_audio", "end_of_audio", "extra_id_\\d+"),
    *("begin_of_text", "end_of_text", "endoftext", "fim_prefix", "fim_middle", "fim_suffix"),
)
"""Names of tokens between angle brackets; the tags of visenv's grammars are not among them."""

_BRACKETED = (
    *("INST", "SYSTEM_PROMPT", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS", "TOOL_CONTENT"),
    *("IMG", "IMG_BREAK", "IMG_END", "THINK", "gMASK", "sMASK", "CLS", "SEP", "MASK", "PAD"),
    *("AUDIO", "BEGIN_AUDIO", "BOS", "EOS", "UNK"),
)
"""Names of tokens between square brackets, of Mistral, GLM and BERT."""

_CONTROL = re.compile(
    r"<(?=[|｜][^<>|｜\n]{1,60}[|｜]>)"  # <|im_end|>, and the wide bars of DeepSeek
    r"|◁(?=[^◁▷\s][^◁▷\n]{0,59}▷)"  # Kimi-VL
    rf"|<(?=(?:{'|'.join(_NAMES)})>)"
    rf"|\[(?=/?(?:{'|'.join(_BRACKETED)})\])"
)


def without_control_tokens(text: str) -> str:
    """Return a text with a blank inside everything that looks like a control token of a model.

    ``<|im_end|>`` becomes ``< |im_end|>``, and ``[INST]`` becomes ``[ INST]``. The function takes
    time linear in the length of the text, and does not change its own result.
    """
    return _CONTROL.sub(r"\g<0> ", text)
