"""The tested libraries: how to start the driver of each, and how they differ."""

import json
import os
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).parent

REMOTE_CONFIG = "/api/projects/@current/feature_flags/new-page/remote_config"
PAGE_FEATURES = ("/api/surveys", "/api/early_access_features", "/api/web_experiments")


@dataclass(frozen=True)
class Library:
    """A published library at the version that the test set-up installs."""

    name: str
    version: str
    # `$lib` of its events.
    lib: str
    command: list = field(repr=False)
    browser: bool = False
    # The protocol that it is set to (ING-26), if not its default.
    protocol: str | None = None
    # Names of the events that its calls for persons make.
    identify: str = "$identify"
    set_once: str = "$set_once"
    # Whether it keeps whole numbers beyond 2^53.
    counts_exactly: bool = True
    # Whether it compresses bodies by default.
    compresses: bool = False
    # Whether it makes an id for events without one.
    makes_ids: bool = True
    # Whether it marks its events with `$is_server`, so that its machine is
    # not stored as the device of the person.
    is_server: bool = True
    # Whether each event has a uuid, by which a second one is known.
    gives_uuids: bool = True
    # For how long the service answers 503; shorter than the library tries.
    outage: float = 5.0
    # Options without which the outage could be longer than it tries.
    outage_options: dict = field(default_factory=dict)
    # How often it sends a batch that is always answered with 503, and one for which
    # there is no connection; None: longer than a test can wait. After the last attempt
    # the events of the batch are lost, but see the next two.
    tries: int | None = 4
    tries_to_connect: int | None = 4
    # Whether a batch that found no connection goes with the next one: node removes
    # only answered batches from its queue (`_flushRoute` of @posthog/core).
    keeps_unconnected: bool = False
    # Whether shutting down makes all attempts. posthog-rs makes one, and does not report
    # the lost events (`Pipeline::attempt` of its transport.rs); and each flush
    # is an attempt without a wait before it.
    waits_at_shutdown: bool = True
    # Whether a batch that is sent again says that it was sent when it was first,
    # which moves its events by the wait: their time is corrected by it (ING-38).
    # node and posthog-rs keep the body, posthog-js 1.200 an `offset`.
    keeps_sent_at: bool = False
    # Paths that it asks for features which the service does not offer, of those that
    # the scenario of features calls for.
    asks: tuple = ()
    # Seconds between two events of a stream. A page may send ten a second.
    pause: float = 0.02

    def __str__(self):
        protocol = f", protocol {self.protocol}" if self.protocol else ""
        return f"{self.name} {self.version}{protocol}"

    def environment(self):
        chosen = {"POSTHOG_CAPTURE_MODE": self.protocol} if self.protocol else {}
        return os.environ | chosen


def all_libraries():
    python = pinned("../requirements.txt", r"^posthog==(.+)$")
    python3 = pinned("../requirements-posthog3.txt", r"^posthog==(.+)$")
    rust = pinned("rust/Cargo.toml", r'^posthog-rs = .*"=([^"]+)"')
    packages = json.loads((HERE / "../package.json").read_text())["devDependencies"]
    page = packages["posthog-js"]
    old_page = packages["posthog-js-1.200"].removeprefix("npm:posthog-js@")
    tools = os.environ["WEIR_TOOLS"]
    target = os.environ["CARGO_TARGET_DIR"]
    python_now = Library(
        "posthog-python", python, "posthog-python",
        [sys.executable, "-B", HERE / "posthog_python.py"], identify="$set",
        asks=("/flags/definitions", REMOTE_CONFIG),
    )
    node = Library(
        "posthog-node", packages["posthog-node"], "posthog-node",
        ["node", HERE / "posthog_node.mjs"], set_once="$set", counts_exactly=False, compresses=True,
        keeps_unconnected=True, keeps_sent_at=True, asks=("/flags/definitions", REMOTE_CONFIG),
    )
    return [
        python_now,
        replace(python_now, protocol="v1"),
        Library(
            "posthog-python", python3, "posthog-python",
            [f"{tools}/posthog3/bin/python", "-B", HERE / "posthog_python.py"],
            makes_ids=False, is_server=False, gives_uuids=False,
            # It waits at random, from nothing to 1, 2, 4 … seconds.
            outage=3.0, outage_options={"patient": True},
            asks=("/api/feature_flag/local_evaluation", REMOTE_CONFIG),
        ),
        node,
        # Another sender, which removes every batch from its queue after an attempt, and
        # has its own time for each request (`V1CaptureSender`).
        replace(node, protocol="v1", keeps_unconnected=False, keeps_sent_at=False),
        Library(
            "posthog-rs", rust, "posthog-rs", [f"{target}/sdk-rust/debug/weir-sdk-rust"],
            # It tries again after 0.2 and 0.4 s; Retry-After makes that a second each.
            outage=1.5, tries=3, tries_to_connect=3, waits_at_shutdown=False,
            keeps_sent_at=True,
        ),
        Library(
            "posthog-js", page, "web", ["node", HERE / "posthog_browser.mjs", "posthog-js"],
            browser=True, counts_exactly=False, tries=None, pause=0.12,
            asks=(*PAGE_FEATURES, "/api/product_tours"),
        ),
        Library(
            "posthog-js", old_page, "web",
            ["node", HERE / "posthog_browser.mjs", "posthog-js-1.200"],
            browser=True, counts_exactly=False, tries=None, tries_to_connect=None,
            pause=0.12, keeps_sent_at=True, asks=PAGE_FEATURES,
        ),
    ]


def older_pages():
    """Libraries of pages that were loaded once and never updated. Their events are in the
    API tests; here they request features."""
    packages = json.loads((HERE / "../package.json").read_text())["devDependencies"]
    return [
        Library(
            "posthog-js", packages[name].removeprefix("npm:posthog-js@"), "web",
            ["node", HERE / "posthog_browser.mjs", name], browser=True, asks=asks,
        )
        for name, asks in {
            "posthog-js-1.24": ("/decide",),
            "posthog-js-1.57": ("/decide", "/api/early_access_features"),
            "posthog-js-1.116": ("/decide", "/api/surveys", "/api/early_access_features"),
        }.items()
    ]


def pinned(path, pattern):
    """The version that the set-up installs; stored events must name it too."""
    return re.search(pattern, (HERE / path).read_text(), re.MULTILINE)[1]
