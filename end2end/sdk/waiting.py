"""Waiting for conditions, always with a deadline. No other code of the harness sleeps,
unless `xtask/tests/rules/waiting.rs` names it with a reason. Needs no other module."""

import time

# Until events have arrived, also those of a page that was refused.
PATIENCE = 60


def wait_for(condition, patience):
    """Whether it came true within so many seconds; asks ever more seldom, because
    the asking of all scenarios together is more work for the service than all events."""
    deadline = time.monotonic() + patience
    pause = 0.1
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 1.0)
    return True


def until(condition):
    """Waits. The checks of the stored events report what is missing in the end."""
    wait_for(condition, PATIENCE)
