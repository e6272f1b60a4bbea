"""Makes the faults of processes and signals happen, and prints a table of their outcomes.

``python -m tests.faults.processes.table [PART OF A NAME ...]`` runs the faults whose label contains
one of the words, by default all, and exits with 1 if an outcome is not the expected one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.faults.processes.catalog import ENDS, SAME, SENTENCE, STOPS, Fault, faults
from tests.faults.processes.job import Job, run

_KNOWN = {0: SAME, 1: SENTENCE, 130: STOPS}


def outcome(fault: Fault, folder: Path, weights: str) -> tuple[str, str]:
    """Make a fault happen; return what the run does, and its last line.

    Args:
        fault: The fault.
        folder: An empty folder.
        weights: The weights of a run without a fault.
    """
    act = None if fault.act is None else partial(fault.act, folder)
    ended = run(folder, fault.job, act)
    lines = ended.said.strip().splitlines() or [""]
    # The log contains the traceback of an environment that failed and was replaced.
    own = ended.said.partition("An environment failed and is replaced.")[0]
    has_sentence = lines[-1].startswith("visenv: ") and "Traceback (most" not in own
    if ended.status is None:
        return "hangs", lines[-1]
    if not _happened(fault, folder):
        return "the fault did not happen", lines[-1]
    if ended.status == 0:
        return (SAME if ended.weights == weights else "other weights"), lines[-1]
    found = _KNOWN.get(ended.status, ENDS) if has_sentence else ENDS
    if found == ENDS:
        lines[-1] = f"(exit status {ended.status})"
    resumed = run(folder, Job(fault.job.executor, evaluated=fault.job.evaluated))
    if resumed.status != 0:
        return f"{found}; resuming fails", resumed.said.strip().splitlines()[-1]
    return (found if resumed.weights == weights else f"{found}; resumed: other weights"), lines[-1]


def _happened(fault: Fault, folder: Path) -> bool:
    """Return whether the mark of the fault exists; a fault of an output has none."""
    marks = [*folder.glob("fault-*"), *folder.glob("signal"), *folder.glob("making")]
    return bool(marks) or not (fault.job.fault or fault.job.signal or fault.job.clocks)


def make_table(chosen: Sequence[Fault]) -> bool:
    """Print a table of faults; return whether all outcomes are the expected ones."""
    import torch._dynamo  # noqa: F401  otherwise the first optimizer step loads it in every fork

    import tests.algos.toy  # noqa: F401  forks have it too
    import visenv.cli  # noqa: F401

    is_right = True
    with tempfile.TemporaryDirectory(prefix="visenv-faults-") as parent:
        weights = run(Path(parent, "without"), Job()).weights
        print("| kind | fault | executor | outcome | last line |\n|---|---|---|---|---|")
        for number, fault in enumerate(chosen):
            found, said = outcome(fault, Path(parent, str(number)), weights)
            is_right &= found == fault.outcome and bool(weights)
            mark = "" if found == fault.outcome else f" **expected: {fault.outcome}**"
            said = said.replace(parent, "").replace("|", "/")[:120]
            print(
                f"| {fault.kind} | {fault.name} | {fault.job.executor} | {found}{mark} | {said} |",
                flush=True,
            )
    print(f"\n{len(chosen)} faults; " + ("all as expected" if is_right else "NOT as expected"))
    return is_right


def main(words: Sequence[str]) -> int:
    """Run the faults whose label contains one of the words; return the exit status."""
    every = faults()
    chosen = [each for label, each in every.items() if not words or any(w in label for w in words)]
    return 0 if chosen and make_table(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
