"""Defines the table of LIBERO in the Argos paper (§5.4, table 5)."""

from __future__ import annotations

from visenv.evaluation.suite import Suite, SuiteColumn

LIBERO = Suite(
    "LIBERO (Argos, table 5)",
    (
        SuiteColumn("Object", "visenv/Libero-v0", "libero_object"),
        SuiteColumn("Spatial", "visenv/Libero-v0", "libero_spatial"),
        SuiteColumn("Goal", "visenv/Libero-v0", "libero_goal"),
        SuiteColumn("Long", "visenv/Libero-v0", "libero_10"),
        SuiteColumn("90", "visenv/Libero-v0", "libero_90", {"states": 20}),
    ),
    metric="success",
)
"""Table 5. As in the paper, each of the 50 stored initial states of a task is a trial; in LIBERO-90
only the first 20 are. The paper trains a separate policy for LIBERO-90."""
