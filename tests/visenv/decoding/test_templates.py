"""Tests chat templates: rendered as by transformers, and within limits."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from tests.environments import few
from visenv.child_process.host import ChildLimits
from visenv.decoding import templates
from visenv.decoding.decoder import DecoderProcess
from visenv.decoding.templates import render_chat_template
from visenv.errors import DataError

pytestmark = pytest.mark.component("jinja2")
ATTACK = pytest.mark.attack("decoders: a chat template cannot end or stop the process")

CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Hé \ud800 <|x|>"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "one\n"}]},
]


class Tokenizer:
    """Has the two attributes of a tokenizer that templates use."""

    special_tokens_map: ClassVar[dict[str, Any]] = {
        "bos_token": "<s>",
        "additional_special_tokens": ["<|a|>", "<|b|>"],
    }

    def __init__(self, template: Any) -> None:
        self.chat_template = template


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    limits = ChildLimits(call_s=120, memory_bytes=2**30, data_bytes=2**27, processor_s=1)
    decoder = DecoderProcess("jinja2", "visenv.decoding.child.template:TemplateTarget", limits)
    monkeypatch.setattr(templates, "JINJA", decoder)
    yield
    decoder.close()


SAME = {
    "messages": "{% for m in messages %}{{ m.role }}: {{ m.content | tojson }}\n{% endfor %}",
    "tokens": "{{ bos_token }}{{ additional_special_tokens[1] }}{{ messages | tojson(indent=2) }}",
    "prompt": "{%- if add_generation_prompt %}\n  A\n{%- else %}\n  B\n{%- endif %}\n",
    "loops": "{% for m in messages %}{% if loop.index == 2 %}{% continue %}{% endif %}{{ m.role }}"
    "{% if loop.last %}{% break %}{% endif %}{% endfor %}",
    "generation": "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
    "macros": "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ tools is none }}",
    "variables": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
    "{% endfor %}{{ ns.n }}{{ documents }}{{ undefined_name }}{{ strftime_now('%%') }}",
}


@pytest.mark.component("transformers")
@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("generate", [False, True])
def test_template_is_rendered_as_by_transformers(name: str, generate: bool) -> None:
    template = SAME[name]
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered: Any = render_jinja_template(
        [CONVERSATION],
        chat_template=template,
        add_generation_prompt=generate,
        **Tokenizer.special_tokens_map,
    )
    assert render_chat_template(Tokenizer(template), CONVERSATION, generate) == rendered[0][0]


def test_default_template_of_several_is_used() -> None:
    several = {"default": "yes", "tool_use": "no"}
    assert render_chat_template(Tokenizer(several), [], False) == "yes"
    for none in (None, {"tool_use": "no"}):
        with pytest.raises(DataError, match="has no default chat template"):
            render_chat_template(Tokenizer(none), [], False)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('no such role') }}", "rendered: no such role"),
        ("{{ 1 / 0 }}", "rendered: division by zero"),
        ("{{ ", "rendered: unexpected"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe|not safely callable"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "recursion"),
        ("x" * 1_000_001, "1,000,001 characters, at most 1,000,000"),
        ("{{ 'x' * 60000000 }}", "60,000,000 characters, at most 50,000,000 are rendered"),
    ],
)
@ATTACK
def test_template_that_fails_is_an_error_with_its_reason(template: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        render_chat_template(Tokenizer(template), CONVERSATION, True)
    assert render_chat_template(Tokenizer("fine"), CONVERSATION, True) == "fine"


BOMBS = {
    "product": "{{ 'a' * 9999999999 }}",
    "product of lists": "{{ ([0] * 9999999999) | length }}",
    "power": "{{ 2 ** 99999999999 }}",
    "power of a variable": "{% set x = messages | length %}{{ x ** 99999999999 }}",
    "center": "{{ 'a' | center(9999999999) }}",
    "method": "{{ 'a'.ljust(9999999999) }}",
    "indent": "{{ 'a' | indent(9999999999, true) }}",
    "format": "{{ '%9999999999d' % 1 }}",
    "format filter": "{{ '%9999999999d' | format(1) }}",
    "format method": "{{ '{:>9999999999}'.format(1) }}",
    "doubling": "{% set ns = namespace(x='aa') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "replace": "{% set x = 'a' * 100000 %}{{ x | replace('a', x) }}",
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "recursion": "{% macro m(n) %}{{ m(n + 1) }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
    "json": "{{ [[]] | tojson(indent=9999999999) }}",
    "batch": "{{ 'a' | batch(9999999999, 'b') | list | length }}",
    "only later": "{% if messages | length > 2 %}{{ 'a' * 9999999999 }}{% endif %}",
}


@ATTACK
@pytest.mark.parametrize("name", few([*BOMBS], 6))
def test_template_that_fills_memory_or_time_is_refused(name: str, small_limits: None) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=r"The chat template (cannot be|is not)"):
        render_chat_template(Tokenizer(BOMBS[name]), CONVERSATION, True)
    assert render_chat_template(Tokenizer("fine"), CONVERSATION, True) == "fine"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
