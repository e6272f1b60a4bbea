"""Lists the ids of all environments, for tests that run once for each."""

from __future__ import annotations

from visenv.registration import ENVIRONMENTS

IDS = [name for name in ENVIRONMENTS if name != "visenv/Libero-v0"]
"""All ids except Libero.

Its simulator takes a second where others take a millisecond, and 2 GiB. Libero has its own tests,
and the checks of the contract are run by hand for it (docs/libero.md).
"""
