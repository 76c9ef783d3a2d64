"""What is stored in a project, read back through the API of the service."""

import json
import urllib.request
import uuid

from waiting import wait_for

# Until something that was answered with 200 is readable, on a busy machine.
READABLE = 120


class Project:
    """Reads events, persons and groups of one project."""

    def __init__(self, weir, identifier, key):
        self.weir = weir
        self.path = f"/api/projects/{identifier}"
        self.key = key

    def events(self, **query):
        """All stored events, newest first."""
        page = self.weir.call(f"{self.path}/events/", limit=1000, **query)
        found = page["results"]
        while page["next"]:
            page = self.weir.call(page["next"])
            found += page["results"]
        return found

    def newest(self, **query):
        """The newest event, or none, as a list."""
        return self.weir.call(f"{self.path}/events/", limit=1, **query)["results"]

    def settle(self, distinct_ids):
        """Returns when all that was accepted about these ids before is readable.

        Events of one id are applied in order, so one more of each shows it; live
        ones and imported ones may come by different lanes."""
        sent = []
        for historical in (False, True):
            settled = [{"event": "settled", "distinct_id": one} for one in distinct_ids]
            sent += self.send(settled, historical)
        for event in sent:
            if not wait_for(lambda: self.newest(uuid=event["uuid"]), READABLE):
                raise AssertionError(f"what was accepted is not readable in {READABLE} s")

    def transform(self, source):
        """Enables a transformation with this code; returns when it works."""
        organization = self.weir.instance["organization_id"]
        plugins = f"/api/organizations/{organization}/pipeline_destinations/"
        plugin = self.weir.call(plugins, {"plugin_type": "source", "name": "Changes"})
        changed = self.weir.call(
            f"{plugins}{plugin['id']}/update_source/", {"index.js": source}, method="PATCH"
        )
        assert changed["source_errors"] == {}, changed["source_errors"]
        config = {"plugin": plugin["id"], "order": 1, "enabled": True}
        made = self.weir.call(f"{self.path}/pipeline_transformation_configs/", config)
        # A change works within a second, on a machine that is not busy.
        if not wait_for(self.transforms, READABLE):
            raise AssertionError(f"a transformation does not work after {READABLE} s")
        return f"{self.path}/pipeline_transformation_configs/{made['id']}/"

    def transforms(self):
        """Whether events are transformed by now: the source marks those named "probe"."""
        identifier = self.send([{"event": "probe", "distinct_id": "prober"}])[0]["uuid"]
        if not wait_for(lambda: self.newest(uuid=identifier), READABLE):
            raise AssertionError(f"what was accepted is not readable in {READABLE} s")
        return self.newest(uuid=identifier)[0]["properties"].get("probed") is True

    def send(self, events, historical=False):
        """Sends events without any library; gives them as they were sent."""
        batch = [
            {"uuid": str(uuid.uuid4()), "properties": {"$process_person_profile": False}} | event
            for event in events
        ]
        body = {"api_key": self.key, "batch": batch, "historical_migration": historical}
        request = urllib.request.Request(
            f"{self.weir.url}/batch/", json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=READABLE) as answer:
            assert answer.status == 200, answer.status
        return batch

    def persons(self, distinct_id):
        """The persons that this id leads to: one or none."""
        return self.weir.call(f"{self.path}/persons/", distinct_id=distinct_id)["results"]

    def person(self, identifier):
        return self.weir.call(f"{self.path}/persons/{identifier}/")

    def groups(self, group_type):
        return self.weir.call(f"{self.path}/groups/", group_type=group_type)["results"]

    def group_types(self):
        """In order of their indexes."""
        return self.weir.call(f"{self.path}/groups_types/")

    def warnings(self):
        """How many events were dropped or altered, by reason."""
        found = self.weir.call(f"{self.path}/ingestion_warnings/")["results"]
        return {entry["code"]: entry["count"] for entry in found}
