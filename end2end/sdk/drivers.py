"""Runs the driver of a library as a process of its own.

A driver reads one line of JSON from its standard input,

    {"url": "http://…", "key": "phc_…", "calls": [{"call": "client", …}, …]}

makes the calls one after another (`scenario_steps.py` has them all), and then writes one
line of JSON to its standard output:

    {"captured": 17, "failures": [{"client": 0, "status": 401, "text": "…"}]}

At a `pause` it writes `{"paused": "why"}` and waits for a line in answer.

`captured` counts the events of `stream` calls, which continue until the harness
writes another line. `failures` are the batches that the library itself has given
up, by the number of the client. After a `features` call, `features` are the answers
of the library, and `said` are its warnings. The driver of pages reports more: see
`posthog_browser.mjs`."""

import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path

# A library that waits between its attempts, on a busy machine.
PATIENCE = 150


class Driver:
    """Use as a context manager: the process has ended after it."""

    def __init__(self, library, url, key, calls):
        self.library = library
        self.scenario = json.dumps({"url": url, "key": key, "calls": calls})

    def __enter__(self):
        self.stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            self.library.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.stderr, text=True, encoding="utf-8",
            env=self.library.environment(),
        )
        self.write(self.scenario)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.stderr.close()

    def write(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            # It has ended; its report, or its standard error, says why.
            pass

    def report(self):
        """Waits until the scenario is complete."""
        said = self.next()
        assert "paused" not in said, said
        return said

    def next(self):
        """Waits for a pause or the report."""
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        line = self.process.stdout.readline()
        late.cancel()
        if not line:
            raise AssertionError(f"the driver failed:\n{self.last_lines()}")
        return json.loads(line)

    def has_ended(self):
        return self.process.poll() is not None

    def close(self):
        """Lets the driver of a page end, and waits for any."""
        self.write("close")
        self.process.wait(PATIENCE)

    def last_lines(self):
        self.stderr.seek(0)
        return "".join(self.stderr.readlines()[-25:])


class Chromium:
    """The browser of all pages: starting one for each takes most of their time."""

    def __enter__(self):
        self.process = subprocess.Popen(
            ["node", Path(__file__).parent / "chromium.mjs"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        os.environ["CHROMIUM_AT"] = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def run_scenario(library, url, key, calls):
    """Runs a whole scenario and returns the report."""
    with Driver(library, url, key, calls) as driver:
        report = driver.report()
        driver.close()
        return report
