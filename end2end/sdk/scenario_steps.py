"""The steps of the scenarios: calls to a library with fixed ids, the same for all of them.

The calls are data. So a language needs only one driver per library (`drivers.py` says
how it gets them), and the stored events can be compared with the values that were
given to the library (`checks.py`)."""

import uuid
from datetime import datetime, timedelta, timezone

# --- calls -------------------------------------------------------------------


def client(**options):
    """A new client; the previous ones have been shut down."""
    return {"call": "client", "options": options}


def capture(event, distinct_id=None, properties=None, **more):
    return {
        "call": "capture", "event": event, "distinct_id": distinct_id,
        "properties": properties or {}, **more,
    }


def identify(distinct_id, properties):
    return {"call": "identify", "distinct_id": distinct_id, "set": properties}


def set_once(distinct_id, properties):
    return {"call": "set_once", "distinct_id": distinct_id, "set_once": properties}


def alias(previous, main):
    return {"call": "alias", "previous": previous, "main": main}


def group(group_type, key, properties):
    return {"call": "group", "group_type": group_type, "key": key, "set": properties}


FLUSH = {"call": "flush"}
SHUTDOWN = {"call": "shutdown"}
# Waits until the library has given up a batch.
GIVEN_UP = {"call": "given_up"}


def pause(why):
    """The driver says why, and waits until the harness resumes it."""
    return {"call": "pause", "why": why}


# The service fails from here on: before the next call, or while the calls before
# and after this one are still being sent.
FAULT = pause("fault")
WHILE_SENDING = pause("while sending")
# Until all events so far have been acknowledged.
DELIVERED = pause("delivered")
# Until the service works again.
RECOVERED = pause("recovered")

# --- values ------------------------------------------------------------------

# One of each kind that JSON knows. The number is the largest whole one that
# JavaScript can count to.
EVERYTHING = {
    "invoice": "INV-2231",
    "amount": 120.5,
    "count": 2**53 - 1,
    "paid": True,
    "nothing": None,
    "words": 'naïve — 東京 🏔 " \\ </script>',
    "nested": {"list": [1, 2.5, "three", {"four": []}]},
}
# For libraries that can count further.
BEYOND = {"exact": 2**53 + 1}

WHEN = datetime(2026, 6, 1, 10, 10, 0, 118_000, timezone.utc)
IMPORT_BEGINS = datetime(2024, 4, 2, 12, tzinfo=timezone.utc)
IMPORTED = 120
STEPS = 250
QUEUED = 1000
# In each of the three scenarios with faults.
QUEUED_WITH_FAULTS = 400

TICKERS = ["ticker-1", "ticker-2", "ticker-3"]


def stable(name):
    """The uuid that an event of the scenario always has."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"weir/{name}"))


def import_time(n):
    return IMPORT_BEGINS + timedelta(minutes=n)


# --- scenarios ---------------------------------------------------------------


def server(library, faults=False, **options):
    """A library that runs on a server: its events are about many people.

    With `faults` the service fails three times: while persons and groups are sent, in
    a long queue, and in an import."""
    # Where shutting down gives up failed batches, it must not come too early.
    end = [SHUTDOWN]
    if faults and not library.waits_at_shutdown:
        end = [FLUSH, DELIVERED, SHUTDOWN]
    queued = QUEUED_WITH_FAULTS if faults else QUEUED
    half = queued // 2
    everything = EVERYTHING | (BEYOND if library.counts_exactly else {})
    imported = [
        capture(
            "imported", f"past-{n % 3}", {"n": n}, uuid=stable(f"import/{n}"),
            timestamp=import_time(n).isoformat(),
        )
        for n in range(IMPORTED)
    ]
    queue = [
        capture("queued", f"queuer-{n % 5}", {"n": n, "text": "x" * 200}) for n in range(queued)
    ]
    return [
        client(**options),
        capture("visited", "anon-1", {"page": "/pricing", "$set": {"source": "ad", "seats": 1}}),
        *([FLUSH, FAULT] if faults else []),
        identify("user-1", {"email": "kei@mail.example", "seats": 3}),
        alias("anon-1", "user-1"),
        identify("user-2", {"email": "ines@mail.example", "seats": 3}),
        identify("user-2", {"seats": 4}),
        set_once("user-2", {"plan_at_start": "free"}),
        set_once("user-2", {"plan_at_start": "paid"}),
        group("company", "acme", {"name": "Acme", "seats": 10}),
        group("company", "acme", {"seats": 12, "city": "Berlin"}),
        capture("order placed", "user-1", {"total": 19.5}, groups={"company": "acme"}),
        capture(
            "invoice issued", "user-1", everything, uuid=stable("invoice"),
            timestamp=WHEN.isoformat(),
        ),
        capture("heartbeat", "ghost-1", {"$process_person_profile": False}),
        *([capture("ping")] if library.makes_ids else []),
        *(capture("step", "walker-1", {"n": n}) for n in range(STEPS)),
        FLUSH,
        *end,
        # The form of the body that is not the library's default.
        client(gzip=not library.compresses, **options),
        *queue[:half],
        *([WHILE_SENDING] if faults else []),
        *queue[half:],
        *end,
        client(historical=True, **options),
        *([FAULT] if faults else []),
        *imported,
        *end,
        # An import that is run twice.
        client(historical=True, **options),
        *imported,
        SHUTDOWN,
        # Shutting down alone sends the remaining events.
        client(**options),
        capture("last words", "user-1"),
        SHUTDOWN,
        client(key="phc_unknown", **options),
        capture("lost", "user-1"),
        SHUTDOWN,
    ]


# Counted from zero, in the order of the scenario.
CLIENT_WITH_WRONG_KEY = 5

# The library accepts a hundred events of a page immediately, and then ten a second.
PAGE_STEPS = 15
PAGE_QUEUED = 60


def browser(faults=False):
    """A library in a page: its events are about one visitor, who is identified.

    With `faults` the service fails during that. A page that is left tries only once, so
    leaving comes later."""
    return [
        client(distinct_id="anon-1"),
        capture("visited", properties={"page": "/pricing"}),
        *([FAULT] if faults else []),
        identify("user-1", {"email": "kei@mail.example", "seats": 3})
        | {"set_once": {"plan_at_start": "free"}},
        {"call": "alias", "alias": "other-1"},
        group("company", "acme", {"name": "Acme", "seats": 10}),
        group("company", "acme", {"seats": 12, "city": "Berlin"}),
        capture("order placed", properties={"total": 19.5}),
        capture("invoice issued", properties=EVERYTHING, timestamp=WHEN.isoformat()),
        {"call": "click", "selector": "#buy"},
        *(capture("step", properties={"n": n}) for n in range(PAGE_STEPS)),
        *(
            capture("queued", properties={"n": n, "text": "x" * 200})
            for n in range(PAGE_QUEUED)
        ),
        # Queued events are sent in the usual way before.
        DELIVERED,
        {"call": "reload"},
        capture("after reload"),
        capture("leaving"),
        {"call": "leave"},
    ]


def stream(pause, **options):
    """A stream of events, until the harness ends it."""
    return [
        client(**options),
        {"call": "stream", "event": "tick", "distinct_ids": TICKERS, "pause": pause},
        SHUTDOWN,
    ]


def changed(library):
    """A few events, of which a transformation changes one and drops one."""
    # A page has one visitor.
    who = None if library.browser else "user-1"
    begins = client(distinct_id="user-1") if library.browser else client()
    return [
        begins,
        capture("noise", who, {"loud": 9}),
        capture("order placed", who, EVERYTHING | {"total": 19.5}),
        *([] if library.browser else [FLUSH, SHUTDOWN]),
    ]


def features(library):
    """Everything that a library asks for and the service does not offer."""
    page = client(distinct_id="user-1", experiments=True)
    begins = page if library.browser else client(secret="phx_ended")
    return [begins, {"call": "features"}, SHUTDOWN]


# Events of each part of a scenario in which the library gives up events.
FEW = 5


def few(event, distinct_id="user-1"):
    return [capture(event, distinct_id, {"n": n}) for n in range(FEW)]


def given_up():
    """Some events while the service fails for longer than the library tries."""
    return [
        client(), *few("before"), FLUSH, FAULT, *few("during"), FLUSH, GIVEN_UP, RECOVERED,
        *few("after"), SHUTDOWN,
    ]


def ended():
    """The library is shut down while the service fails."""
    return [
        client(), *few("before"), FLUSH, FAULT, *few("during"), SHUTDOWN, RECOVERED,
        client(), *few("after"), SHUTDOWN,
    ]


def left():
    """A page is left while the service fails."""
    return [
        client(distinct_id="user-1"), *few("before"), DELIVERED, FAULT, *few("during"),
        {"call": "leave"},
    ]


def page_given_up(tries):
    """A page stays while the service fails for longer than the library tries."""
    return [
        client(distinct_id="user-1"), *few("before"), DELIVERED, FAULT, *few("during"),
        {"call": "given_up", "tries": tries}, RECOVERED, *few("after"), {"call": "leave"},
    ]


# How many events a call makes.
EVENTS = {"capture": 1, "identify": 1, "set_once": 1, "alias": 1, "group": 1, "click": 1}
