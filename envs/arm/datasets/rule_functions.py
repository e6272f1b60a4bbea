"""Converts MM-IFEval's rule functions to our text checks: one spelling, positional arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from visenv.checks import find_check
from visenv.errors import DataError, UnknownNameError
from visenv.tools.base import complaint

from ..ground_truth import ConstraintCheck


def check_of(function: Any) -> ConstraintCheck:
    """Return the check for an entry of ``verify_funcs``.

    Args:
        function: ``{"func": name, "params": [...]}``; the name may contain the misspelling
            ``…_metioned_…`` of MM-IFEngine, and the parameters may be given by name.

    Raises:
        DataError: If there is no such check, or the parameters do not match it.
    """
    if not isinstance(function, Mapping):
        raise DataError(f"a rule function must be an object, got {function!r:.200}")
    try:
        check = find_check(str(function.get("func")))
    except UnknownNameError as error:
        raise DataError(f"unknown rule function: {error}") from error
    names, given = list(check.arguments.model_fields), function.get("params") or []
    if isinstance(given, list):
        if len(given) != len(names):
            raise DataError(
                f"{check.name} takes {', '.join(names) or 'nothing'}, got {given!r:.200}"
            )
        given = dict(zip(names, given, strict=True))
    try:
        arguments = check.arguments.model_validate(given)
    except ValidationError as error:
        raise DataError(complaint(check.name, check.arguments, error)) from error
    return ConstraintCheck(name=check.name, arguments=arguments.model_dump())


def checks_of(constraint: Mapping[str, Any]) -> list[ConstraintCheck]:
    """Return the checks that decide a constraint.

    The list is empty if a language model judges it (``judge.method`` is not ``"rule_based"``).

    Raises:
        DataError: If a rule function is unknown or its parameters do not match.
    """
    judge = constraint.get("judge")
    if not isinstance(judge, Mapping) or judge.get("method") != "rule_based":
        return []
    functions = judge.get("verify_funcs")
    if not isinstance(functions, list) or not functions:
        raise DataError(f"rule_based without verify_funcs: {functions!r:.200}")
    return [check_of(function) for function in functions]
