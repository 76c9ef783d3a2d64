"""The events in the body of a request, and which of them the answer accepts."""

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
    sent = json.loads(body)
    if isinstance(sent, dict):
        sent = sent.get("batch", [sent])
    return [uniform(event) for event in sent]


def uniform(event):
    """Name, id and properties in the same places for every form of the protocol."""
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


def accepted(path, sent, status, answer):
    """The events of `sent` that this answer acknowledges."""
    if status not in (200, 204):
        return []
    if path.rstrip("/") != V1:
        return sent
    results = json.loads(answer)["results"]
    return [event for event in sent if results[event["uuid"]]["result"] in ("ok", "warning")]


def content(event):
    """The values that the caller gave to an event, for comparing events, and for
    identifying events of a library that gives them no uuid."""
    properties = {
        name: value for name, value in event["properties"].items()
        if not name.startswith("$") or name in GIVEN
    }
    return text([event["event"], event["distinct_id"], properties])
