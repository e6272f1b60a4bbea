"""Renders chat templates with Jinja, in a child process.

A template is a program of the author of a model. Jinja's sandbox keeps it from Python's objects,
but ``{{ 'a' * 9999999999 }}`` fills the memory, also if a template is only compiled.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from .target import Arrays, ContentError, DecoderTarget

if TYPE_CHECKING:
    import jinja2

_KEPT = 8

Reply = tuple[dict[str, Any], dict[str, Any]]


class TemplateTarget(DecoderTarget):
    """Keeps the templates that were used last compiled."""

    def start(self, options: Any) -> None:
        """Import Jinja, and make an environment as transformers does."""
        self._environment = _environment()
        self._compiled: OrderedDict[str, jinja2.Template] = OrderedDict()

    def render(self, request: Any, arrays: Arrays) -> Reply:
        """Return the array ``text`` in UTF-8.

        The request has ``key``, ``template``, ``variables`` and ``most``, the most characters.
        """
        try:
            text = self._template(request).render(**request["variables"])
        except MemoryError:
            raise
        except Exception as error:  # a template can raise any error
            raise ContentError(str(error) or type(error).__name__) from error
        if len(text) > request["most"]:
            raise ContentError(
                f"its text has {len(text):,} characters, at most {request['most']:,} are rendered"
            )
        return {}, {"text": memoryview(text.encode("utf-8", "surrogatepass"))}

    def _template(self, request: Any) -> jinja2.Template:
        key = request["key"]
        if key not in self._compiled:
            self._compiled[key] = self._environment.from_string(request["template"])
            while len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return self._compiled[key]


def _environment() -> jinja2.Environment:
    """Return an environment with the settings and functions that transformers documents."""
    import jinja2.ext
    import jinja2.nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(jinja2.ext.Extension):
        """Renders the body of ``{% generation %}``, which marks the text of the model."""

        tags = {"generation"}  # noqa: RUF012

        @override
        def parse(self, parser: Any) -> jinja2.nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.Scope(body).set_lineno(line)

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)  # noqa: DTZ005
    return environment
