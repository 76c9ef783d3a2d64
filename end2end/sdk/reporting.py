"""A story that is told through a gateway and stops wherever the service is to fail."""

import scenario_steps
from checks import OURS, BrowserChecks, ServerChecks
from drivers import Driver
from gateway import Gateway
from ledger import Ledger
from scenarios import until


class Told:
    """A story that stops where it is to; use as a context manager."""

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
        """Why the story stops, or None at its end. What needs nobody's help to go
        on is seen to here."""
        while True:
            said = self.driver.next()
            if "paused" not in said:
                self.report = said
                return None
            end = self.pauses.pop(0)
            if said["paused"] != scenario_steps.DELIVERED["why"]:
                return said["paused"]
            self.delivered(self.calls[:end])
            self.go_on()

    def delivered(self, calls):
        """Waits until all events of these calls have been acknowledged."""
        told = sum(scenario_steps.EVENTS.get(call["call"], 0) for call in calls)
        # Opening a page is an event.
        told += self.library.browser
        until(lambda: len(self.ledger().acknowledged) >= told)

    def go_on(self):
        self.driver.write("go on")

    def begin_to_send(self, hold=False):
        """Goes on, and returns in the midst of what is sent then; with `hold`, the
        library waits for an answer that it will not get."""
        before = len(self.gateway.passed)
        if hold:
            self.gateway.hold()
        self.go_on()
        until(lambda: len(self.gateway.passed) > before or self.driver.has_ended())

    def ledger(self):
        return Ledger(self.library, self.gateway)

    def settle(self):
        """Everything that the library has to say has come, and is readable."""
        if self.library.browser:
            told = {"anon-1", "user-1", "other-1"}
        else:
            told = {call["distinct_id"] for call in self.calls if call.get("distinct_id")}
            told.add("$company_acme")
        self.driver.close()
        self.project.settle(sorted(told))

    def events(self):
        """All that is stored, without what was sent to settle."""
        return [one for one in self.project.events() if one["event"] != OURS]

    def stored(self):
        """Everything that is stored after the whole story."""
        if self.problem is not None:
            raise self.problem
        if self.library.browser:
            until(lambda: self.project.newest(event="leaving"))
            self.report["passed"] = self.gateway.passed
        self.settle()
        checks = BrowserChecks if self.library.browser else ServerChecks
        return checks(self.library, self.project, self.report, self.gateway)
