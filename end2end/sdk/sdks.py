"""The published libraries against a running service: their events are read back and
compared field by field.

    WEIR_BIN=… WEIR_TOOLS=… CARGO_TARGET_DIR=… python sdks.py [part of a name …]

With arguments, only the libraries with such a name and version. The last line is
`N passed, M failed`. See `libraries.py` and `scenario_steps.py`; `scenarios.py`,
`faults.py` and `limits.py`; `checks.py` and `ledger.py`."""

import os
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import faults
import limits
import scenarios
from drivers import Chromium
from libraries import all_libraries, older_pages
from weir import Weir


class Results:
    """One line per check, as soon as it is known."""

    def __init__(self):
        self.lock = threading.Lock()
        self.began = time.monotonic()
        self.passed = 0
        self.failed = 0

    def check(self, library, name, run):
        """Runs a check; returns its result, or None if it failed."""
        problem = found = None
        try:
            found = run()
        except AssertionError as error:
            problem = str(error) or traceback.format_exc()
        except Exception:
            problem = traceback.format_exc()
        with self.lock:
            self.passed += problem is None
            self.failed += problem is not None
            print(f"{'ok    ' if problem is None else 'FAILED'} {library}: {name}", flush=True)
            if problem is not None:
                lines = problem.rstrip().splitlines()
                print("\n".join(f"         {line[:600]}" for line in lines), flush=True)
        return found

    def stored(self, library, what, stored):
        """The checks of the stored events, if the scenario is complete."""
        for name in stored.checks() if stored else ():
            check = getattr(stored, name)
            self.check(library, f"{what}, {name.replace('_', ' ')}: {check.__doc__}", check)

    def concurrently(self, *runs):
        """Runs independent checks at the same time; returns when all have ended."""
        with ThreadPoolExecutor(len(runs)) as pool:
            for done in [pool.submit(run) for run in runs]:
                done.result()
        print(f"       ({time.monotonic() - self.began:.0f} s)", flush=True)


class Scenarios:
    """The scenarios for the libraries, with the names of the checks."""

    def __init__(self, results, libraries, older):
        self.results = results
        self.libraries = libraries
        # Of these, only their requests for features.
        self.older = older

    def each(self, weir, *scenarios):
        """Runs of each of these with each library."""
        return [
            lambda run=run, library=library: run(weir, library)
            for run in scenarios for library in self.libraries
        ]

    def without_faults(self, weir, library):
        stored = self.results.check(
            library, "the scenario completes",
            lambda: scenarios.without_faults(weir, library),
        )
        self.results.stored(library, "scenario", stored)

    def transformed(self, weir, library):
        self.results.check(
            library, "a transformation changes what it sends",
            lambda: scenarios.transformed(weir, library),
        )

    def features(self, weir):
        """Runs of the features that libraries request."""
        asking = [library for library in [*self.libraries, *self.older] if library.asks]
        return [
            lambda library=library: self.results.check(
                library, "features that are not offered have quiet answers",
                lambda: scenarios.features(weir, library),
            )
            for library in asking
        ]

    def outage(self, weir, library):
        self.results.check(
            library, "503 for some seconds: everything is stored once",
            lambda: scenarios.outage(weir, library),
        )

    def with_faults(self, weir, library):
        stored = self.results.check(
            library, "503 for some seconds: the scenario completes",
            lambda: faults.outage(weir, library),
        )
        self.results.stored(library, "503", stored)

    def limits(self, weir):
        """Runs of long faults, in which events are lost."""
        return [
            lambda library=library, name=name, check=check: self.results.check(
                library, name, lambda: check(weir, library)
            )
            for library in self.libraries
            for name, check in limits.all_of(library).items()
        ]

    def restarts(self, weir, signal, what):
        restarts = faults.Restarts(weir, self.libraries, signal, what)
        for library, stored in restarts.run(self.results.check):
            self.results.stored(library, what, stored)


def main(wanted):
    libraries, older = (
        [one for one in found if not wanted or any(part in str(one) for part in wanted)]
        for found in (all_libraries(), older_pages())
    )
    if not libraries and not older:
        sys.exit(f"no library has a name like {' or '.join(wanted)}")
    results = Results()
    run = Scenarios(results, libraries, older)
    binary = os.environ["WEIR_BIN"]
    with ExitStack() as stack:
        weir, other = (stack.enter_context(Weir(binary)) for _ in range(2))
        if any(library.browser for library in [*libraries, *older]):
            stack.enter_context(Chromium())
        results.concurrently(
            *run.each(weir, run.without_faults, run.transformed), *run.features(weir)
        )
        if libraries:
            results.concurrently(*run.each(weir, run.outage, run.with_faults), *run.limits(weir))
            # Services of their own, because they end.
            results.concurrently(
                lambda: run.restarts(weir, signal.SIGTERM, "stopped"),
                lambda: run.restarts(other, signal.SIGKILL, "killed"),
            )
        if results.failed:
            print(weir.last_lines(), other.last_lines(), sep="\n")
    print(f"{results.passed} passed, {results.failed} failed")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
