"""A validator of SCIM 2.0 (scim2-tester) against a running service: it reads what the
service says of itself, and makes, reads, changes and removes users and groups.

    python end2end/api/scim.py

The binary is $WEIR_BIN. The validator makes up values. A user has one address, which is of
the domain, so those values are corrected here."""

import os
import re
import socketserver
import sys
import threading

import dns.message
import dns.rrset
import httpx2
import scim2_tester
import scim2_tester.checkers as checkers
import scim2_tester.filling as filling
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sdk"))

from weir import Weir  # noqa: E402

DOMAIN = "tea.example"
# The validator removes these and expects that nothing is left. A user always has an
# address, a name, and is active or not.
KEPT = ("active", "emails", "name")


class NameServer(socketserver.UDPServer):
    """Answers every question for a TXT record with one text."""

    text = ""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), NameServer.Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Answer(socketserver.BaseRequestHandler):
        def handle(self):
            data, socket = self.request
            question = dns.message.from_wire(data)
            answer = dns.message.make_response(question)
            name = question.question[0].name
            answer.answer.append(
                dns.rrset.from_text(name, 60, "IN", "TXT", f'"{self.server.text}"')
            )
            socket.sendto(answer.to_wire(), self.client_address)


class ProvisionedWeir(Weir):
    """A service that asks the name server of the test."""

    def __init__(self, binary, names):
        super().__init__(binary)
        self.names = names

    def environment(self):
        with_names = super().environment()
        host, port = self.names.server_address
        with_names["env"]["WEIR_DNS_SERVERS"] = f"{host}:{port}"
        return with_names

    def provider(self):
        """The SCIM address of a verified domain, and its token."""
        domains = f"/api/organizations/{self.instance['organization_id']}/domains/"
        claimed = self.call(domains, {"domain": DOMAIN})
        self.names.text = claimed["verification_challenge"]
        verified = self.call(f"{domains}{claimed['id']}/verify/", {})
        assert verified["is_verified"], verified
        token = self.call(f"{domains}{claimed['id']}/scim/token/", {})
        return f"{self.url}/scim/v2/{claimed['id']}", token["value"]


def correct_values():
    """Makes the validator use addresses of the domain, one for each user."""
    made_up = filling.generate_random_value

    def corrected(value):
        if isinstance(value, list):
            return [corrected(one) for one in value]
        if hasattr(value, "primary"):
            value.primary = True
        is_address = isinstance(value, str) and "@" in value
        return re.sub("@.*", f"@{DOMAIN}", value) if is_address else value

    def generate(context, path, *arguments, required=None, **named):
        value = corrected(made_up(context, path, *arguments, required=required, **named))
        # Where only what is required is sent, there is no other place for the address.
        is_alone = value is not None and required and str(path).endswith("userName")
        return f"{value}@{DOMAIN}" if is_alone else value

    for module in [filling, *vars(checkers).values()]:
        if getattr(module, "generate_random_value", None) is made_up:
            module.generate_random_value = generate


def is_known(result):
    """Whether a result is a deviation that is meant."""
    if result.title == "check_remove_attribute":
        return any(f"'{name}'" in result.reason or f":{name}'" in result.reason for name in KEPT)
    # The formatted name is made from the two names, and a user has one address.
    return result.title in ("check_add_attribute", "check_replace_attribute") and (
        "unexpected value for 'name'" in result.reason
        or (result.title == "check_add_attribute" and "value for 'emails'" in result.reason)
    )


def main():
    correct_values()
    passed = failed = 0
    with NameServer() as names, ProvisionedWeir(os.environ["WEIR_BIN"], names) as weir:
        address, token = weir.provider()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=address, headers=headers, timeout=120) as client:
            for result in scim2_tester.check_server(SyncSCIMClient(client)):
                if result.status == Status.SUCCESS:
                    passed += 1
                elif result.status in (Status.ERROR, Status.CRITICAL) and not is_known(result):
                    failed += 1
                    print(f"failed {result.resource_type} {result.title}: {result.reason}")
    # Fewer mean that the validator did not come far.
    if passed < 50:
        failed += 1
        print(f"failed: only {passed} checks were made")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
