"""Describes what happened after a fault, and prints the table of `docs/faults.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

SAME = "same result"
"""The run continues, and its results are those of a run without a fault."""

REFUSED = "refused, file named"
"""The command ends with one sentence that names the file; nothing was changed."""

ENDED = "ended, file named; resumed with the same result"
"""The run ends with one sentence that names the file, and resumes when the fault is over."""

SHOWN = "shown, file named"
"""The command shows what can be read, and names the file."""

UNUSED = "not read"
"""A file that the command does not read keeps its damage; the results are those without a fault."""

_MOST_NAMES = 12

GOOD = (SAME, REFUSED, ENDED, SHOWN, UNUSED)


@dataclass(frozen=True)
class Outcome:
    """Describes what happened after a fault.

    Attributes:
        kind: What the fault hit, for example ``"results.json"``.
        fault: The fault, for example ``"half of the file"``.
        result: One of `GOOD`, or what is wrong.
        said: The error or the warning, or ``""``.
    """

    kind: str
    fault: str
    result: str
    said: str = ""

    def ended(self, result: str) -> Outcome:
        """Return the same fault with another result."""
        return replace(self, result=result)


def table(outcomes: Iterable[Outcome]) -> str:
    """Return a table in Markdown with a row for each kind and result, and the counts of results."""
    faults: dict[str, dict[str, list[str]]] = {}
    counts: Counter[str] = Counter()
    for each in outcomes:
        faults.setdefault(each.kind, {}).setdefault(each.result, []).append(each.fault)
        counts[each.result] += 1
    rows = [
        f"| {kind} | {_listed(names)} | {result} |"
        for kind, results in faults.items()
        for result, names in results.items()
    ]
    listed = ", ".join(f"{count} {result}" for result, count in counts.most_common())
    head = ["| what the fault hits | fault | what happens |", "|---|---|---|"]
    return "\n".join([*head, *rows, "", f"{counts.total()} faults: {listed}.", ""])


def _listed(names: list[str]) -> str:
    """Return names as a list, of which long ones are shortened."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{names[0]}, …, {names[-1]} ({len(names)} faults)"
