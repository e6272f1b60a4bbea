"""Describes what happened after a fault, and prints the table of `docs/faults.md`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

SAME = "same result"
"""The run continues, and its results are those of a run without a fault."""

REFUSED = "refused, file named"
"""The command ends with one sentence that names the file; nothing was changed."""

UNUSED = "not read"
"""A file that no later step reads keeps its damage; the results are those without a fault."""

GOOD = (SAME, REFUSED, UNUSED)


@dataclass(frozen=True)
class Outcome:
    """Describes what happened after a fault.

    Attributes:
        kind: What the fault hit, for example ``"results.json"``.
        fault: The fault, for example ``"half"``.
        result: One of `GOOD`, or what is wrong.
        said: The error or the warning, or ``""``.
    """

    kind: str
    fault: str
    result: str
    said: str = ""


def table(outcomes: Iterable[Outcome]) -> str:
    """Return a table in Markdown with a row for each kind and result."""
    rows = ["| what the fault hits | fault | what happens |", "|---|---|---|"]
    by_kind = groupby(outcomes, lambda each: each.kind)
    for kind, some in by_kind:
        faults: dict[str, list[str]] = {}
        for each in some:
            faults.setdefault(each.result, []).append(each.fault)
        for result, names in faults.items():
            rows.append(f"| {kind} | {', '.join(names)} | {result} |")
    return "\n".join(rows) + "\n"
