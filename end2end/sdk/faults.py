"""The scenario with faults of the service: 503 for some seconds, and a service that
ends and starts again."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import scenario_steps
from reporting import ScenarioRun
from scenarios import AWAY, Stream
from waiting import until

# How long the service stays away when no page is collecting.
SHORTLY_AWAY = 1.0


def with_faults(weir, library, what, **options):
    calls = (
        scenario_steps.browser(faults=True) if library.browser
        else scenario_steps.server(library, faults=True, **options)
    )
    return ScenarioRun(weir, library, what, calls)


def outage(weir, library):
    """The scenario, with 503 for some seconds at each pause."""
    options = library.outage_options if library.waits_at_shutdown else {"patient": True}
    with with_faults(weir, library, "scenario with 503", **options) as run:
        while why := run.next():
            if why == scenario_steps.WHILE_SENDING["why"]:
                run.resume_sending()
                run.gateway.refuse(library.outage)
            else:
                run.gateway.refuse(library.outage)
                run.resume()
        assert run.gateway.refused(), "nothing was sent while the service refused"
        return run.stored()


class Restarts:
    """Runs the scenario with all libraries. The service is ended by a signal and started
    again whenever all of them have paused. During the first restart there are also
    streams of events."""

    def __init__(self, weir, libraries, signal, what):
        self.weir = weir
        self.libraries = libraries
        self.signal = signal
        self.what = what
        self.runs = []

    def run(self, check):
        """Calls `check` with each library, the name of the check, and the check; returns
        what is stored after the scenarios."""
        with ExitStack() as stack, ThreadPoolExecutor(2 * len(self.libraries)) as pool:
            streams = [
                stack.enter_context(Stream(self.weir, library, self.what, patient=True))
                for library in self.libraries
            ]
            self.runs = [
                stack.enter_context(
                    with_faults(
                        self.weir, library, f"scenario, {self.what}",
                        **({} if library.browser else {"patient": True}),
                    )
                )
                for library in self.libraries
            ]
            why = self.paused(pool)
            until(lambda: all(stream.begun() for stream in streams))
            self.restart(pool, why, AWAY)
            # So that there are events from after it as well.
            back = time.time()
            until(lambda: all(stream.continues(back) for stream in streams))
            for stream in streams:
                stream.finish()
            name = f"{self.what} and started again: everything is stored once"
            # They must have ended when the service goes away again.
            list(pool.map(lambda stream: check(stream.library, name, stream.check), streams))
            while why := self.paused(pool):
                self.restart(pool, why, SHORTLY_AWAY)
            name = f"{self.what} and started again: the scenario completes"
            stored = pool.map(
                lambda run: check(run.library, name, lambda: self.stored(run)), self.runs
            )
            return list(zip(self.libraries, stored, strict=True))

    def unfinished(self):
        """The runs that have not ended: those of pages pause only once."""
        return [run for run in self.runs if run.report is None and run.problem is None]

    def paused(self, pool):
        """Waits until all runs have paused; returns the reason, or None at the end."""
        def next(run):
            try:
                return run.next()
            except AssertionError as problem:
                # The others continue; it is reported when the run is checked.
                run.problem = problem
                return None

        whys = set(pool.map(next, self.unfinished())) - {None}
        assert len(whys) <= 1, f"runs have paused for {whys}"
        return whys.pop() if whys else None

    @staticmethod
    def stored(run):
        if not run.library.browser:
            assert run.gateway.unheard, "nothing was on its way when the service ended"
        return run.stored()

    def restart(self, pool, why, away):
        unfinished = self.unfinished()
        while_sending = why == scenario_steps.WHILE_SENDING["why"]
        if while_sending:
            list(pool.map(lambda run: run.resume_sending(hold=True), unfinished))
        self.weir.stop(self.signal)
        for run in self.runs:
            run.gateway.away()
        if not while_sending:
            for run in unfinished:
                run.resume()
        time.sleep(away)
        self.weir.start()
        for run in self.runs:
            run.gateway.back()
