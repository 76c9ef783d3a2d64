"""An identity provider of SAML for tests. It asks for an address on a page, and signs a
response for it. The page has a choice to sign with a key that is not the announced one.

    idp.py

It writes `Listening on URL`. `/settings` has what an administrator enters in Weir."""

import base64
import html
import json
import secrets
import urllib.parse
import zlib
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape, quoteattr

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from lxml import etree
from signxml import SignatureConstructionMethod, XMLSigner

PROTOCOL = "urn:oasis:names:tc:SAML:2.0:protocol"
ASSERTION = "urn:oasis:names:tc:SAML:2.0:assertion"
SIGNATURE = "http://www.w3.org/2000/09/xmldsig#"
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
# Most bytes of a request, before and after it is decompressed.
REQUEST_MAX = 64 << 10


class Key:
    """A private key, and its certificate as PEM."""

    def __init__(self):
        self.key = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp.example")])
        now = datetime.now(timezone.utc)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=30))
            .sign(self.key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM).decode()


class Request:
    """The request of a service, as the browser brings it in a query."""

    def __init__(self, text, sign_in_url):
        self.text = text
        decompress = zlib.decompressobj(-15)
        document = decompress.decompress(base64.b64decode(text), REQUEST_MAX)
        root = etree.fromstring(document, etree.XMLParser(resolve_entities=False))
        if root.tag != f"{{{PROTOCOL}}}AuthnRequest":
            raise ValueError(f"not a request: {root.tag}")
        if root.get("Destination") != sign_in_url:
            raise ValueError(f"for another identity provider: {root.get('Destination')}")
        self.id = root.get("ID")
        self.acs_url = root.get("AssertionConsumerServiceURL")
        self.service = root.findtext(f"{{{ASSERTION}}}Issuer")


def respond(request, issuer, email, signed_by):
    """The signed response to a request, for the user with this address."""

    def time(minutes=0):
        at = datetime.now(timezone.utc) + timedelta(minutes=minutes)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def attribute(name, value):
        value = f"<saml:AttributeValue>{escape(value)}</saml:AttributeValue>"
        return f"<saml:Attribute Name={quoteattr(name)}>{value}</saml:Attribute>"

    end, answers = time(5), quoteattr(request.id)
    acs_url, issuer = quoteattr(request.acs_url), f"<saml:Issuer>{escape(issuer)}</saml:Issuer>"
    first_name = email.split("@")[0].capitalize()
    assertion = sign(
        f"""<saml:Assertion xmlns:saml="{ASSERTION}" ID="_{secrets.token_hex(16)}"
        IssueInstant="{time()}" Version="2.0">{issuer}<saml:Subject>
        <saml:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">{
            escape(f"subject of {email}")
        }</saml:NameID>
        <saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">
        <saml:SubjectConfirmationData InResponseTo={answers} NotOnOrAfter="{end}"
        Recipient={acs_url}/></saml:SubjectConfirmation></saml:Subject>
        <saml:Conditions NotBefore="{time(-1)}" NotOnOrAfter="{end}"><saml:AudienceRestriction>
        <saml:Audience>{escape(request.service)}</saml:Audience></saml:AudienceRestriction>
        </saml:Conditions>
        <saml:AuthnStatement AuthnInstant="{time()}"><saml:AuthnContext>
        <saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef>
        </saml:AuthnContext></saml:AuthnStatement>
        <saml:AttributeStatement>{attribute("email", email)}{attribute("displayName", first_name)}
        </saml:AttributeStatement></saml:Assertion>""",
        signed_by,
    )
    return f"""<samlp:Response xmlns:samlp="{PROTOCOL}" Destination={acs_url}
    ID="_{secrets.token_hex(16)}" InResponseTo={answers} IssueInstant="{time()}" Version="2.0">
    {issuer.replace("<saml:Issuer", f'<saml:Issuer xmlns:saml="{ASSERTION}"')}
    <samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/>
    </samlp:Status>{assertion}</samlp:Response>"""


def sign(assertion, signed_by):
    """The assertion with a signature behind its issuer."""
    root = etree.fromstring(assertion)
    # signxml puts the signature at the place of this element.
    place = etree.Element(f"{{{SIGNATURE}}}Signature", Id="placeholder", nsmap={"ds": SIGNATURE})
    root.insert(1, place)
    signer = XMLSigner(
        method=SignatureConstructionMethod.enveloped,
        signature_algorithm="rsa-sha256",
        digest_algorithm="sha256",
        c14n_algorithm=EXCLUSIVE,
    )
    signed = signer.sign(
        root, key=signed_by.key, cert=signed_by.certificate, reference_uri=root.get("ID")
    )
    return etree.tostring(signed).decode()


def form(action, hidden, content):
    """A page with a form."""
    fields = "".join(
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
        for name, value in hidden.items()
    )
    return f"""<!doctype html><html lang="en"><title>Identity provider</title>
    <h1>Identity provider</h1>
    <form method="post" action="{html.escape(action)}">{fields}{content}</form></html>"""


class IdentityProvider(ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Pages)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.sign_in_url = f"{self.url}/sso"
        self.own, self.other = Key(), Key()

    def settings(self):
        return {
            "entity_id": f"{self.url}/metadata",
            "sign_in_url": self.sign_in_url,
            "certificate": self.own.certificate,
        }


class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/settings":
            return self.send("application/json", json.dumps(self.server.settings()))
        if path == "/sso":
            return self.answer(query, self.ask)
        self.send_error(404)

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        if self.path != "/sso" or length > REQUEST_MAX:
            return self.send_error(404)
        self.answer(self.rfile.read(length).decode(), self.sign_in)

    def answer(self, fields, page):
        """A page about the request in these fields, which must be there."""
        try:
            fields = dict(urllib.parse.parse_qsl(fields, strict_parsing=True))
            request = Request(fields["SAMLRequest"], self.server.sign_in_url)
            text = page(request, fields)
        except (KeyError, ValueError, zlib.error, etree.XMLSyntaxError) as fault:
            return self.send_error(400, explain=str(fault))
        self.send("text/html; charset=utf-8", text)

    def ask(self, request, fields):
        hidden = {"SAMLRequest": request.text, "RelayState": fields["RelayState"]}
        content = """<p><label>Address <input name="email" type="email" required></label></p>
        <p><label><input name="wrong" type="checkbox"> Sign with another key</label></p>
        <button>Sign in</button>"""
        return form("/sso", hidden, content)

    def sign_in(self, request, fields):
        key = self.server.other if "wrong" in fields else self.server.own
        entity_id = self.server.settings()["entity_id"]
        response = respond(request, entity_id, fields["email"], key)
        hidden = {
            "SAMLResponse": base64.b64encode(response.encode()).decode(),
            "RelayState": fields["RelayState"],
        }
        return form(request.acs_url, hidden, "<button>Continue</button>")

    def send(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing of requests."""


if __name__ == "__main__":
    with IdentityProvider() as server:
        print(f"Listening on {server.url}", flush=True)
        server.serve_forever()
