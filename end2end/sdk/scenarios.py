"""What is done with each library: a story in peace, 503 for some seconds, and the
service stopped and started again while events are on their way."""

import time
from contextlib import ExitStack

import story
from checks import BrowserChecks, ServerChecks
from compare import equal, once_each
from drivers import Driver, tell
from gateway import Gateway

# How long the service stays away, which is more than what a page collects before
# it sends: every library meets it.
AWAY = 3.5
# Until events have arrived, also those of a page that was refused.
PATIENCE = 60


def peace(weir, library):
    """The story, and everything that is stored after it."""
    project = weir.new_project(f"{library}: story")
    if library.browser:
        # To see what the page asks for.
        with Gateway(weir.url) as gateway:
            with Driver(library, gateway.url, project.key, story.browser()) as driver:
                report = driver.report()
                until(lambda: project.newest(event="leaving"))
                driver.close()
            report["passed"] = gateway.passed
        project.settle(["anon-1", "user-1", "other-1"])
        return BrowserChecks(library, project, report)
    calls = story.server(library)
    report = tell(library, weir.url, project.key, calls)
    told = {call["distinct_id"] for call in calls if call.get("distinct_id")}
    project.settle(sorted(told | {"$company_acme"}))
    return ServerChecks(library, project, report)


class Stream:
    """A library that sends without end, until told; then everything must be there."""

    def __init__(self, weir, library, what, url=None, **options):
        self.library = library
        self.project = weir.new_project(f"{library}: {what}")
        # A page has one visitor, and a time of its own between two batches.
        options |= {"distinct_id": story.TICKERS[0]} if library.browser else {"flush_at": 10}
        calls = story.stream(library.pause, **options)
        self.driver = Driver(library, url or weir.url, self.project.key, calls)

    def __enter__(self):
        self.driver.__enter__()
        return self

    def __exit__(self, *stopped):
        self.driver.__exit__(*stopped)

    def begun(self):
        """Whether the first events have arrived, or are never to come."""
        return bool(self.project.newest(event="tick")) or self.driver.has_ended()

    def finish(self):
        self.driver.write("enough")

    def check(self):
        """Everything that was captured is stored once."""
        report = self.driver.report()
        captured = report["captured"]
        if self.library.browser:
            # It does not say when it has sent everything.
            until(lambda: len(self.project.events(event="tick")) >= captured)
        self.driver.close()
        self.project.settle(story.TICKERS)
        equal("given up by the library", report["failures"], [])
        found = self.project.events(event="tick")
        once_each("ticks", [one["properties"]["n"] for one in found], captured)


def until(condition):
    """Waits; what is missing in the end is seen in what is stored."""
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


def outage(weir, library):
    """503 for some seconds, in the midst of sending."""
    with (
        Gateway(weir.url) as gateway,
        Stream(weir, library, "503", gateway.url, **library.outage_options) as stream,
    ):
        until(stream.begun)
        gateway.refuse(library.outage)
        time.sleep(library.outage)
        stream.finish()
        stream.check()
        assert gateway.refused(), "nothing was sent while the service refused"


def patience(weir, library):
    """503 for ever: how often the library tries, and that it says so."""
    project = weir.new_project(f"{library}: refused")
    with Gateway(weir.url) as gateway:
        gateway.refuse(3600)
        report = tell(library, gateway.url, project.key, story.single())
        equal("tries", len(gateway.refused()), library.tries)
        equal("status", [one["status"] for one in report["failures"]], [503])
    equal("events", project.events(), [])


def restart(weir, libraries, signal, what, each):
    """The service ends by this signal while all libraries send, and comes back.

    `each` is called with every library and what is to be checked of it."""
    with ExitStack() as stack:
        streams = [
            stack.enter_context(Stream(weir, library, what, patient=True))
            for library in libraries
        ]
        until(lambda: all(stream.begun() for stream in streams))
        weir.stop(signal)
        time.sleep(AWAY)
        weir.start()
        # So that there are events from after it as well.
        time.sleep(1)
        for stream in streams:
            stream.finish()
        for stream in streams:
            each(stream.library, stream.check)
