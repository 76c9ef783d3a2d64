"""What must be stored after a scenario (ING-6, ING-30, ING-38).

Each check is a method; its first line says what it is about."""

import uuid
from collections import Counter
from datetime import datetime
from itertools import pairwise

import scenario_steps
from compare import LATE, WAY, equal, few, near, once_each, recent, same
from ledger import Ledger

# The event that the harness sends itself.
OURS = "settled"


class Stored:
    """Everything that a project holds after its scenario."""

    def __init__(self, library, project, report, gateway=None):
        self.library = library
        self.project = project
        self.report = report
        # Of a scenario with faults.
        self.ledger = Ledger(library, gateway) if gateway else None
        self.queued = scenario_steps.QUEUED_WITH_FAULTS if gateway else scenario_steps.QUEUED
        self.way = LATE if gateway and library.keeps_sent_at else WAY
        self.events = [event for event in project.events() if event["event"] != OURS]

    def checks(self):
        return [*self.CHECKS, *(["acknowledged"] if self.ledger else [])]

    def acknowledged(self):
        """acknowledged events are stored once and unchanged, and no others"""
        self.ledger.compare(self.events)

    def warned(self, repeats):
        """That this number of events came again, and nothing else; more where the service
        failed before it could answer."""
        least, most = self.ledger.repeats() if self.ledger else (repeats, repeats)
        found = self.project.warnings()
        again = found.pop("duplicate_uuid", 0)
        equal("warnings", found, {})
        assert repeats <= least <= again <= most, (
            f"repeated: expected from {least} to {most}, at least {repeats}; counted {again}"
        )

    def named(self, event, distinct_id=None):
        """In the order in which they happened."""
        return [
            one for one in reversed(self.events)
            if one["event"] == event and distinct_id in (None, one["distinct_id"])
        ]

    def one(self, event, distinct_id=None):
        found = self.named(event, distinct_id)
        assert len(found) == 1, f"{event}: {len(found)} events are stored"
        return found[0]

    def person(self, distinct_id):
        found = self.project.persons(distinct_id)
        assert len(found) == 1, f"{distinct_id}: {len(found)} persons"
        return found[0]

    def count(self, expected):
        found = Counter(event["event"] for event in self.events)
        wrong = [
            f"{name}: expected {expected.get(name, 0)}, {found[name]} are stored"
            for name in sorted({*found, *expected}) if found[name] != expected.get(name, 0)
        ]
        assert not wrong, "\n".join(wrong)

    def sent_by_library(self, event):
        same(event["event"], event["properties"], {
            "$lib": self.library.lib, "$lib_version": self.library.version,
        })
        uuid.UUID(event["uuid"])
        equal("id", event["id"], event["uuid"])
        recent("created_at", event["created_at"])

    def own_properties(self, what, person, expected):
        """Without those that the service or the library added; pages send null for
        every campaign that they have not been opened from."""
        found = {
            name: value for name, value in person["properties"].items()
            if not name.startswith("$") and value is not None
        }
        equal(f"properties of {what}", found, expected)

    def group(self, expected):
        found = self.project.groups("company")
        equal("group keys", [one["group_key"] for one in found], ["acme"])
        same("group", found[0], {
            "group_type": "company", "group_type_index": 0, "group_properties": expected,
        })
        recent("group.created_at", found[0]["created_at"])
        types = [{"group_type": "company", "group_type_index": 0}]
        equal("group types", self.project.group_types(), types)

    def groups_of(self, event):
        same(event["event"], event["properties"], {
            "$groups": {"company": "acme"}, "$group_0": "acme",
        })


class ServerChecks(Stored):
    """After `scenario_steps.server`."""

    CHECKS = [
        "delivered", "capture", "identify", "alias", "groups", "without_a_person", "batch",
        "large_queue", "historical", "shutdown", "wrong_key", "counts", "warnings",
    ]

    def delivered(self):
        """the library has given up no batch"""
        found = [one for one in self.report["failures"]
                 if one["client"] != scenario_steps.CLIENT_WITH_WRONG_KEY]
        assert not found, found

    def capture(self):
        """an event with all kinds of values"""
        event = self.one("invoice issued")
        self.sent_by_library(event)
        beyond = scenario_steps.BEYOND if self.library.counts_exactly else {}
        same("properties", event["properties"], scenario_steps.EVERYTHING | beyond)
        same("event", event, {
            "uuid": scenario_steps.stable("invoice"), "distinct_id": "user-1",
            "elements_chain": "", "historical": False,
        })
        near("timestamp", event["timestamp"], scenario_steps.WHEN, self.way)
        now = self.one("order placed")
        recent("timestamp", now["timestamp"])
        same("properties", now["properties"], {"total": 19.5})

    def identify(self):
        """properties of a person"""
        events = self.named(self.library.identify, "user-2")
        events = [one for one in events if "$set" in one["properties"]]
        sent = [{"email": "ines@mail.example", "seats": 3}, {"seats": 4}]
        equal("$set", [one["properties"]["$set"] for one in events], sent)
        once = self.named(self.library.set_once, "user-2")
        once = [one["properties"].get("$set_once") for one in once]
        sent = [{"plan_at_start": "free"}, {"plan_at_start": "paid"}]
        equal("$set_once", [one for one in once if one], sent)
        person = self.person("user-2")
        expected = {"email": "ines@mail.example", "seats": 4, "plan_at_start": "free"}
        self.own_properties("user-2", person, expected)
        same("person", person, {"distinct_ids": ["user-2"], "is_identified": False})
        recent("person.created_at", person["created_at"])
        equal("person", self.project.person(person["uuid"]), person)
        equal("person of the event", events[0]["person"]["uuid"], person["uuid"])

    def alias(self):
        """two persons become one"""
        event = self.one("$create_alias")
        self.sent_by_library(event)
        same("event", event, {"distinct_id": "anon-1"})
        same("properties", event["properties"], {"distinct_id": "anon-1", "alias": "user-1"})
        person = self.person("user-1")
        equal("person", self.person("anon-1"), person)
        equal("distinct ids", sorted(person["distinct_ids"]), ["anon-1", "user-1"])
        same("person", person, {"is_identified": True})
        # What the main person says wins over what the other one said.
        expected = {"email": "kei@mail.example", "seats": 3, "source": "ad"}
        self.own_properties("user-1", person, expected)
        for name in ("visited", "invoice issued"):
            equal(f"person of {name}", self.one(name)["person"]["uuid"], person["uuid"])
        visited = self.one("visited")["properties"]
        if self.library.is_server:
            same("visited", visited, {"$is_server": True})
            assert "$os" not in person["properties"], person["properties"]
        elif "$os" in visited:
            same("properties of user-1", person["properties"], {
                "$os": visited["$os"], "$initial_os": visited["$os"],
            })

    def groups(self):
        """a group and an event of it"""
        first, second = self.named("$groupidentify")
        named = {"$group_type": "company", "$group_key": "acme"}
        same("first", first["properties"], named | {"$group_set": {"name": "Acme", "seats": 10}})
        later = {"$group_set": {"seats": 12, "city": "Berlin"}}
        same("second", second["properties"], named | later)
        self.group({"name": "Acme", "seats": 12, "city": "Berlin"})
        self.groups_of(self.one("order placed"))

    def without_a_person(self):
        """events that make no person"""
        events = [self.one("heartbeat", "ghost-1")]
        if self.library.makes_ids:
            events.append(self.one("ping"))
            uuid.UUID(events[1]["distinct_id"])
        for event in events:
            same(event["event"], event["properties"], {"$process_person_profile": False})
            same(event["event"], event, {"person": None})
            equal("persons", self.project.persons(event["distinct_id"]), [])

    def batch(self):
        """several requests of one client"""
        found = [one["properties"]["n"] for one in self.named("step", "walker-1")]
        once_each("n", found, scenario_steps.STEPS)
        # As times: without a fraction, their texts have another order.
        times = [
            datetime.fromisoformat(one["timestamp"].replace("Z", "+00:00"))
            for one in self.events
        ]
        wrong = [f"{one} before {next}" for one, next in pairwise(times) if one < next]
        assert not wrong, f"not the newest first: {few(wrong)}"

    def large_queue(self):
        """everything of a long queue, in the other form of the body"""
        found = self.named("queued")
        once_each("n", [one["properties"]["n"] for one in found], self.queued)
        for one in found:
            n = one["properties"]["n"]
            same("event", one, {"distinct_id": f"queuer-{n % 5}"})
            same("properties", one["properties"], {"text": "x" * 200})

    def historical(self):
        """an import that is run twice is stored once"""
        found = self.named("imported")
        equal("uuids", sorted(one["uuid"] for one in found),
              sorted(scenario_steps.stable(f"import/{n}") for n in range(scenario_steps.IMPORTED)))
        for n, one in enumerate(found):
            same("event", one, {
                "uuid": scenario_steps.stable(f"import/{n}"), "historical": True,
                "distinct_id": f"past-{n % 3}",
            })
            same("properties", one["properties"], {"n": n})
            near("timestamp", one["timestamp"], scenario_steps.import_time(n), self.way)
            recent("created_at", one["created_at"])
        live = [one["event"] for one in self.events if one["historical"]]
        equal("historical", sorted(set(live)), ["imported"])

    def shutdown(self):
        """the last event is sent on shutting down"""
        self.sent_by_library(self.one("last words", "user-1"))

    def wrong_key(self):
        """the library gets an error for a wrong key, and nothing is stored"""
        found = [one for one in self.report["failures"]
                 if one["client"] == scenario_steps.CLIENT_WITH_WRONG_KEY]
        equal("failures", [one["status"] for one in found], [401])
        equal("lost", self.named("lost"), [])

    def counts(self):
        """nothing else is stored"""
        self.count(Counter({
            "visited": 1, "$create_alias": 1, "$groupidentify": 2, "order placed": 1,
            "invoice issued": 1, "heartbeat": 1, "step": scenario_steps.STEPS,
            "queued": self.queued, "imported": scenario_steps.IMPORTED, "last words": 1,
            self.library.identify: 3,
        }) + Counter({self.library.set_once: 2}) + Counter(["ping"] * self.library.makes_ids))

    def warnings(self):
        """nothing was dropped or altered but the second import"""
        self.warned(repeats=scenario_steps.IMPORTED)


class BrowserChecks(Stored):
    """After `scenario_steps.browser`."""

    CHECKS = [
        "delivered", "settings", "encodings", "page", "capture", "identify", "alias", "groups",
        "autocapture", "batch", "reload", "leaving", "counts", "warnings",
    ]

    def delivered(self):
        """the page ran without an error"""
        equal("errors", self.report["failures"], [])

    def settings(self):
        """the page may read every answer, and none is a refusal"""
        equal("kept from the page", self.report["blocked"], [])
        refused = {
            f"{one.method} {one.path.replace(self.project.key, 'KEY')} {one.status}"
            for one in self.answered()
            # The library falls back to the JSON of the same name.
            if one.status >= 400 and not one.path.endswith("/config.js")
        }
        equal("refused", sorted(refused), [])

    def answered(self):
        """Requests of the page as they came, without those that were to fail."""
        return sorted(
            (one for one in self.report["passed"]
             if not (self.ledger and one.status in (None, 503))),
            key=lambda one: one.arrived,
        )

    def encodings(self):
        """the library compresses bodies, needs no preflight, and uses beacons at the end"""
        asked = [one for one in self.answered() if one.path.rstrip("/") in ("/e", "/i/v0/e")]
        equal("methods", sorted({one.method for one in asked}), ["POST"])
        # The first ones may go before the settings are there.
        equal("compression at the end", asked[-1].compression, "gzip")
        equal("beacon at the end", asked[-1].by_beacon, True)
        for one in asked:
            equal("status", one.status, 204 if one.query.get("beacon") == "1" else 200)

    def page(self):
        """views of pages, with the visitor's session"""
        views = self.named("$pageview")
        equal("ids", [one["distinct_id"] for one in views], ["anon-1", "user-1"])
        for view in views:
            self.sent_by_library(view)
            assert view["properties"]["$current_url"].startswith("http://127.0.0.1:"), view
            equal("version of $session_id", uuid.UUID(view["properties"]["$session_id"]).version, 7)

    def capture(self):
        """an event with all kinds of values"""
        event = self.one("invoice issued")
        self.sent_by_library(event)
        same("properties", event["properties"], scenario_steps.EVERYTHING)
        same("event", event, {
            "distinct_id": "user-1", "elements_chain": "", "historical": False,
        })
        near("timestamp", event["timestamp"], scenario_steps.WHEN, self.way)
        now = self.one("order placed")
        recent("timestamp", now["timestamp"])
        same("properties", now["properties"], {"total": 19.5})

    def identify(self):
        """the visitor is identified"""
        visited = self.one("visited")
        same("visited", visited, {"distinct_id": "anon-1"})
        event = self.one("$identify")
        same("event", event, {"distinct_id": "user-1"})
        same("properties", event["properties"], {
            "$anon_distinct_id": "anon-1", "$set": {"email": "kei@mail.example", "seats": 3},
        })
        person = self.person("user-1")
        same("person", person, {"is_identified": True})
        expected = {"email": "kei@mail.example", "seats": 3, "plan_at_start": "free"}
        self.own_properties("user-1", person, expected)
        lifted = event["properties"]
        same("properties of user-1", person["properties"], {
            "$browser": lifted["$browser"], "$initial_browser": lifted["$browser"],
            "$os": lifted["$os"], "$initial_current_url": lifted["$current_url"],
        })
        for name in ("order placed", "after reload"):
            equal(f"person of {name}", self.one(name)["person"]["uuid"], person["uuid"])

    def alias(self):
        """all ids of the visitor lead to one person"""
        event = self.one("$create_alias")
        same("event", event, {"distinct_id": "user-1"})
        same("properties", event["properties"], {"alias": "other-1"})
        person = self.person("user-1")
        equal("distinct ids", sorted(person["distinct_ids"]), ["anon-1", "other-1", "user-1"])
        for distinct_id in ("anon-1", "other-1"):
            equal(distinct_id, self.person(distinct_id)["uuid"], person["uuid"])

    def groups(self):
        """a group and the events that follow"""
        named = {"$group_type": "company", "$group_key": "acme"}
        first, second = self.named("$groupidentify")
        same("first", first["properties"], named | {"$group_set": {"name": "Acme", "seats": 10}})
        later = {"$group_set": {"seats": 12, "city": "Berlin"}}
        same("second", second["properties"], named | later)
        self.group({"name": "Acme", "seats": 12, "city": "Berlin"})
        for name in ("order placed", "invoice issued", "after reload"):
            self.groups_of(self.one(name))

    def autocapture(self):
        """a click"""
        event = self.one("$autocapture")
        same("event", event, {"distinct_id": "user-1"})
        same("properties", event["properties"], {"$event_type": "click"})
        chain = event["elements_chain"]
        assert chain.startswith("button:") and 'text="Buy"' in chain, chain
        equal("$elements", event["properties"].get("$elements"), None)

    def batch(self):
        """everything that was captured at the same time"""
        counts = {"step": scenario_steps.PAGE_STEPS, "queued": scenario_steps.PAGE_QUEUED}
        for name, count in counts.items():
            found = self.named(name, "user-1")
            once_each(name, [one["properties"]["n"] for one in found], count)

    def reload(self):
        """a loaded page knows its visitor again"""
        event = self.one("after reload")
        before = self.named("queued")[-1]
        same("event", event, {"distinct_id": "user-1"})
        same("properties", event["properties"], {
            "$session_id": before["properties"]["$session_id"],
        })

    def leaving(self):
        """an event right before leaving the page"""
        same("event", self.one("leaving"), {"distinct_id": "user-1"})
        equal("$pageleave", len(self.named("$pageleave")), 2)

    def counts(self):
        """nothing else is stored"""
        self.count({
            "visited": 1, "$identify": 1, "$create_alias": 1, "$groupidentify": 2,
            "order placed": 1, "invoice issued": 1, "$autocapture": 1, "$pageview": 2,
            "$pageleave": 2, "step": scenario_steps.PAGE_STEPS,
            "queued": scenario_steps.PAGE_QUEUED, "after reload": 1, "leaving": 1,
        })

    def warnings(self):
        """nothing was dropped or altered"""
        self.warned(repeats=0)
