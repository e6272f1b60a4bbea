"""Tests environments: their contract as tests (`contract`), and a toy to try things on."""

from visenv.testing.contract import EnvContract, check_all

__all__ = ["EnvContract", "check_all"]
