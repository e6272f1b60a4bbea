"""Tests signals that stop a run: none is lost, and the previous handlers are restored."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from visenv.algos.trainer.interrupt import (
    STOP_SIGNALS,
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


@pytest.fixture(params=STOP_SIGNALS, ids=lambda each: each.name)
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """Return a signal, and restore its handler afterwards."""
    given: signal.Signals = request.param
    before = signal.signal(given, signal.SIG_DFL)
    yield given
    signal.signal(given, before)


def test_each_stop_signal_interrupts_and_is_restored(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), stop_signals_interrupt():
        signal.raise_signal(number)
    assert signal.getsignal(number) == signal.SIG_DFL


def test_ignored_signals_stay_ignored(number: signal.Signals) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(number, signal.SIG_IGN)
    try:
        with stop_signals_interrupt(), uninterrupted(), collected_interrupts() as received:
            signal.raise_signal(number)
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert received == []
    assert signal.getsignal(number) == signal.SIG_IGN


def test_handlers_of_the_program_stay_except_that_of_sigterm(number: signal.Signals) -> None:
    received: list[int] = []
    signal.signal(number, lambda each, _: received.append(each))
    if number == signal.SIGTERM:
        with pytest.raises(KeyboardInterrupt), stop_signals_interrupt():
            signal.raise_signal(number)
        return
    with stop_signals_interrupt():
        signal.raise_signal(number)
    assert received == [number]


def test_ctrl_c_interrupts_a_block_that_collects_the_other_signals(number: signal.Signals) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with (  # noqa: PT012 - as above
            stop_signals_interrupt(),
            pytest.raises(KeyboardInterrupt),
            collected_interrupts(ctrl_c=False) as received,
        ):
            signal.raise_signal(number)
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert received == [number]
