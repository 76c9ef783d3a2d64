"""The driver of the Python library, of today and of 3.x: reads a scenario from
standard input, runs it, and prints a report. Both are described in
`drivers.py`. Needs nothing but the library and `waiting.py`."""

import itertools
import json
import logging
import sys
import threading
import time
from datetime import datetime

from posthog import Posthog
from posthog.version import VERSION
from waiting import wait_for

IS_3 = VERSION.startswith("3.")
# Enough attempts to wait out a restart; the waits double.
PATIENT = 10
# Less than the harness waits for a driver (`PATIENCE` of drivers.py), so that the error says
# what is missing.
GIVEN_UP = 140


class Sender:
    def __init__(self, url, key):
        self.url = url
        self.key = key
        self.clients = 0
        self.captured = 0
        self.failures = []
        self.said = []
        self.answers = None

    def client(self, options):
        number = self.clients
        self.clients += 1
        more = {"max_retries": PATIENT} if options.get("patient") else {}
        if "secret" in options:
            more["personal_api_key"] = options["secret"]
        if "flush_at" in options:
            more["flush_at"] = options["flush_at"]
        self.posthog = Posthog(
            options.get("key", self.key), host=self.url, gzip=options.get("gzip", False),
            historical_migration=options.get("historical", False),
            on_error=lambda error, items: self.failures.append({
                "client": number, "status": getattr(error, "status", None), "text": str(error),
            }),
            **more,
        )

    def capture(self, event, distinct_id, properties, groups=None, uuid=None, timestamp=None):
        more = {"properties": properties, "groups": groups, "uuid": uuid}
        if timestamp is not None:
            more["timestamp"] = datetime.fromisoformat(timestamp)
        if IS_3:
            self.posthog.capture(distinct_id, event, **more)
        elif distinct_id is None:
            self.posthog.capture(event, **more)
        else:
            self.posthog.capture(event, distinct_id=distinct_id, **more)

    def identify(self, distinct_id, set):
        # The call was given up for one that only sets properties.
        call = self.posthog.identify if IS_3 else self.posthog.set
        call(distinct_id=distinct_id, properties=set)

    def set_once(self, distinct_id, set_once):
        self.posthog.set_once(distinct_id=distinct_id, properties=set_once)

    def alias(self, previous, main):
        self.posthog.alias(previous, main)

    def group(self, group_type, key, set):
        # As other libraries name it. Without, each call has an id of its own,
        # and the order of two calls is open.
        self.posthog.group_identify(
            group_type, key, set, distinct_id=f"${group_type}_{key}"
        )

    def flush(self):
        self.posthog.flush()

    def given_up(self):
        if not wait_for(lambda: self.failures, GIVEN_UP):
            raise TimeoutError(f"the library has not given up anything after {GIVEN_UP} s")

    def pause(self, why):
        print(json.dumps({"paused": why}), flush=True)
        sys.stdin.readline()

    def features(self):
        listener = logging.Handler(logging.WARNING)
        listener.emit = lambda record: self.said.append(record.getMessage())
        logging.getLogger("posthog").addHandler(listener)
        self.posthog.load_feature_flags()
        self.answers = {
            "flag": self.posthog.feature_enabled("new-page", "user-1"),
            "flags": self.posthog.get_all_flags("user-1"),
            "payload": self.posthog.get_feature_flag_payload("new-page", "user-1"),
            "remote_config": self.posthog.get_remote_config_payload("new-page"),
        }

    def shutdown(self):
        self.posthog.shutdown()

    def stream(self, event, distinct_ids, pause):
        enough = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.readline(), enough.set()), daemon=True).start()
        for distinct_id in itertools.cycle(distinct_ids):
            properties = {"n": self.captured, "captured_at": time.time()}
            self.capture(event, distinct_id, properties)
            self.captured += 1
            if enough.wait(pause):
                break


def main():
    scenario = json.loads(sys.stdin.readline())
    sender = Sender(scenario["url"], scenario["key"])
    for call in scenario["calls"]:
        getattr(sender, call.pop("call"))(**call)
    print(json.dumps({
        "captured": sender.captured, "failures": sender.failures, "said": sender.said,
        "features": sender.answers,
    }))


if __name__ == "__main__":
    main()
