"""Scenarios for each library: one without faults, and a stream of events with 503 for
some seconds or with a service that ends and starts again (`faults.py`)."""

import scenario_steps
from checks import ServerChecks
from compare import equal, once_each
from drivers import Driver, run_scenario
from gateway import Gateway
from reporting import ScenarioRun
from waiting import until

# How long the service stays away, which is more than what a page collects before
# it sends: every library meets it.
AWAY = 3.5


def without_faults(weir, library):
    """The scenario, and the checks of everything that is stored after it."""
    if library.browser:
        # A page that is loaded again or left while it waits for an answer sends
        # those events once more; the gateway knows which.
        with ScenarioRun(weir, library, "scenario", scenario_steps.browser()) as run:
            assert run.next() is None, "nothing fails"
            return run.stored()
    project = weir.new_project(f"{library}: scenario")
    calls = scenario_steps.server(library)
    report = run_scenario(library, weir.url, project.key, calls)
    distinct_ids = {call["distinct_id"] for call in calls if call.get("distinct_id")}
    project.settle(sorted(distinct_ids | {"$company_acme"}))
    return ServerChecks(library, project, report)


CHANGES = """
export function processEvent(event) {
    if (event.event === 'noise') { return null }
    if (event.event === 'probe') { event.properties.probed = true }
    if (event.event === 'order placed') {
        event.event = 'ordered'
        event.properties.cents = Math.round(event.properties.total * 100)
        delete event.properties.total
        event.properties.$set = { ...event.properties.$set, buyer: true }
    }
    return event
}
"""


def transformed(weir, library):
    """The events of the library after a transformation of the project."""
    project = weir.new_project(f"{library}: transformed")
    config = project.transform(CHANGES)
    with Driver(library, weir.url, project.key, scenario_steps.changed(library)) as driver:
        driver.report()
        until(lambda: project.newest(event="ordered"))
        driver.close()
    project.settle(["user-1"])
    names = ("ordered", "order placed", "noise")
    found = [one for one in project.events() if one["event"] in names]
    equal("events", [one["event"] for one in found], ["ordered"])
    stored = found[0]["properties"]
    equal("total in cents", (stored.get("cents"), stored.get("total")), (1950, None))
    # The other properties are unchanged.
    for name, value in scenario_steps.EVERYTHING.items():
        equal(name, stored.get(name), value)
    equal("distinct id", found[0]["distinct_id"], "user-1")
    if not library.browser:
        person = project.persons("user-1")[0]
        equal("the person", person["properties"].get("buyer"), True)
    equal("dropped", project.warnings().get("dropped_by_transformation"), 1)
    equal("the config", weir.call(config)["error"], None)


def features(weir, library):
    """Features that the library requests and the service does not offer: the answers are
    empty, no request is refused or repeated, and the library logs no warning."""
    project = weir.new_project(f"{library}: features")
    with Gateway(weir.url) as gateway:
        report = run_scenario(library, gateway.url, project.key, scenario_steps.features(library))
    equal("failures", report["failures"], [])
    for name in ("said", "blocked"):
        equal(name, report.get(name, []), [])
    found = {name: answer for name, answer in report["features"].items() if answer}
    equal("features", found, {})
    passed = gateway.passed
    asked = {one.path.rstrip("/") for one in passed}
    equal("not asked for", sorted({*library.asks} - asked), [])
    # The library falls back to the JSON of the same name.
    refused = {one.path for one in passed if one.status not in (200, 204)}
    equal("refused", [path for path in refused if not path.endswith("/config.js")], [])
    equal("asked for again", [one.path for one in passed if "retry_count" in one.query], [])


class Stream:
    """A library that sends events until it is stopped; then all must be stored."""

    def __init__(self, weir, library, what, url=None, **options):
        self.library = library
        self.project = weir.new_project(f"{library}: {what}")
        # A page has one visitor, and a time of its own between two batches.
        page = {"distinct_id": scenario_steps.TICKERS[0]}
        options |= page if library.browser else {"flush_at": 10}
        calls = scenario_steps.stream(library.pause, **options)
        self.driver = Driver(library, url or weir.url, self.project.key, calls)

    def __enter__(self):
        self.driver.__enter__()
        return self

    def __exit__(self, *stopped):
        self.driver.__exit__(*stopped)

    def begun(self):
        """Whether the first events have arrived, or will never come."""
        return bool(self.project.newest(event="tick")) or self.driver.has_ended()

    def continues(self, since):
        """Whether an event has arrived that was captured after this time, or none will."""
        newest = self.project.newest(event="tick")
        is_later = any(one["properties"]["captured_at"] > since for one in newest)
        return is_later or self.driver.has_ended()

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
        self.project.settle(scenario_steps.TICKERS)
        equal("given up by the library", report["failures"], [])
        found = self.project.events(event="tick")
        once_each("ticks", [one["properties"]["n"] for one in found], captured)


def outage(weir, library):
    """503 for some seconds, while the library is sending."""
    with (
        Gateway(weir.url) as gateway,
        Stream(weir, library, "503", gateway.url, **library.outage_options) as stream,
    ):
        until(stream.begun)
        gateway.refuse(library.outage)
        until(gateway.accepts_again)
        stream.finish()
        stream.check()
        assert gateway.refused(), "nothing was sent while the service refused"
