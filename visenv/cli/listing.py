"""`visenv list`."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.registration import ALGORITHMS, DATA, ENVIRONMENTS, POLICIES


@dataclass(frozen=True)
class List:
    """List the environments, policies, algorithms and data sets."""

    def run(self) -> None:
        """Print them."""
        width = max(map(len, ENVIRONMENTS))
        print("environments")
        for name, entry in ENVIRONMENTS.items():
            print(f"  {name:{width}}  {entry.summary}")
        for title, names in (("policies", POLICIES), ("algorithms", ALGORITHMS), ("data", DATA)):
            print(f"{title}\n  {', '.join(names)}")
