"""Tests delayed Ctrl-C and SIGTERM: no signal is lost, and the previous handlers are restored."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from visenv.algos.trainer.interrupt import (
    collected_interrupts,
    stop_signals_interrupt,
    uninterrupted,
)


def test_interrupt_waits_for_the_end_of_the_block() -> None:
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the test checks where it is raised
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("the rest of the block")
        done.append("what comes after it")
    assert done == ["the rest of the block"]
    assert signal.getsignal(signal.SIGINT) is before


def test_error_in_the_block_comes_first_and_restores_the_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="mine"), uninterrupted():
        raise ValueError("mine")
    assert signal.getsignal(signal.SIGINT) is before


def test_uninterrupted_holds_nothing_back_in_other_threads() -> None:
    done: list[bool] = []

    def work() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


@pytest.mark.parametrize("on_ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
def test_stop_signals_interrupt_also_where_ctrl_c_is_ignored(on_ctrl_c: Any) -> None:
    before = signal.getsignal(signal.SIGTERM)
    of_ctrl_c = signal.signal(signal.SIGINT, on_ctrl_c)
    try:
        with pytest.raises(KeyboardInterrupt), stop_signals_interrupt():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGINT, of_ctrl_c)
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_waits_for_the_end_of_the_block_too() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), stop_signals_interrupt():  # noqa: PT012 - as above
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            done.append("the rest of the block")
        done.append("what comes after it")
    assert done == ["the rest of the block"]


def test_collected_interrupts_raise_nothing_and_restore_the_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    with collected_interrupts() as received:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert received == [signal.SIGINT] * 2
    assert signal.getsignal(signal.SIGINT) is before
