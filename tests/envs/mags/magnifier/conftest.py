from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def smfanet_weights() -> Path:
    """Return the folder of the published weights of SMFANet."""
    return Path(os.environ["VISENV_SMFANET_WEIGHTS"])
