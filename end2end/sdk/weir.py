"""A Weir service of its own for a test: the binary, a temporary directory, free
ports. Ended by its process id, also when a test fails."""

import json
import os
import random
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

# For a build without optimisation on a busy machine.
PATIENCE = 120


class Weir:
    """Use as a context manager: running inside, stopped and removed after."""

    def __init__(self, binary):
        self.binary = os.path.abspath(binary)
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        self.process = None

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="weir-sdk-")
        try:
            self.log = open(os.path.join(self.directory.name, "weir.log"), "ab")
            self.instance = self.set_up()
            self.process = subprocess.Popen(
                [self.binary, "serve"], **self.surroundings(), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            self.wait_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        self.directory.cleanup()

    def surroundings(self):
        # Settings of whoever runs the test must not reach the service; the site
        # of a development build is no setting.
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_") or k == "WEIR_SITE"}
        env |= {
            "WEIR_LISTEN": self.address,
            "WEIR_METRICS_LISTEN": "off",
            "WEIR_DATA": os.path.join(self.directory.name, "data"),
        }
        return {"env": env, "cwd": self.directory.name, "stderr": self.log}

    def set_up(self):
        done = subprocess.run(
            [
                self.binary, "setup", "--email=owner@weir.example", "--name=Owner",
                "--organization=SDK", "--project=SDK", "--password-stdin", "--json",
            ],
            **self.surroundings(), input=b"correct horse battery staple 17\n",
            stdout=subprocess.PIPE, timeout=PATIENCE,
        )
        if done.returncode != 0:
            raise RuntimeError(f"`weir setup` failed:\n{self.last_lines()}")
        return json.loads(done.stdout)

    def wait_ready(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"`weir serve` ended:\n{self.last_lines()}")
            try:
                with urllib.request.urlopen(f"{self.url}/_readyz", timeout=PATIENCE):
                    return
            except (urllib.error.URLError, OSError):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"not ready:\n{self.last_lines()}") from None
                time.sleep(0.02)

    def last_lines(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-15:])

    def get(self, path, **query):
        """The JSON of a management answer."""
        request = urllib.request.Request(
            f"{self.url}{path}?{urllib.parse.urlencode(query)}",
            headers={"Authorization": f"Bearer {self.instance['personal_api_key']}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def events(self, **query):
        """Stored events, newest first."""
        return self.get(f"/api/projects/{self.instance['project_id']}/events/", **query)["results"]

    def event(self, uuid):
        """The stored event, as soon as it is readable."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = self.events(uuid=uuid)
            if found:
                assert len(found) == 1, found
                return found[0]
            time.sleep(0.02)
        raise AssertionError(f"event {uuid} was accepted and is not readable")


def free_port():
    # Below the ports that the system gives to clients: whoever keeps knocking at
    # one of those before the service listens may be given it as his own port.
    for port in random.sample(range(15_000, 30_000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("found no free port")
