"""How long a request waits for a pause."""

from remask.lsp_server.pace import BURST_FACTOR, FIRST_ENGINE_S, Pace


def typing(every_s: float, times: int = 10, engine_s: float | None = None) -> tuple[Pace, float]:
    pace = Pace()
    for number in range(times):
        pace.typed(number * every_s)
        if engine_s is not None:
            for _ in range(5):
                pace.answered(engine_s)
    return pace, (times - 1) * every_s


def test_the_first_letter_does_not_wait() -> None:
    assert Pace().delay(0.0, "x", 1.0) == 0.0
    pace, now = typing(0.1, times=1)
    assert pace.delay(now, "x", 1.0) == 0.0


def test_a_burst_waits_for_its_end_and_no_longer_than_half_an_answer() -> None:
    pace, now = typing(0.05)
    assert abs(pace.delay(now, "x", 1.0) - min(BURST_FACTOR * 0.05, FIRST_ENGINE_S / 2)) < 1e-6
    slow, now = typing(0.05, engine_s=3.0)
    assert abs(slow.delay(now, "x", 1.0) - BURST_FACTOR * 0.05) < 1e-6
    fast, now = typing(0.2, engine_s=0.01)
    assert fast.delay(now, "x", 1.0) < 0.01


def test_time_that_has_passed_is_waited_for_already() -> None:
    pace, now = typing(0.05, engine_s=3.0)
    assert pace.delay(now + 0.05, "x", 1.0) < pace.delay(now, "x", 1.0)
    assert pace.delay(now + 5.0, "x", 1.0) == 0.0


def test_a_pause_ends_a_burst_and_the_longest_wait_is_kept_to() -> None:
    pace, now = typing(0.05, engine_s=3.0)
    pace.typed(now + 10.0)
    assert pace.delay(now + 10.0, "x", 1.0) == 0.0
    slow, now = typing(0.5, engine_s=30.0)
    assert slow.delay(now, "x", 0.1) == 0.1


def test_where_a_completion_is_likely_it_waits_half_as_long() -> None:
    pace, now = typing(0.05, engine_s=3.0)
    assert pace.delay(now, "(", 1.0) == pace.delay(now, "x", 1.0) / 2


def test_a_clock_that_goes_back_is_no_burst() -> None:
    pace = Pace()
    pace.typed(5.0)
    pace.typed(1.0)
    assert pace.delay(1.0, "x", 1.0) == 0.0
