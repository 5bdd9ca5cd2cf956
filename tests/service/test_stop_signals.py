"""A signal that arrives twice counts once; a second one later stops at once."""

from yunikorn.service.stop_signals import ECHO, StopSignals


def test_one_signal_that_arrives_twice_is_one() -> None:
    time = [100.0]
    signals = StopSignals(lambda: time[0])
    assert not signals.insists
    assert signals.asks()
    time[0] += ECHO / 10
    assert not signals.asks()
    assert not signals.insists


def test_a_second_one_later_means_at_once() -> None:
    time = [100.0]
    signals = StopSignals(lambda: time[0])
    signals.asks()
    time[0] += ECHO
    assert not signals.asks()
    assert signals.insists
