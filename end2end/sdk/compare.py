"""Comparing stored events with sent ones, field by field."""

import json
from collections import Counter
from datetime import datetime, timedelta, timezone

# The event time is corrected by the way that the request took.
WAY = timedelta(seconds=10)
# The way of a request that was sent again for as long as the service failed.
LATE = timedelta(seconds=45)
# A whole run, and the clock of the service is that of the test.
RUN = timedelta(minutes=10)


def same(what, found, expected):
    """`expected` may name fewer fields than there are."""
    assert isinstance(found, dict), f"{what}: {found!r}"
    wrong = [
        f"{what}.{name}: expected {value!r}, stored {found.get(name, 'nothing')!r}"
        for name, value in expected.items()
        if name not in found or text(found[name]) != text(value)
    ]
    assert not wrong, "\n".join(wrong)


def equal(what, found, expected):
    assert text(found) == text(expected), (
        f"{what}: expected {short(expected)}, found {short(found)}"
    )


def text(value):
    """Equal for equal JSON; True is not 1."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def near(what, found, expected, within=WAY):
    time = datetime.fromisoformat(found.replace("Z", "+00:00"))
    assert abs(time - expected) < within, f"{what}: expected about {expected}, stored {found}"


def recent(what, found):
    near(what, found, datetime.now(timezone.utc), RUN)


def once_each(what, found, count):
    """That `found` holds every number below `count` once."""
    times = Counter(found)
    missing = [n for n in range(count) if n not in times]
    again = {n: number for n, number in times.items() if number > 1}
    strange = [n for n in times if n not in range(count)]
    assert not (missing or again or strange), (
        f"{what}: of {count}, missing {few(missing)}, more than once {few(again)}, "
        f"unknown {few(strange)}"
    )


def short(value):
    """The beginning of a long value, for a message."""
    shown = repr(value)
    return f"{shown[:200]}…" if len(shown) > 200 else shown


def few(values):
    """The first of many, for a message."""
    shown = list(values.items() if isinstance(values, dict) else values)
    return f"{shown[:8]} and {len(shown) - 8} more" if len(shown) > 8 else f"{shown}"
