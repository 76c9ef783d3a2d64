"""The published libraries against a running service: what they send is read back,
field by field.

    WEIR_BIN=… WEIR_TOOLS=… CARGO_TARGET_DIR=… python sdks.py [part of a name …]

With arguments, only the libraries with such a name and version. The last line is
`N passed, M failed`. See `libraries.py`, `story.py`, `scenarios.py`, `checks.py`."""

import os
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import scenarios
from libraries import all_libraries
from weir import Weir


class Results:
    """One line per check, as soon as it is known."""

    def __init__(self):
        self.lock = threading.Lock()
        self.passed = 0
        self.failed = 0

    def check(self, library, name, run):
        """Runs a check; gives what it gives, or None if it failed."""
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


def main(wanted):
    libraries = [
        library for library in all_libraries()
        if not wanted or any(part in str(library) for part in wanted)
    ]
    if not libraries:
        sys.exit(f"no library has a name like {' or '.join(wanted)}")
    # Without a protocol of somebody's choice: what is sent again is the same.
    own_choice = [library for library in libraries if library.protocol is None]
    results = Results()

    def peace(library):
        stored = results.check(library, "story", lambda: scenarios.peace(weir, library))
        if stored is not None:
            for name in stored.CHECKS:
                check = getattr(stored, name)
                results.check(library, f"{name.replace('_', ' ')}: {check.__doc__}", check)

    def outage(library):
        results.check(library, "503 for some seconds: everything is stored once",
                      lambda: scenarios.outage(weir, library))

    def patience(library):
        if library.tries is not None:
            results.check(library, f"503 for ever: {library.tries} tries, and it says so",
                          lambda: scenarios.patience(weir, library))

    with Weir(os.environ["WEIR_BIN"]) as weir:
        began = time.monotonic()

        def at_once(libraries, *scenario):
            with ThreadPoolExecutor(len(scenario) * len(libraries) or 1) as pool:
                runs = [pool.submit(run, library) for run in scenario for library in libraries]
            for run in runs:
                run.result()
            print(f"       ({time.monotonic() - began:.0f} s)", flush=True)

        at_once(libraries, peace)
        at_once(own_choice, outage, patience)
        ways = ((signal.SIGTERM, "stopped"), (signal.SIGKILL, "killed"))
        for way, what in ways if own_choice else ():
            scenarios.restart(
                weir, own_choice, way, what,
                lambda library, check, what=what: results.check(
                    library, f"{what} and started again: everything is stored once", check
                ),
            )
            print(f"       ({time.monotonic() - began:.0f} s)", flush=True)
        if results.failed:
            print(weir.last_lines())
    print(f"{results.passed} passed, {results.failed} failed")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
