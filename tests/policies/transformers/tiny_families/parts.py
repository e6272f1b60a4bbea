"""Provides what the tiny checkpoints share: chat templates, tokenizers and sizes."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import transformers as t
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CHATML = (
    "{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\n' -}}"
    "{%- for part in message.content -%}{%- if part.type == 'image' -%}{{- 'IMAGE' -}}"
    "{%- else -%}{{- part.text -}}{%- endif -%}{%- endfor -%}{{- '<|im_end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
"""A template of the kind of Qwen; IMAGE is the placeholder."""

CHATML_WITH_VIDEO = CHATML.replace(
    "{%- else -%}", "{%- elif part.type == 'video' -%}{{- 'VIDEO' -}}{%- else -%}"
)
"""The same for images and videos; VIDEO is the placeholder of a video."""

GEMMA = (
    "{{- '<bos>' -}}{%- if messages[0].role == 'system' -%}"
    "{%- set before = messages[0].content[0].text + '\n\n' -%}{%- set rest = messages[1:] -%}"
    "{%- else -%}{%- set before = '' -%}{%- set rest = messages -%}{%- endif -%}"
    "{%- for message in rest -%}"
    "{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{- raise_exception('roles must alternate') -}}{%- endif -%}"
    "{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' -}}"
    "{%- if loop.first -%}{{- before -}}{%- endif -%}"
    "{%- for part in message.content -%}{%- if part.type == 'image' -%}{{- '<start_of_image>' -}}"
    "{%- else -%}{{- part.text | trim -}}{%- endif -%}{%- endfor -%}{{- '<end_of_turn>\n' -}}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}"
)
"""A template of the kind of Gemma: strict roles, stripped texts, the system text in the user's."""

SMOL = (
    "{{- '<|im_start|>' -}}{%- for message in messages -%}{{- message.role | capitalize -}}"
    "{{- ':' if message.content[0].type == 'image' else ': ' -}}"
    "{%- for part in message.content -%}{%- if part.type == 'image' -%}{{- '<image>' -}}"
    "{%- else -%}{{- part.text -}}{%- endif -%}{%- endfor -%}{{- '<end_of_utterance>\n' -}}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}"
)
"""A template of the kind of Idefics3: a prompt lacks the blank with which a turn begins."""

SIZES: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 32, "max_position_embeddings": 2048,
}  # fmt: skip
"""Sizes of a tiny language model: 32 is the smallest head size of vLLM's CPU build."""


def published(name: str) -> str:
    """Return a chat template of a published model, which TRL contains."""
    trl = find_spec("trl")
    assert trl is not None
    assert trl.origin is not None
    return (Path(trl.origin).parent / "chat_templates" / f"{name}.jinja").read_text()


def byte_level(control: Sequence[str], named: Mapping[str, str]) -> Any:
    """Return a byte-level tokenizer with these control tokens, some of which have names."""
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=260, initial_alphabet=alphabet, show_progress=False)
    built.train_from_iterator(["hello"], trainer)
    return _with_control(built, control, named)


def large_byte_level(control: Sequence[str], named: Mapping[str, str]) -> Any:
    """Return a byte-level tokenizer with 150,000 tokens of one, two and four bytes.

    The control tokens are further tokens.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [(one, other) for one in alphabet for other in alphabet]
    lowercase = ["".join(pair) for pair in product(string.ascii_lowercase, repeat=2)]
    quads = [(one, other) for one in lowercase for other in lowercase]
    merges = [*pairs, *quads[: 150_000 - len(alphabet) - len(pairs)]]
    pieces = [*alphabet, *(one + other for one, other in merges)]
    built = Tokenizer(models.BPE({piece: place for place, piece in enumerate(pieces)}, merges))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    return _with_control(built, control, named)


def _with_control(built: Tokenizer, control: Sequence[str], named: Mapping[str, str]) -> Any:
    """Return a tokenizer with these control tokens, some of which have names."""
    fast = t.PreTrainedTokenizerFast(
        tokenizer_object=built, eos_token="</s>", pad_token="</s>", extra_special_tokens=dict(named)
    )
    fast.add_tokens([t.AddedToken(text, special=True, normalized=False) for text in control])
    return fast


def text_config(kind: Any, rows: int, **others: Any) -> Any:
    """Return the configuration of a tiny language model."""
    return kind(**{**SIZES, "vocab_size": rows, "tie_word_embeddings": False, **others})


def rows_of(tokenizer: Any) -> int:
    """Return the rows of the embedding for a tokenizer: a multiple of 32."""
    return -(-len(tokenizer) // 32) * 32


def vision(side: int) -> dict[str, Any]:
    """Return the sizes of a tiny vision tower for square images."""
    return {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "image_size": side, "patch_size": 14,
    }  # fmt: skip
