"""A Weir service of its own for a test: the binary, a temporary directory, free
ports. Can be stopped and started again on the same port and data; ended by its
process id, also when a test fails."""

import json
import os
import random
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from project import Project

# For a build without optimisation on a busy machine.
PATIENCE = 120


class Weir:
    """Use as a context manager: running inside, stopped and removed after."""

    def __init__(self, binary):
        self.binary = os.path.abspath(binary)
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        self.process = None
        self.making = threading.Lock()

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="weir-sdk-")
        try:
            self.log = open(os.path.join(self.directory.name, "weir.log"), "ab")
            self.instance = self.set_up()
            self.start()
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

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, "serve"], **self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self.wait_ready()

    def stop(self, signal):
        """Ends the process with this signal; its data stay for the next start."""
        self.process.send_signal(signal)
        self.process.wait(PATIENCE)

    def environment(self):
        # Settings of the environment must not reach the service; the site of a
        # development build is no setting.
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_") or k == "WEIR_SITE"}
        env |= {
            "WEIR_LISTEN": self.address,
            "WEIR_METRICS_LISTEN": "off",
            "WEIR_DATA": os.path.join(self.directory.name, "data"),
            # Reading back asks more often than any client.
            "WEIR_RATE_PER_MINUTE": "0",
            "WEIR_RATE_PER_HOUR": "0",
        }
        return {"env": env, "cwd": self.directory.name, "stderr": self.log}

    def set_up(self):
        done = subprocess.run(
            [
                self.binary, "setup", "--email=owner@weir.example", "--name=Owner",
                "--organization=SDK", "--project=SDK", "--password-stdin", "--json",
            ],
            **self.environment(), input=b"correct horse battery staple 17\n",
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

    def call(self, path, body=None, method=None, **query):
        """The JSON of a management answer; `path` may be a link of an answer. The method
        is POST where there is a body, unless it is named."""
        url = urllib.parse.urljoin(self.url, path)
        if query:
            url += "?" + urllib.parse.urlencode(query)
        request = urllib.request.Request(
            url,
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {self.instance['personal_api_key']}",
                "Content-Type": "application/json",
            },
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")
            raise AssertionError(f"{path} answered {error.code}: {detail}") from None

    def new_project(self, name):
        """An empty project, so that scenarios do not see the events of others."""
        # Many requests at the same time in one organization are refused with 503.
        with self.making:
            made = self.call(
                f"/api/organizations/{self.instance['organization_id']}/projects/",
                {"name": name},
            )
        return Project(self, made["id"], made["api_token"])


# Ports that this process has given away; some are not listened at yet.
GIVEN = set()


def free_port():
    # Below the ports that the system gives to clients: a client that tries to connect
    # to one of those before the service listens may get it as its own port.
    for port in random.sample(range(15_000, 30_000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in GIVEN:
                GIVEN.add(port)
                return port
    raise RuntimeError("found no free port")
