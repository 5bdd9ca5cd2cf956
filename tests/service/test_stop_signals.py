"""A signal that arrives twice counts once; a second one later stops at once."""

from yunikorn_service.stop_signals import ECHO, StopSignals


def test_duplicate_delivery_of_a_signal_counts_once() -> None:
    time = [100.0]
    signals = StopSignals(lambda: time[0])
    assert not signals.is_repeated
    assert signals.asks()
    time[0] += ECHO / 10
    assert not signals.asks()
    assert not signals.is_repeated


def test_second_signal_stops_immediately() -> None:
    time = [100.0]
    signals = StopSignals(lambda: time[0])
    signals.asks()
    time[0] += ECHO
    assert not signals.asks()
    assert signals.is_repeated
