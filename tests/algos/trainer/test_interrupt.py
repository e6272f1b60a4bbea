"""Ctrl-C that waits, and is neither lost nor left in force."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from visenv.algos.trainer.interrupt import uninterrupted


def test_it_waits_for_the_end_of_the_block() -> None:
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - what is tested is where it is raised
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("the rest of the block")
        done.append("what comes after it")
    assert done == ["the rest of the block"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_in_the_block_comes_first_and_restores_the_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="mine"), uninterrupted():
        raise ValueError("mine")
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_hold_nothing_back() -> None:
    done: list[bool] = []

    def work() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
