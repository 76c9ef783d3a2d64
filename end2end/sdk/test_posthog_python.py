"""The published Python library against a running service: what it sends is read
back, field by field.

    WEIR_BIN=… python test_posthog_python.py

Needs nothing but the library itself; the last line is `N passed, N failed`."""

import os
import sys
import traceback
import uuid
from datetime import datetime, timedelta, timezone

from posthog import Posthog
from posthog.version import VERSION

from weir import Weir

# The event time is corrected by the way that the request took.
WAY = timedelta(seconds=10)


class Test:
    """A service, and clients of the library that report every failure."""

    def __init__(self, weir):
        self.weir = weir
        self.errors = []

    def client(self, **options):
        return Posthog(
            self.weir.instance["project_api_key"],
            host=self.weir.url,
            on_error=lambda error, items: self.errors.append(error),
            **options,
        )

    def sent(self, client):
        """Everything that was given to the client has been answered."""
        client.flush()
        client.shutdown()
        assert not self.errors, self.errors

    # --- what is tested ------------------------------------------------------

    def capture(self):
        properties = {
            "invoice": "INV-2231",
            "amount": 120.5,
            "count": 2**53 + 1,
            "paid": True,
            "nothing": None,
            "words": "naïve — 東京 🏔 \" \\ </script>",
            "nested": {"list": [1, 2.5, "three", {"four": []}]},
        }
        client = self.client()
        began = datetime.now(timezone.utc)
        sent = client.capture("invoice issued", distinct_id="user-1", properties=properties)
        self.sent(client)
        event = self.weir.event(sent)
        assert event["id"] == event["uuid"] == sent, event
        assert event["event"] == "invoice issued", event
        assert event["distinct_id"] == "user-1", event
        assert event["historical"] is False, event
        assert event["elements_chain"] == "", event
        near(event["timestamp"], began)
        near(event["created_at"], began)
        for name, value in properties.items():
            assert event["properties"][name] == value, (name, event["properties"][name])
        assert event["properties"]["$lib"] == "posthog-python", event
        assert event["properties"]["$lib_version"] == VERSION, event
        person = event["person"]
        assert person["distinct_ids"] == ["user-1"], person
        assert uuid.UUID(person["uuid"]) == uuid.UUID(person["id"]), person
        assert "$os" not in person["properties"], "a server's system is not the person's"

    def identify(self):
        client = self.client()
        first = client.set_once(
            distinct_id="user-2", properties={"plan_at_start": "free", "email": "first@mail.example"}
        )
        then = client.set(
            distinct_id="user-2", properties={"email": "kei@mail.example", "seats": 3}
        )
        last = client.set_once(distinct_id="user-2", properties={"plan_at_start": "team"})
        self.sent(client)
        event = self.weir.event(then)
        assert event["event"] == "$set", event
        assert event["distinct_id"] == "user-2", event
        assert event["properties"]["$set"] == {"email": "kei@mail.example", "seats": 3}, event
        event = self.weir.event(first)
        assert event["properties"]["$set_once"]["plan_at_start"] == "free", event
        person = self.weir.event(last)["person"]
        expected = {"email": "kei@mail.example", "seats": 3, "plan_at_start": "free"}
        found = {name: person["properties"].get(name) for name in expected}
        assert found == expected, person

    def alias(self):
        client = self.client()
        sent = client.alias("anonymous-3", "user-3")
        self.sent(client)
        event = self.weir.event(sent)
        assert event["event"] == "$create_alias", event
        assert event["distinct_id"] == "anonymous-3", event
        assert event["properties"]["distinct_id"] == "anonymous-3", event
        assert event["properties"]["alias"] == "user-3", event

    def without_distinct_id(self):
        client = self.client()
        sent = client.capture("visited", properties={"page": "/"})
        self.sent(client)
        event = self.weir.event(sent)
        uuid.UUID(event["distinct_id"])
        assert event["properties"]["$process_person_profile"] is False, event
        assert event["person"] is None, event

    def compressed(self):
        client = self.client(gzip=True)
        sent = [
            client.capture("step", distinct_id="user-4", properties={"step": step, "pad": "x" * 900})
            for step in range(250)
        ]
        self.sent(client)
        for step in (0, 100, 249):
            assert self.weir.event(sent[step])["properties"]["step"] == step
        found = self.weir.events(distinct_id="user-4", limit=1000)
        assert sorted(event["properties"]["step"] for event in found) == list(range(250)), found
        times = [event["timestamp"] for event in found]
        assert times == sorted(times, reverse=True), "not the newest first"

    def historical_migration(self):
        begin = datetime(2024, 4, 2, 12, tzinfo=timezone.utc)
        names = [str(uuid.uuid5(uuid.NAMESPACE_URL, f"import/{n}")) for n in range(120)]

        def run():
            client = self.client(historical_migration=True)
            for n, name in enumerate(names):
                client.capture(
                    "$pageview", distinct_id=f"user-{4700 + n % 3}", uuid=name,
                    timestamp=begin + timedelta(minutes=n), properties={"imported": n},
                )
            self.sent(client)

        run()
        for n in (0, 57, 119):
            event = self.weir.event(names[n])
            assert event["historical"] is True, event
            assert event["uuid"] == names[n], event
            assert event["event"] == "$pageview", event
            assert event["distinct_id"] == f"user-{4700 + n % 3}", event
            assert event["properties"]["imported"] == n, event
            near(event["timestamp"], begin + timedelta(minutes=n))
            near(event["created_at"], datetime.now(timezone.utc), timedelta(minutes=5))
        # An import that is run twice adds nothing.
        run()
        client = self.client(historical_migration=True)
        # One per person, so that all partitions have passed what was sent again.
        last = [
            client.capture("end of import", distinct_id=f"user-{4700 + n}") for n in range(3)
        ]
        self.sent(client)
        for name in last:
            self.weir.event(name)
        found = self.weir.events(event="$pageview", before="2024-05-01T00:00:00Z", limit=1000)
        assert sorted(event["uuid"] for event in found) == sorted(names), len(found)

    def wrong_key(self):
        client = Posthog(
            "phc_nobody", host=self.weir.url, max_retries=0,
            on_error=lambda error, items: refused.append(error),
        )
        refused = []
        client.capture("lost", distinct_id="user-9")
        client.flush()
        client.shutdown()
        assert refused, "the library took no notice of a wrong key"
        assert "401" in str(refused[0]) or getattr(refused[0], "status", None) == 401, refused


def near(text, expected, within=WAY):
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    assert abs(found - expected) < within, (text, expected)


def main():
    names = [
        "capture", "identify", "alias", "without_distinct_id", "compressed",
        "historical_migration", "wrong_key",
    ]
    failed = 0
    with Weir(os.environ["WEIR_BIN"]) as weir:
        for name in names:
            try:
                getattr(Test(weir), name)()
                print(f"ok     {name}")
            except Exception:
                failed += 1
                print(f"FAILED {name}")
                traceback.print_exc(file=sys.stdout)
        if failed:
            print(weir.last_lines())
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
