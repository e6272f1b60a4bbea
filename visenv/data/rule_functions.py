"""MM-IFEval's rule functions as our text checks: other names, and arguments by position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from visenv.data.judging import Check
from visenv.errors import DataError, UnknownNameError

_BOUNDS = ("lower_bound", "upper_bound")
_TIMES = ("keywords", "lower_bound_times", "upper_bound_times")

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "check_whether_response_paragraph_number_in_range": _BOUNDS,
    "check_whether_response_sentence_number_in_range": _BOUNDS,
    "check_whether_each_paragraph_sentence_number_in_range": _BOUNDS,
    "check_whether_each_paragraph_sentence_number_in_range_list": ("ranges",),
    "check_whether_response_word_count_in_range": _BOUNDS,
    "check_whether_each_paragraph_word_count_in_range": _BOUNDS,
    "check_whether_whole_response_not_contain_certain_substrings": ("substrings",),
    "check_whether_whole_response_not_contain_certain_substring": ("substring",),
    "check_whether_each_sentence_begin_with_certain_substring": ("substring",),
    "check_whether_each_paragraph_begin_with_certain_substring": ("substring",),
    "check_whether_each_paragraph_end_with_certain_substring": ("substring",),
    "check_whether_each_sentence_end_with_certain_substring": ("substring",),
    "check_whether_whole_response_begin_with_certain_substring": ("substring",),
    "check_whether_whole_response_end_with_certain_substring": ("substring",),
    "check_whether_each_keyword_in_list_mentioned_in_range": _TIMES,
    "check_whether_total_keyword_in_list_mentioned_in_range": _TIMES,
    "check_percentage_number_precision_in_response": ("precision",),
    "check_number_precision_in_response": ("precision",),
    "check_whether_has_no_arabic_number_in_response": (),
}
"""Parameters of each check in the order in which the data set gives them, the response left out."""


def check_of(function: Any) -> Check:
    """The check that an entry of ``verify_funcs`` stands for.

    Args:
        function: ``{"func": name, "params": [...]}``; the name may be spelled ``…_metioned_…``, as
            in MM-IFEngine, and the parameters may be a mapping.

    Raises:
        DataError: If there is no such function, or the parameters do not fit it.
    """
    if not isinstance(function, Mapping):
        raise DataError(f"a rule function must be an object, got {function!r:.200}")
    name = str(function.get("func")).replace("_metioned_", "_mentioned_")
    if name not in PARAMETERS:
        raise DataError(str(UnknownNameError("rule function", name, PARAMETERS)))
    names, given = PARAMETERS[name], function.get("params") or []
    if isinstance(given, Mapping) and set(given) == set(names):
        return Check(name, {each: given[each] for each in names})
    if not isinstance(given, list) or len(given) != len(names):
        raise DataError(f"{name} takes {', '.join(names) or 'nothing'}, got {given!r:.200}")
    return Check(name, dict(zip(names, given, strict=True)))


def checks_of(constraint: Mapping[str, Any]) -> list[list[Any]]:
    """The checks that decide a constraint, as ``[name, arguments]`` each.

    Empty where a language model judges it (``judge.method`` is not ``"rule_based"``).

    Raises:
        DataError: If a rule function is unknown or its parameters do not fit.
    """
    judge = constraint.get("judge")
    if not isinstance(judge, Mapping) or judge.get("method") != "rule_based":
        return []
    functions = judge.get("verify_funcs")
    if not isinstance(functions, list) or not functions:
        raise DataError(f"rule_based without verify_funcs: {functions!r:.200}")
    return [list(check_of(function)) for function in functions]
