"""The story while the service fails: 503 for some seconds, and a service that ends
and comes back."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import scenario_steps
from scenarios import AWAY, Stream, until
from reporting import Told

# How long the service stays away when no page is collecting.
SHORTLY_AWAY = 1.0


def troubled(weir, library, what, **options):
    calls = (
        scenario_steps.browser(troubled=True) if library.browser
        else scenario_steps.server(library, troubled=True, **options)
    )
    return Told(weir, library, what, calls)


def outage(weir, library):
    """The story, with 503 for some seconds wherever it stops."""
    options = library.outage_options if library.waits_at_shutdown else {"patient": True}
    with troubled(weir, library, "story with 503", **options) as told:
        while why := told.next():
            if why == scenario_steps.AMID["why"]:
                told.begin_to_send()
                told.gateway.refuse(library.outage)
            else:
                told.gateway.refuse(library.outage)
                told.go_on()
        assert told.gateway.refused(), "nothing was sent while the service refused"
        return told.stored()


class Restarts:
    """All libraries tell their story while the service ends by a signal and comes
    back, whenever they all have stopped; and beside it, the first time, events
    without end."""

    def __init__(self, weir, libraries, signal, what):
        self.weir = weir
        self.libraries = libraries
        self.signal = signal
        self.what = what
        self.told = []

    def run(self, check):
        """Calls `check` with each library, what is checked of it, and how; gives
        what is stored after the stories."""
        with ExitStack() as stack, ThreadPoolExecutor(2 * len(self.libraries)) as pool:
            streams = [
                stack.enter_context(Stream(self.weir, library, self.what, patient=True))
                for library in self.libraries
            ]
            self.told = [
                stack.enter_context(
                    troubled(
                        self.weir, library, f"story, {self.what}",
                        **({} if library.browser else {"patient": True}),
                    )
                )
                for library in self.libraries
            ]
            why = self.stopped(pool)
            until(lambda: all(stream.begun() for stream in streams))
            self.restart(pool, why, AWAY)
            # So that there are events from after it as well.
            time.sleep(1)
            for stream in streams:
                stream.finish()
            name = f"{self.what} and started again: everything is stored once"
            # They must have ended when the service goes away again.
            list(pool.map(lambda stream: check(stream.library, name, stream.check), streams))
            while why := self.stopped(pool):
                self.restart(pool, why, SHORTLY_AWAY)
            name = f"{self.what} and started again: the story is told"
            stored = pool.map(
                lambda told: check(told.library, name, lambda: self.stored(told)), self.told
            )
            return list(zip(self.libraries, stored, strict=True))

    def going(self):
        """The stories that have not ended: those of pages stop once only."""
        return [told for told in self.told if told.report is None and told.problem is None]

    def stopped(self, pool):
        """Waits until all stories have, and says why; None if all have ended."""
        def next(told):
            try:
                return told.next()
            except AssertionError as problem:
                # The others go on; it is told when the story is checked.
                told.problem = problem
                return None

        whys = set(pool.map(next, self.going())) - {None}
        assert len(whys) <= 1, f"stories have stopped for {whys}"
        return whys.pop() if whys else None

    @staticmethod
    def stored(told):
        if not told.library.browser:
            assert told.gateway.unheard, "nothing was on its way when the service ended"
        return told.stored()

    def restart(self, pool, why, away):
        going = self.going()
        amid = why == scenario_steps.AMID["why"]
        if amid:
            list(pool.map(lambda told: told.begin_to_send(hold=True), going))
        self.weir.stop(self.signal)
        for told in self.told:
            told.gateway.away()
        if not amid:
            for told in going:
                told.go_on()
        time.sleep(away)
        self.weir.start()
        for told in self.told:
            told.gateway.back()
