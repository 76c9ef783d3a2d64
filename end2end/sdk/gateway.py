"""A gateway between a library and the service: passes everything on, notes what
passed, can answer 503 for a while as an overloaded service would, and can go away
as a stopped one does."""

import http.client
import socket
import threading
import time
import urllib.parse
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import wire
from weir import free_port

# Headers that belong to one connection.
OF_A_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class Passed:
    """One request and its answer; a status of None is no answer at all."""

    def __init__(self, arrived, method, target, headers, body, status, answer):
        # Answers come in an order of their own.
        self.arrived = arrived
        self.method = method
        # `navigator.sendBeacon` sends like this, and nothing else of a library does.
        self.by_beacon = headers.get("Sec-Fetch-Mode") == "no-cors" and method == "POST"
        parts = urllib.parse.urlsplit(target)
        self.path = parts.path
        self.query = dict(urllib.parse.parse_qsl(parts.query))
        self.status = status
        self.body = body
        self.answer = answer

    @property
    def compression(self):
        if self.body.startswith(b"\x1f\x8b"):
            return "gzip"
        if self.body.startswith(b"data="):
            return "form"
        return "plain" if self.body else None

    @cached_property
    def events(self):
        """The events that were sent."""
        return wire.events(self.path, self.body) if self.method == "POST" else []

    def accepted(self):
        """The events that the answer acknowledges."""
        return wire.accepted(self.path, self.events, self.status, self.answer)


class Listener(ThreadingHTTPServer):
    """Knows its open connections, so that they can be cut."""

    daemon_threads = True
    # All requests of a page come at the same time.
    request_queue_size = 128

    def __init__(self, *arguments):
        self.connections = set()
        super().__init__(*arguments)

    def get_request(self):
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request):
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, *_):
        """A library may close its connection at any time."""

    def cut(self):
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It is closed already.
                pass


class Gateway:
    """Use as a context manager: listening inside, at `url`."""

    def __init__(self, service):
        self.service = urllib.parse.urlsplit(service).netloc
        # For how long it is to refuse, and since when it has; None until it does.
        self.refuses_for = 0.0
        self.refuses_since = None
        self.passed = []
        self.address = ("127.0.0.1", free_port())
        self.url = f"http://127.0.0.1:{self.address[1]}"
        self.listener = None
        # Set when the gateway goes away; None while answers are not kept back.
        self.holding = None
        # How many answers no library has heard.
        self.unheard = 0

    def __enter__(self):
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                arrived = time.monotonic()
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if gateway.listener is None:
                    self.close_connection = True
                    return
                refused = gateway.refuses(arrived, self.command, self.path, body)
                try:
                    answer = gateway.refusal(self.headers) if refused else gateway.ask(self, body)
                except (OSError, http.client.HTTPException):
                    # The service is gone; so is the connection then.
                    answer = None, [], b""
                    self.close_connection = True
                status, headers, content = answer
                gateway.passed.append(Passed(
                    arrived, self.command, self.path, self.headers, body, status, content
                ))
                if status is None:
                    return
                if holding := gateway.holding:
                    gateway.unheard += 1
                    holding.wait()
                    self.close_connection = True
                    return
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                if status not in (204, 304):
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_OPTIONS = answer

            def log_message(self, *_):
                pass

        self.handler = Handler
        self.back()
        return self

    def __exit__(self, *_):
        if self.listener is not None:
            self.away()

    def refuse(self, seconds):
        """Answers 503 to all requests from the next events on, for this time. A library that
        sends late gets it as well."""
        self.refuses_since = None
        self.refuses_for = seconds

    def refuses(self, arrived, method, target, body):
        """Whether this request is refused."""
        if method != "POST" or not self.refuses_for:
            return False
        if self.refuses_since is None and wire.events(urllib.parse.urlsplit(target).path, body):
            self.refuses_since = arrived
        since = self.refuses_since
        return since is not None and arrived < since + self.refuses_for

    def accepts_again(self):
        """Whether events have been accepted since the end of the refusal."""
        since = self.refuses_since
        return since is not None and any(
            one.status == 200 and one.events
            for one in list(self.passed) if one.arrived >= since + self.refuses_for
        )

    def hold(self):
        """Keeps back all answers until the gateway goes away: the service has handled the
        requests, and the library does not learn it."""
        self.holding = threading.Event()

    def away(self):
        """Refuses connections, and cuts those that there are."""
        if self.holding is not None:
            self.holding.set()
            self.holding = None
        listener, self.listener = self.listener, None
        listener.shutdown()
        listener.server_close()
        listener.cut()

    def back(self):
        """Listens again, at the same port."""
        self.listener = Listener(self.address, self.handler)
        # How often it checks whether it has to end.
        often = {"poll_interval": 0.02}
        threading.Thread(target=self.listener.serve_forever, kwargs=often, daemon=True).start()

    def ask(self, request, body):
        """What the service answers."""
        headers = {k: v for k, v in request.headers.items() if k.lower() not in OF_A_HOP}
        connection = http.client.HTTPConnection(self.service, timeout=60)
        try:
            connection.request(request.command, request.path, body or None, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in OF_A_HOP]
        return answer.status, kept, content

    @staticmethod
    def refusal(headers):
        """As the service itself refuses for the time being (ING-4, ING-7)."""
        content = b'{"type":"server_error","code":"not_accepted","detail":"Later.","attr":null}'
        answer = [("Content-Type", "application/json"), ("Retry-After", "1")]
        if "Origin" in headers:
            answer += [
                ("Access-Control-Allow-Origin", headers["Origin"]),
                ("Access-Control-Allow-Credentials", "true"),
                ("Access-Control-Expose-Headers", "Retry-After"),
            ]
        return 503, answer, content

    def refused(self):
        return [one for one in self.passed if one.status == 503]
