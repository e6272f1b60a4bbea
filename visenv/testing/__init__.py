"""Tests environments against their contract (`contract`), and provides a toy environment."""

from visenv.testing.contract import EnvContract, check_all

__all__ = ["EnvContract", "check_all"]
