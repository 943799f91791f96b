"""The log says what is wrong, and does not drown it in itself."""

import logging

from mcpproxy.cli.logs import AGAIN_SECONDS, FEW, NotForEver


def said(seconds: list[float], text: str = "the database is away", level: int = logging.WARNING) -> list[float]:
    """The moments at which a line that comes at these moments is let through."""
    patience = NotForEver()
    passed = []
    for moment in seconds:
        record = logging.LogRecord("mcpproxy", level, __file__, 1, text, None, None)
        record.created = moment
        if patience.filter(record):
            passed.append(moment)
    return passed


def test_what_is_wrong_for_long_is_said_a_few_times_and_then_once_a_minute() -> None:
    every_second = [float(second) for second in range(600)]
    passed = said(every_second)
    assert passed[:FEW] == every_second[:FEW]
    assert [after - before for before, after in zip(passed[FEW - 1 :], passed[FEW:], strict=False)] == [
        AGAIN_SECONDS
    ] * 9


def test_what_is_no_trouble_is_always_said() -> None:
    every_second = [float(second) for second in range(100)]
    assert said(every_second, level=logging.INFO) == every_second


def test_one_trouble_does_not_silence_another() -> None:
    patience = NotForEver()
    for number in range(100):
        for text in ("the database is away", f"server {number} is down"):
            record = logging.LogRecord("mcpproxy", logging.WARNING, __file__, 1, text, None, None)
            assert patience.filter(record) or text == "the database is away"
