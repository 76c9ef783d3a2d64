"""What a library says in a request: the events of a body, and which of them the
answer has taken."""

import base64
import gzip
import json
import urllib.parse

from compare import text

EVENT_PATHS = {"/batch", "/e", "/i/v0/e", "/i/v1/analytics/events"}
V1 = "/i/v1/analytics/events"
# What a caller gives to an event and a person, beside plain properties.
GIVEN = {"$set", "$set_once", "$group_type", "$group_key", "$group_set"}


def events(path, body):
    """The events in the body of a request to this path."""
    if path.rstrip("/") not in EVENT_PATHS:
        return []
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    elif body.startswith(b"data="):
        form = urllib.parse.parse_qs(body.decode())
        body = base64.b64decode(form["data"][0])
    said = json.loads(body)
    if isinstance(said, dict):
        said = said.get("batch", [said])
    return [uniform(event) for event in said]


def uniform(event):
    """Name, id and properties where every form of the protocol has them in the end."""
    properties = dict(event.get("properties") or {})
    for name in ("$set", "$set_once"):
        if name in event:
            properties[name] = event[name]
    return {
        "uuid": event.get("uuid"),
        "event": event["event"],
        "distinct_id": event.get("distinct_id") or properties.get("distinct_id"),
        "properties": properties,
    }


def taken(path, said, status, answer):
    """Those of the events `said` that this answer promises to keep."""
    if status not in (200, 204):
        return []
    if path.rstrip("/") != V1:
        return said
    results = json.loads(answer)["results"]
    return [event for event in said if results[event["uuid"]]["result"] in ("ok", "warning")]


def content(event):
    """What the caller has given to an event, for comparing and for telling apart
    the events of a library that gives them no uuid."""
    properties = {
        name: value for name, value in event["properties"].items()
        if not name.startswith("$") or name in GIVEN
    }
    return text([event["event"], event["distinct_id"], properties])
