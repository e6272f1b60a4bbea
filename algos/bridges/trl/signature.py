"""Converts a tool to a Python function from which transformers can generate a JSON schema.

``transformers.utils.get_json_schema`` reads the signature, the type hints and a Google docstring.
All three are generated from the pydantic model of the tool.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from visenv.tools import Arguments, Tool


def method_of(tool: Tool[Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method with the signature of the tool that accepts any arguments.

    The environment refuses invalid arguments with its own message. If Python checked the signature,
    the message would be that of Python.

    Args:
        tool: The tool, with its name, description and arguments.
        call: The function that the method calls: ``call(self, name, arguments)``.
    """

    def method(self: Any, /, **arguments: Any) -> Any:
        return call(self, tool.name, arguments)

    model: type[Arguments] = tool.arguments
    hints = {name: plain(field.annotation) for name, field in model.model_fields.items()}
    taken = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=hints[name],
            default=inspect.Parameter.empty if field.is_required() else field.get_default(),
        )
        for name, field in model.model_fields.items()
    ]
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = inspect.Signature([receiver, *taken])  # type: ignore[attr-defined]
    method.__annotations__ = hints
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = _docstring(tool.description, model)
    return method


def plain(annotation: Any) -> Any:
    """Return a type without the constraints of pydantic, also in nested types."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal:
        return annotation
    if origin is Annotated:
        return plain(inner[0])
    if origin in (Union, UnionType):
        return reduce(or_, [plain(each) for each in inner])
    return origin[tuple(plain(each) for each in inner)]


def _docstring(description: str, model: type[Arguments]) -> str:
    described = [
        f"    {name}: {' '.join((field.description or name).split())}"
        for name, field in model.model_fields.items()
    ]
    return "\n".join([description, "", "Args:", *described]) if described else description
