"""Runs a scenario through a gateway, stops at its faults, and reports what is stored."""

import scenario_steps
from checks import OURS, BrowserChecks, ServerChecks
from drivers import Driver
from gateway import Gateway
from ledger import Ledger
from waiting import until


class ScenarioRun:
    """One run of a scenario with pauses; use as a context manager."""

    def __init__(self, weir, library, what, calls):
        self.library = library
        self.calls = calls
        self.project = weir.new_project(f"{library}: {what}")
        self.gateway = Gateway(weir.url)
        self.pauses = [n for n, call in enumerate(calls) if call["call"] == "pause"]
        self.report = None
        self.problem = None

    def __enter__(self):
        self.gateway.__enter__()
        self.driver = Driver(self.library, self.gateway.url, self.project.key, self.calls)
        self.driver.__enter__()
        return self

    def __exit__(self, *stopped):
        self.driver.__exit__(*stopped)
        self.gateway.__exit__(*stopped)

    def next(self):
        """The reason of the next pause, or None at the end. Pauses that only wait for
        acknowledgements are handled here."""
        while True:
            said = self.driver.next()
            if "paused" not in said:
                self.report = said
                return None
            end = self.pauses.pop(0)
            if said["paused"] != scenario_steps.DELIVERED["why"]:
                return said["paused"]
            self.wait_acknowledged(self.calls[:end])
            self.resume()

    def wait_acknowledged(self, calls):
        """Waits until all events of these calls have been acknowledged."""
        events = sum(scenario_steps.EVENTS.get(call["call"], 0) for call in calls)
        # Opening a page is an event.
        events += self.library.browser
        until(lambda: len(self.ledger().acknowledged) >= events)

    def resume(self):
        self.driver.write("resume")

    def resume_sending(self, hold=False):
        """Resumes, and returns while the library is sending. With `hold`, the library
        waits for an answer that never comes."""
        before = len(self.gateway.passed)
        if hold:
            self.gateway.hold()
        self.resume()
        until(lambda: len(self.gateway.passed) > before or self.driver.has_ended())

    def ledger(self):
        return Ledger(self.library, self.gateway)

    def settle(self):
        """Waits until all events of the library have arrived and are readable."""
        if self.library.browser:
            distinct_ids = {"anon-1", "user-1", "other-1"}
        else:
            distinct_ids = {call["distinct_id"] for call in self.calls if call.get("distinct_id")}
            distinct_ids.add("$company_acme")
        self.driver.close()
        self.project.settle(sorted(distinct_ids))

    def events(self):
        """All stored events, without those of the harness."""
        return [one for one in self.project.events() if one["event"] != OURS]

    def stored(self):
        """The checks of everything that is stored after the whole scenario."""
        if self.problem is not None:
            raise self.problem
        if self.library.browser:
            until(lambda: self.project.newest(event="leaving"))
            self.report["passed"] = self.gateway.passed
        self.settle()
        checks = BrowserChecks if self.library.browser else ServerChecks
        return checks(self.library, self.project, self.report, self.gateway)
