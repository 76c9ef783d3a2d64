"""People of an instance and their keys, made as people make them: by invite, sign-in
and the page for keys."""

import http.client
import json
import urllib.parse

PASSWORD = "correct horse battery staple 17"


class Person:
    """A user with a session."""

    def __init__(self, weir, cookie):
        self.weir = weir
        self.cookie = cookie

    @classmethod
    def signing_in(cls, weir, email, password=PASSWORD):
        answer = _send(weir, "/api/login/", {"email": email, "password": password})
        return cls(weir, _cookie(answer))

    @classmethod
    def invited(cls, weir, email, level):
        """A new member of the instance's organization."""
        organization = weir.instance["organization_id"]
        invite = weir.call(
            f"/api/organizations/{organization}/invites/",
            {"target_email": email, "level": level},
        )
        account = {"first_name": "Grace", "password": PASSWORD}
        answer = _send(weir, f"/api/signup/{invite['token']}/", account)
        person = cls(weir, _cookie(answer))
        person.uuid = json.loads(answer.text)["uuid"]
        return person

    def key(self, preset="all", scopes=()):
        """The value of a new key: `all`, `read`, or `custom` with scopes."""
        fields = [("label", f"test {preset}"), ("preset", preset), ("days", "7")]
        fields += [("scopes[]", scope) for scope in scopes]
        self._call("create_key", fields)
        return json.loads(self._call("reveal_key", []).text)["value"]

    def _call(self, function, fields):
        return _send(
            self.weir, f"/_fn/{function}", urllib.parse.urlencode(fields),
            {"Cookie": self.cookie, "Sec-Fetch-Site": "same-origin"},
        )


def _send(weir, path, body, headers=None):
    """POST: an object as JSON, a text as a form. Fails unless it is taken."""
    is_form = isinstance(body, str)
    kind = "application/x-www-form-urlencoded" if is_form else "application/json"
    connection = http.client.HTTPConnection(weir.address, timeout=120)
    try:
        connection.request(
            "POST", path, body if is_form else json.dumps(body),
            {"Content-Type": kind, "Accept": "application/json"} | (headers or {}),
        )
        answer = connection.getresponse()
        answer.text = answer.read().decode()
    finally:
        connection.close()
    if answer.status >= 400:
        raise AssertionError(f"{path} answered {answer.status}: {answer.text}")
    return answer


def _cookie(answer):
    return answer.headers["Set-Cookie"].split(";")[0]
