"""A gateway between a library and the service: passes everything on, notes what
passed, and can answer 503 for a while as an overloaded service would."""

import http.client
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Headers that belong to one connection.
OF_A_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class Passed:
    """One request and its answer."""

    def __init__(self, method, target, headers, body, status):
        self.method = method
        # `navigator.sendBeacon` sends like this, and nothing else of a library does.
        self.by_beacon = headers.get("Sec-Fetch-Mode") == "no-cors" and method == "POST"
        parts = urllib.parse.urlsplit(target)
        self.path = parts.path
        self.query = dict(urllib.parse.parse_qsl(parts.query))
        self.status = status
        if body.startswith(b"\x1f\x8b"):
            self.packing = "gzip"
        elif body.startswith(b"data="):
            self.packing = "form"
        else:
            self.packing = "plain" if body else None


class Gateway:
    """Use as a context manager: listening inside, at `url`."""

    def __init__(self, service):
        self.service = urllib.parse.urlsplit(service).netloc
        self.refuses_until = 0.0
        self.passed = []

    def __enter__(self):
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                refused = time.monotonic() < gateway.refuses_until and self.command == "POST"
                answer = gateway.refusal(self.headers) if refused else gateway.ask(self, body)
                status, headers, content = answer
                one = Passed(self.command, self.path, self.headers, body, status)
                gateway.passed.append(one)
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

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A library that has gone away is its own affair.
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def refuse(self, seconds):
        """Answers 503 to whatever is sent from now on."""
        self.refuses_until = time.monotonic() + seconds

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
        """As the service itself refuses for the time being (ingestion 1.4, 3.2)."""
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
