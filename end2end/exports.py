"""An export to S3 through its life on a running instance, by the clock on the wall:
every five minutes, a backfill of a month, a pause, another bucket. All through the
API; the files are compared with what the API says of the events. About twenty
minutes, because it waits for four ends of an interval.

    $WEIR_TOOLS/exports/bin/moto_server -H 127.0.0.1 -p 5000 &
    weir serve --egress-allow 127.0.0.1
    $WEIR_TOOLS/exports/bin/python end2end/exports.py --url http://127.0.0.1:8000 \\
        --key phx_... --project 1 --s3-endpoint http://127.0.0.1:5000

The key needs batch_export:write, event:read and project:read. Buckets and exports
that it makes have a number of their own; the exports are deleted at the end.
The same with a clock that a test moves: server/tests/api/exports/running.rs."""

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from datetime import datetime, timedelta, timezone

import boto3

# Seconds of an interval.
FIVE_MINUTES = 300
# From the end of an interval until its run is done: it may begin some seconds late.
RUN = 60
# A day's run begins a second or two after the one before.
BACKFILL = 300
# Until events that were accepted can be read.
READABLE = 120
# Days of the month.
DAYS = 30
# Events of a request.
TOGETHER = 500


class Api:
    """Requests with a key. JSON both ways."""

    def __init__(self, url, key, project):
        self.url = url.rstrip("/")
        self.key = key
        self.base = f"{self.url}/api/projects/{project}"

    def call(self, method, url, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, method=method)
        request.add_header("authorization", f"Bearer {self.key}")
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise SystemExit(f"{method} {url}: HTTP {error.code}: {said}") from None

    def get(self, path):
        return self.call("GET", f"{self.base}/{path}")

    def post(self, path, body):
        return self.call("POST", f"{self.base}/{path}", body)

    def send(self, token, events):
        """Through capture, which takes the project's key and no other."""
        for first in range(0, len(events), TOGETHER):
            batch = events[first:first + TOGETHER]
            self.call("POST", f"{self.url}/batch/", {"api_key": token, "batch": batch})

    def events(self, name):
        """The stored events of a name: times by ids."""
        found, page = {}, f"{self.base}/events/?event={name}&limit=1000"
        while page:
            answer = self.call("GET", page)
            found |= {event["uuid"]: event["timestamp"] for event in answer["results"]}
            page = answer["next"]
        return found


class Storage:
    """Buckets, and what is in them."""

    def __init__(self, endpoint, key_id, secret, region):
        self.endpoint, self.key_id, self.secret, self.region = endpoint, key_id, secret, region
        self.s3 = boto3.client(
            "s3", endpoint_url=endpoint, region_name=region,
            aws_access_key_id=key_id, aws_secret_access_key=secret,
        )

    def make(self, bucket):
        where = {}
        if self.region != "us-east-1":
            where["CreateBucketConfiguration"] = {"LocationConstraint": self.region}
        self.s3.create_bucket(Bucket=bucket, **where)

    def files(self, bucket, prefix):
        """The lines of each file, by names."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        return {key: self.read(bucket, key) for key in keys}

    def read(self, bucket, key):
        body = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return [json.loads(line) for line in body.splitlines()]

    def config(self, bucket, prefix):
        return {
            "bucket_name": bucket, "region": self.region, "prefix": prefix,
            "endpoint_url": self.endpoint,
            "aws_access_key_id": self.key_id, "aws_secret_access_key": self.secret,
        }


def wait(what, seconds, look, pause=2.0):
    """What `look` gives, once that is something."""
    until = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > until:
            raise SystemExit(f"{what}: not within {seconds} seconds")
        time.sleep(pause)


def now():
    return datetime.now(timezone.utc)


def text(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def end_of_interval(moment):
    """The first end of an interval after this moment."""
    seconds = int(moment.timestamp()) // FIVE_MINUTES * FIVE_MINUTES + FIVE_MINUTES
    return datetime.fromtimestamp(seconds, timezone.utc)


def made_up(name, times):
    return [
        {"event": name, "uuid": str(uuid.uuid4()), "distinct_id": f"user-{number % 50}",
         "timestamp": moment.isoformat(), "properties": {"number": number}}
        for number, moment in enumerate(times)
    ]


def of(name, files):
    """The lines of the events of this name, by names of files that have some."""
    found = {
        key: [line for line in lines if line["event"] == name] for key, lines in files.items()
    }
    return {key: lines for key, lines in found.items() if lines}


def same(what, files, expected):
    """That the files hold these events, each once."""
    found = Counter(line["uuid"] for lines in files.values() for line in lines)
    twice = sum(1 for times in found.values() if times > 1)
    missing, more = expected - found.keys(), found.keys() - expected
    if missing or more or twice:
        raise SystemExit(
            f"{what}: {len(missing)} events are missing, {len(more)} do not belong there, "
            f"{twice} are there more than once"
        )


class Scenario:
    """One export, and a second one for the month."""

    def __init__(self, api, storage, count):
        self.api, self.storage, self.count = api, storage, count
        self.begun = time.monotonic()
        self.token = api.get("")["api_token"]
        number = uuid.uuid4().hex[:8]
        self.name = f"bought-{number}"
        self.first, self.second = f"weir-first-{number}", f"weir-second-{number}"
        self.exports = []

    def log(self, line):
        print(f"{time.monotonic() - self.begun:7.1f} s  {line}", flush=True)

    def export(self, interval, prefix, paused=False):
        body = {
            "name": f"{prefix} {self.name}", "interval": interval, "paused": paused,
            "destination": {"type": "S3", "config": self.storage.config(self.first, prefix)},
        }
        path = f"batch_exports/{self.api.post('batch_exports/', body)['id']}/"
        self.exports.append(path)
        return path

    def ingest(self, name, times):
        """Sends events and waits until they can be read; gives their ids."""
        events = made_up(name, times)
        begun = time.monotonic()
        self.api.send(self.token, events)
        ids = {event["uuid"] for event in events}
        wait("events can be read", READABLE, lambda: ids <= self.api.events(name).keys(), 5.0)
        self.log(f"{len(ids)} events {name} accepted and readable in "
                  f"{time.monotonic() - begun:.1f} s")
        return ids

    def run_until(self, path, end):
        """Waits for the run of the interval that ends then."""
        def look():
            runs = self.api.get(f"{path}runs/")["results"]
            ended = [run for run in runs if run["data_interval_end"] == text(end)]
            return next((run for run in ended if run["finished_at"]), None)

        left = max(0, (end - now()).total_seconds())
        self.log(f"waiting {left:.0f} s for the end of the interval at {text(end)}")
        run = wait(f"the run that ends at {text(end)}", left + RUN, look)
        counts = run["records_completed"], run["records_total_count"]
        if run["status"] != "Completed" or counts[0] != counts[1]:
            raise SystemExit(f"the run: {json.dumps(run, indent=2)}")
        late = datetime.fromisoformat(run["finished_at"]) - end
        self.log(f"run Completed with {counts[0]} of {counts[1]} events, "
                  f"{late.total_seconds():.1f} s after the end of its interval")
        return run

    def filled(self, path, answer):
        """Waits for the end of the backfill that an answer names."""
        begun = time.monotonic()
        where = f"{path}backfills/{answer['backfill_id']}/"

        def look():
            backfill = self.api.get(where)
            return backfill if backfill["finished_at"] else None

        done = wait("the backfill", BACKFILL, look)
        if done["status"] != "Completed":
            raise SystemExit(f"the backfill: {json.dumps(done, indent=2)}")
        self.log(f"backfill Completed with {done['progress']['total_runs']} runs in "
                  f"{time.monotonic() - begun:.1f} s")

    def clear_of_a_boundary(self):
        """Not so near to the end of an interval that events come on both sides."""
        left = (end_of_interval(now()) - now()).total_seconds()
        if left < 45:
            self.log(f"waiting {left:.0f} s for the next interval")
            time.sleep(left + 1)

    def every_five_minutes(self):
        self.clear_of_a_boundary()
        path = self.export("every 5 minutes", "five")
        sent = self.ingest(self.name, [now()] * self.count)
        run = self.run_until(path, end_of_interval(now()))
        files = self.storage.files(self.first, "five/")
        stored = self.api.events(self.name).keys()
        if stored != sent:
            raise SystemExit(f"{len(stored)} events are stored of {len(sent)}")
        same("every five minutes", of(self.name, files), stored)
        lines = sum(len(lines) for lines in files.values())
        if lines != run["records_completed"]:
            raise SystemExit(f"{lines} lines, and the run says {run['records_completed']}")
        self.log(f"{len(files)} file with {lines} lines: as GET events says")
        return path

    def month(self, path):
        """By days; and the export of five minutes has them too, because it exports
        what comes, whenever that happened."""
        self.clear_of_a_boundary()
        name = f"{self.name}-month"
        midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
        start = midnight - timedelta(days=DAYS)
        hours = [start + timedelta(hours=hour) for hour in range(DAYS * 24)]
        sent = self.ingest(name, hours)
        by_days = self.export("day", "days", paused=True)
        bounds = {"start_at": start.isoformat(), "end_at": midnight.isoformat()}
        self.filled(by_days, self.api.post(f"{by_days}backfill/", bounds))
        files = of(name, self.storage.files(self.first, "days/"))
        same("the month", files, sent)
        if len(files) != DAYS or any(len(lines) != 24 for lines in files.values()):
            counts = {key: len(lines) for key, lines in files.items()}
            raise SystemExit(f"files: {json.dumps(counts, indent=2)}")
        self.log(f"{len(files)} files of days with 24 events each")
        self.run_until(path, end_of_interval(now()))
        same("late events", of(name, self.storage.files(self.first, "five/")), sent)
        self.log(f"{len(sent)} late events in the files of five minutes too")

    def pause(self, path):
        self.clear_of_a_boundary()
        self.api.post(f"{path}pause/", {})
        name = f"{self.name}-missed"
        missed = self.ingest(name, [now()] * 100)
        end = end_of_interval(now())
        left = (end - now()).total_seconds() + 15
        self.log(f"paused; waiting {left:.0f} s until an interval has passed")
        time.sleep(left)
        runs = self.api.get(f"{path}runs/")["results"]
        if any(run["data_interval_end"] == text(end) for run in runs):
            raise SystemExit("an export that is paused has a run")
        if of(name, self.storage.files(self.first, "five/")):
            raise SystemExit("an export that is paused has written")
        self.log("no run and no file of the pause")
        self.filled(path, self.api.post(f"{path}unpause/", {"backfill": True}))
        files = of(name, self.storage.files(self.first, "five/"))
        same("the pause", files, missed)
        self.log(f"unpaused: {len(files)} more file with {len(missed)} events")

    def other_bucket(self, path):
        self.clear_of_a_boundary()
        before = self.storage.files(self.first, "five/")
        change = {"destination": {"config": {"bucket_name": self.second}}}
        self.api.call("PATCH", f"{self.api.base}/{path}", change)
        name = f"{self.name}-moved"
        sent = self.ingest(name, [now()] * 100)
        self.run_until(path, end_of_interval(now()))
        same("the other bucket", of(name, self.storage.files(self.second, "five/")), sent)
        if self.storage.files(self.first, "five/") != before:
            raise SystemExit("the first bucket has changed")
        self.log(f"{len(sent)} events in the other bucket, the first as it was")

    def whole(self):
        self.storage.make(self.first)
        self.storage.make(self.second)
        try:
            path = self.every_five_minutes()
            self.month(path)
            self.pause(path)
            self.other_bucket(path)
        finally:
            for path in self.exports:
                self.api.call("DELETE", f"{self.api.base}/{path}")
        self.log("all is as it should be")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--url", required=True, help="address of the instance")
    parser.add_argument("--key", required=True, help="personal API key")
    parser.add_argument("--project", required=True, type=int, help="number of a project")
    parser.add_argument("--s3-endpoint", required=True, help="address of the storage")
    parser.add_argument("--s3-key", default="weir", help="access key of the storage")
    parser.add_argument("--s3-secret", default="weir-secret", help="its secret")
    parser.add_argument("--s3-region", default="us-east-1")
    parser.add_argument("--events", default=1000, type=int, help="events of the first run")
    given = parser.parse_args()
    storage = Storage(given.s3_endpoint, given.s3_key, given.s3_secret, given.s3_region)
    Scenario(Api(given.url, given.key, given.project), storage, given.events).whole()


if __name__ == "__main__":
    sys.exit(main())
