"""What is lost when the service fails for longer than a library tries, which is the
library's own choice: exactly the events that were never acknowledged, of the part
of the story that is told then. `libraries.py` says how long each one tries, and
where its source says so."""

import scenario_steps
from compare import equal
from scenarios import until
from reporting import Told

FOR_EVER = 3600


def tell(weir, library, what, calls, refuses):
    """Tells such a story: gives the story, what was sent, and what is stored, of
    which nothing that was acknowledged is missing."""
    with Told(weir, library, what, calls) as told:
        gateway = told.gateway
        while why := told.next():
            well = why == scenario_steps.WELL["why"]
            if refuses:
                gateway.refuse(0 if well else FOR_EVER)
            elif well:
                gateway.back()
            else:
                gateway.away()
            told.go_on()
        if library.browser:
            # The last beacon is on its way when the page has been left.
            until(lambda: any(
                one.by_beacon for one in gateway.passed if one.said
            ) or gateway.listener is None)
        told.settle()
        ledger = told.ledger()
        events = told.events()
        ledger.compare(events)
        return told, ledger, events


def kept(events, *parts):
    """That these parts of a story are stored, each of them completely."""
    found = sorted(
        (one["event"], one["properties"]["n"]) for one in events
        if one["event"] in ("before", "during", "after")
    )
    equal("events", found, sorted((part, n) for part in parts for n in range(scenario_steps.FEW)))


def given_up(told, *statuses):
    """That the library has given up so many batches, for these answers."""
    equal("given up", [one["status"] for one in told.report["failures"]], list(statuses))


def refused(weir, library):
    """503 all the time: the library makes its tries, and says that it gives up."""
    told, ledger, events = tell(weir, library, "503 for long", scenario_steps.given_up(), True)
    kept(events, "before", "after")
    given_up(told, 503)
    equal("tries", sorted(set(ledger.refused.values())), [library.tries])


def unconnected(weir, library):
    """No connection all the time; some keep the events for the next batch."""
    told, _, events = tell(weir, library, "away for long", scenario_steps.given_up(), False)
    kept(events, "before", "after", *(["during"] if library.keeps_unconnected else []))
    given_up(told, None)


def unconnected_at_the_end(weir, library):
    """No connection when the library is shut down, and nowhere to keep events."""
    told, _, events = tell(weir, library, "away at the end", scenario_steps.ended(), False)
    kept(events, "before", "after")
    given_up(told, *([None] if library.waits_at_shutdown else []))


def left_refused(weir, library):
    """503 when a page is left: there is one beacon, and no other try."""
    told, ledger, events = tell(weir, library, "503 on leaving", scenario_steps.left(), True)
    kept(events, "before")
    given_up(told)
    tries = [ledger.refused[name] for name, event in ledger.sent.items()
             if event["event"] == "during"]
    equal("tries", tries, [1] * scenario_steps.FEW)


def left_unconnected(weir, library):
    """No connection when a page is left."""
    told, _, events = tell(weir, library, "away on leaving", scenario_steps.left(), False)
    kept(events, "before")
    given_up(told)


def page_unconnected(weir, library):
    """No connection for longer than a page tries that stays open."""
    calls = scenario_steps.page_given_up(library.tries_to_connect)
    told, _, events = tell(weir, library, "away for long", calls, False)
    kept(events, "before", "after")
    given_up(told)


def all_of(library):
    """What is checked of this library: the names, and the checks."""
    if library.browser:
        return {
            "a page is left while 503 is answered: one beacon": left_refused,
            "a page is left without a connection: the events are lost": left_unconnected,
        } | ({
            f"no connection for long: lost after {library.tries_to_connect} tries":
                page_unconnected,
        } if library.tries_to_connect else {})
    fate = "kept for the next batch" if library.keeps_unconnected else "lost, and it says so"
    last = "lost, and it says so" if library.waits_at_shutdown else "lost after one try, unsaid"
    return {
        f"503 for long: lost after {library.tries} tries, and it says so": refused,
        f"no connection for long: {fate}": unconnected,
        f"no connection at shutdown: {last}": unconnected_at_the_end,
    }
