"""Tests seeds: fixed by their stream, independent of each other, below 64 bits."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from visenv.seeding import seeds


def test_stream_gives_the_same_seeds_in_every_release() -> None:
    # NumPy guarantees the words of a stream: 15793235383387715774 and 12390638538380655177 for
    # SeedSequence(0). The seeds are half of each, rounded down.
    assert seeds(np.random.SeedSequence(0), 2) == [7896617691693857887, 6195319269190327588]


@given(st.integers(0, 2**64), st.integers(0, 40))
def test_seeds_are_plain_and_fit_a_signed_64_bit_integer(entropy: int, count: int) -> None:
    drawn = seeds(np.random.SeedSequence(entropy), count)
    assert len(set(drawn)) == count
    assert all(type(seed) is int and 0 <= seed < 2**63 for seed in drawn)
    assert json.loads(json.dumps(drawn)) == drawn


def test_seeds_of_a_longer_stream_begin_with_the_shorter() -> None:
    stream = np.random.SeedSequence(7)
    assert seeds(stream, 9)[:4] == seeds(stream, 4)


def test_neighboring_streams_share_no_seed() -> None:
    drawn = [seed for entropy in range(50) for seed in seeds(np.random.SeedSequence(entropy), 50)]
    assert len(set(drawn)) == 2500
