"""Events that a library gives up when the service fails for longer than the library
tries: exactly the events of that time that were never acknowledged. `libraries.py` says
how long each library tries, and where its source says so."""

import scenario_steps
from compare import equal
from reporting import ScenarioRun
from waiting import until

FOR_EVER = 3600


def run_with_fault(weir, library, what, calls, refuses):
    """Runs such a scenario, and checks that every acknowledged event is stored. Returns
    the run, its ledger and the stored events."""
    with ScenarioRun(weir, library, what, calls) as run:
        gateway = run.gateway
        while why := run.next():
            recovered = why == scenario_steps.RECOVERED["why"]
            if refuses:
                gateway.refuse(0 if recovered else FOR_EVER)
            elif recovered:
                gateway.back()
            else:
                gateway.away()
            run.resume()
        if library.browser:
            # The last beacon is on its way when the page has been left.
            until(lambda: any(
                one.by_beacon for one in gateway.passed if one.events
            ) or gateway.listener is None)
        run.settle()
        ledger = run.ledger()
        events = run.events()
        ledger.compare(events)
        return run, ledger, events


def kept(events, *parts):
    """That these parts of a scenario are stored, each of them completely."""
    found = sorted(
        (one["event"], one["properties"]["n"]) for one in events
        if one["event"] in ("before", "during", "after")
    )
    equal("events", found, sorted((part, n) for part in parts for n in range(scenario_steps.FEW)))


def given_up(run, *statuses):
    """That the library has given up one batch for each of these answers."""
    equal("given up", [one["status"] for one in run.report["failures"]], list(statuses))


def refused(weir, library):
    """503 all the time: the library makes its attempts, and reports that it gives up."""
    calls = scenario_steps.given_up()
    run, ledger, events = run_with_fault(weir, library, "503 for long", calls, True)
    kept(events, "before", "after")
    given_up(run, 503)
    equal("attempts", sorted(set(ledger.refused.values())), [library.tries])


def unconnected(weir, library):
    """No connection all the time; some keep the events for the next batch."""
    calls = scenario_steps.given_up()
    run, _, events = run_with_fault(weir, library, "away for long", calls, False)
    kept(events, "before", "after", *(["during"] if library.keeps_unconnected else []))
    given_up(run, None)


def unconnected_at_the_end(weir, library):
    """No connection when the library is shut down, so that it cannot keep events."""
    run, _, events = run_with_fault(weir, library, "away at the end", scenario_steps.ended(), False)
    kept(events, "before", "after")
    given_up(run, *([None] if library.waits_at_shutdown else []))


def left_refused(weir, library):
    """503 when a page is left: there is one beacon, and no other attempt."""
    calls = scenario_steps.left()
    run, ledger, events = run_with_fault(weir, library, "503 on leaving", calls, True)
    kept(events, "before")
    given_up(run)
    tries = [ledger.refused[name] for name, event in ledger.sent.items()
             if event["event"] == "during"]
    equal("attempts", tries, [1] * scenario_steps.FEW)


def left_unconnected(weir, library):
    """No connection when a page is left."""
    run, _, events = run_with_fault(weir, library, "away on leaving", scenario_steps.left(), False)
    kept(events, "before")
    given_up(run)


def page_unconnected(weir, library):
    """No connection for longer than a page tries that stays open."""
    calls = scenario_steps.page_given_up(library.tries_to_connect)
    run, _, events = run_with_fault(weir, library, "away for long", calls, False)
    kept(events, "before", "after")
    given_up(run)


def all_of(library):
    """The checks of this library by name."""
    if library.browser:
        return {
            "a page is left while 503 is answered: one beacon": left_refused,
            "a page is left without a connection: the events are lost": left_unconnected,
        } | ({
            f"no connection for long: lost after {library.tries_to_connect} attempts":
                page_unconnected,
        } if library.tries_to_connect else {})
    fate = "kept for the next batch" if library.keeps_unconnected else "lost and reported"
    silent = "lost after one attempt, not reported"
    last = "lost and reported" if library.waits_at_shutdown else silent
    return {
        f"503 for long: lost after {library.tries} attempts, and reported": refused,
        f"no connection for long: {fate}": unconnected,
        f"no connection at shutdown: {last}": unconnected_at_the_end,
    }
