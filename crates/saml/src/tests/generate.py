"""Writes fuzz/corpus/saml_response: responses to the fixed login of the tests.

An identity provider and an attacker: signxml signs the valid responses, pysaml2 builds
one, and `sign` below makes the signatures that signxml refuses to make.

    python -m venv VENV && VENV/bin/pip install pysaml2==7.5.5 signxml==5.2.0
    VENV/bin/python crates/saml/src/tests/generate.py

Keys are made once and kept. Of the signatures only that of ECDSA differs between runs.
"""

import base64
import datetime
import hashlib
import hmac
import pathlib
import re
import zlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.x509.oid import NameOID
from lxml import etree
from signxml import SignatureConstructionMethod, XMLSigner

HERE = pathlib.Path(__file__).parent
KEYS = HERE / "keys"
OUT = HERE.parents[3] / "fuzz" / "corpus" / "saml_response"

IDP = "https://idp.example.com/metadata"
SP = "https://weir.example.com/api/saml/metadata/"
ACS = "https://weir.example.com/complete/saml/"
REQUEST = "_6f1d2c3b4a5968778695a4b3c2d1e0f0"
ISSUED = "2026-06-01T11:59:30Z"
BEGIN = "2026-06-01T11:59:00Z"
END = "2026-06-01T12:05:00Z"

P = "urn:oasis:names:tc:SAML:2.0:protocol"
A = "urn:oasis:names:tc:SAML:2.0:assertion"
D = "http://www.w3.org/2000/09/xmldsig#"
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
INCLUSIVE = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
INCLUSIVE_1_1 = "http://www.w3.org/2006/12/xml-c14n11"
ENVELOPED = D + "enveloped-signature"
RSA_SHA256 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
SHA256 = "http://www.w3.org/2001/04/xmlenc#sha256"
EMAIL = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
UNSPECIFIED = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
HOLDER_OF_KEY = "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"
SENDER_VOUCHES = "urn:oasis:names:tc:SAML:2.0:cm:sender-vouches"
PRINCIPAL_NAME = "urn:oid:1.3.6.1.4.1.5923.1.1.1.6"
CLAIMS = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"


# --- keys -------------------------------------------------------------------


def make(name, key, years):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}.example.com")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(name.encode(), "big"))
        .not_valid_before(datetime.datetime(years[0], 1, 1))
        .not_valid_after(datetime.datetime(years[1], 1, 1))
        .sign(key, hashes.SHA256())
    )
    (KEYS / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    if not (KEYS / f"{name}.key").exists():
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (KEYS / f"{name}.key").write_bytes(pem)


def key(name, new, years=(2026, 2036)):
    path = KEYS / f"{name}.key"
    if not path.exists():
        make(name, new(), years)
    return serialization.load_pem_private_key(path.read_bytes(), None)


def certificate(name):
    return (KEYS / f"{name}.crt").read_text()


def new_rsa():
    return rsa.generate_private_key(65537, 2048)


KEYS.mkdir(exist_ok=True)
idp = key("idp", new_rsa)
following = key("next", new_rsa)
attacker = key("attacker", new_rsa)
elliptic = key("elliptic", lambda: ec.generate_private_key(ec.SECP256R1()))
old = key("old", new_rsa, (2020, 2025))
key("small", lambda: rsa.generate_private_key(65537, 1024))
key("curve", lambda: ec.generate_private_key(ec.SECP521R1()))


# --- responses --------------------------------------------------------------


def name_id(value="ada@example.com", format=EMAIL, more=""):
    format = f' Format="{format}"' if format else ""
    return f"<saml:NameID{format}{more}>{value}</saml:NameID>"


def attribute(name, *values, more=""):
    values = "".join(f"<saml:AttributeValue>{value}</saml:AttributeValue>" for value in values)
    return f'<saml:Attribute Name="{name}"{more}>{values}</saml:Attribute>'


def optional(name, value):
    return "" if value is None else f' {name}="{value}"'


def confirmation(method=BEARER, answers=REQUEST, begin=None, end=END, recipient=ACS, data=None):
    if data is None:
        data = (
            f'<saml:SubjectConfirmationData{optional("InResponseTo", answers)}'
            f'{optional("NotBefore", begin)}{optional("NotOnOrAfter", end)}'
            f'{optional("Recipient", recipient)}/>'
        )
    return f'<saml:SubjectConfirmation Method="{method}">{data}</saml:SubjectConfirmation>'


def subject(*confirmations):
    return f"<saml:Subject>{name_id()}{''.join(confirmations)}</saml:Subject>"


def assertion(
    id="_assertion",
    id_name="ID",
    version="2.0",
    issuer=IDP,
    subject=None,
    name=None,
    method=BEARER,
    begin=BEGIN,
    end=END,
    confirmed_begin=None,
    confirmed_end=END,
    recipient=ACS,
    answers=REQUEST,
    audience=SP,
    restriction=None,
    conditions=None,
    session_end=None,
    authentication=None,
    attributes=attribute("email", "ada@example.com") + attribute("groups", "staff", "admins"),
    more="",
    issued=ISSUED,
):
    issuer = "" if issuer is None else f"<saml:Issuer>{issuer}</saml:Issuer>"
    if subject is None:
        confirmed = confirmation(method, answers, confirmed_begin, confirmed_end, recipient)
        subject = f"<saml:Subject>{name or name_id()}{confirmed}</saml:Subject>"
    if restriction is None:
        restriction = (
            f"<saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience>"
            "</saml:AudienceRestriction>"
        )
    if conditions is None:
        conditions = (
            f'<saml:Conditions{optional("NotBefore", begin)}{optional("NotOnOrAfter", end)}>'
            f"{restriction}</saml:Conditions>"
        )
    if authentication is None:
        authentication = (
            f'<saml:AuthnStatement AuthnInstant="{ISSUED}" SessionIndex="_session"'
            f'{optional("SessionNotOnOrAfter", session_end)}><saml:AuthnContext>'
            "<saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password"
            "</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>"
        )
    if attributes:
        attributes = f"<saml:AttributeStatement>{attributes}</saml:AttributeStatement>"
    return (
        f'<saml:Assertion xmlns:saml="{A}" {id_name}="{id}" Version="{version}" '
        f'IssueInstant="{issued}">{issuer}{subject}{conditions}{authentication}{attributes}'
        f"{more}</saml:Assertion>"
    )


def response(
    inner,
    id="_response",
    version="2.0",
    issuer=IDP,
    destination=ACS,
    answers=REQUEST,
    status='<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/>',
    before="",
    issued=ISSUED,
):
    issuer = "" if issuer is None else f"<saml:Issuer>{issuer}</saml:Issuer>"
    status = "" if status is None else f"<samlp:Status>{status}</samlp:Status>"
    return (
        f'<samlp:Response xmlns:samlp="{P}" xmlns:saml="{A}" ID="{id}" Version="{version}" '
        f'IssueInstant="{issued}"{optional("Destination", destination)}'
        f'{optional("InResponseTo", answers)}>{issuer}{before}{status}{inner}</samlp:Response>'
    )


# --- signatures -------------------------------------------------------------


def canonical(element, prefixes=()):
    return etree.tostring(
        element, method="c14n", exclusive=True, inclusive_ns_prefixes=list(prefixes)
    )


def without_signature(element):
    copy = etree.fromstring(etree.tostring(element))
    for signature in copy.findall(f"{{{D}}}Signature"):
        copy.remove(signature)
    return copy


def sign(
    text,
    id="_assertion",
    key=idp,
    method=RSA_SHA256,
    hash=hashes.SHA256(),
    digest_method=SHA256,
    digest=hashlib.sha256,
    transforms=(ENVELOPED, EXCLUSIVE),
    transform_content="",
    c14n=EXCLUSIVE,
    uri=None,
    references=1,
    method_content="",
    key_info="",
    value=None,
    secret=None,
    end="",
):
    """Signs the element with this id, and puts the signature after its issuer."""
    root = etree.fromstring(text.encode())
    target = next(element for element in root.iter() if element.get("ID") == id)
    hashed = base64.b64encode(digest(canonical(without_signature(target))).digest()).decode()
    named = "".join(
        f'<ds:Transform Algorithm="{it}">{transform_content if it not in (ENVELOPED, EXCLUSIVE) else ""}'
        "</ds:Transform>"
        for it in transforms
    )
    reference = (
        f'<ds:Reference URI="{"#" + id if uri is None else uri}"><ds:Transforms>{named}'
        f'</ds:Transforms><ds:DigestMethod Algorithm="{digest_method}"/>'
        f"<ds:DigestValue>{hashed}</ds:DigestValue></ds:Reference>"
    )
    info = (
        f'<ds:SignedInfo xmlns:ds="{D}"><ds:CanonicalizationMethod Algorithm="{c14n}"/>'
        f'<ds:SignatureMethod Algorithm="{method}">{method_content}</ds:SignatureMethod>'
        f"{reference * references}</ds:SignedInfo>"
    )
    signed = canonical(etree.fromstring(info))
    if secret is not None:
        made = hmac.new(secret, signed, hashlib.sha256).digest()
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        r, s = utils.decode_dss_signature(key.sign(signed, ec.ECDSA(hash)))
        made = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    else:
        made = key.sign(signed, padding.PKCS1v15(), hash)
    made = base64.b64encode(made).decode() if value is None else value
    signature = etree.fromstring(
        f'<ds:Signature xmlns:ds="{D}">{info}<ds:SignatureValue>{made}</ds:SignatureValue>'
        f"{key_info}{end}</ds:Signature>"
    )
    issuer = target.find(f"{{{A}}}Issuer")
    position = 0 if issuer is None else target.index(issuer) + 1
    target.insert(position, signature)
    return etree.tostring(root).decode()


def sign_inclusively(text, algorithm, content=""):
    """The same with inclusive canonical texts, which need the signature at its place."""
    root = etree.fromstring(text.encode())
    target = root.find(f"{{{A}}}Assertion")

    def canonical(element):
        return etree.tostring(element, method="c14n", exclusive=False)

    hashed = base64.b64encode(hashlib.sha256(canonical(target)).digest()).decode()
    info = (
        f'<ds:SignedInfo><ds:CanonicalizationMethod Algorithm="{algorithm}"/>'
        f'<ds:SignatureMethod Algorithm="{RSA_SHA256}"/><ds:Reference URI="#_assertion"><ds:Transforms>'
        f'<ds:Transform Algorithm="{ENVELOPED}"/><ds:Transform Algorithm="{algorithm}">{content}</ds:Transform>'
        f'</ds:Transforms><ds:DigestMethod Algorithm="{SHA256}"/><ds:DigestValue>{hashed}</ds:DigestValue>'
        "</ds:Reference></ds:SignedInfo>"
    )
    signature = etree.fromstring(
        f'<ds:Signature xmlns:ds="{D}">{info}<ds:SignatureValue/></ds:Signature>'
    )
    target.insert(1, signature)
    made = idp.sign(canonical(signature[0]), padding.PKCS1v15(), hashes.SHA256())
    signature[1].text = base64.b64encode(made).decode()
    return etree.tostring(root).decode()


def sign_by_defaults(text):
    """The same by signxml with its defaults, among them inclusive canonical XML 1.1."""
    root = etree.fromstring(text.encode())
    target = root.find(f"{{{A}}}Assertion")
    target.insert(1, etree.Element(f"{{{D}}}Signature", Id="placeholder", nsmap={"ds": D}))
    signed = XMLSigner().sign(target, key=idp, cert=certificate("idp"), reference_uri="_assertion")
    root.replace(target, signed)
    return etree.tostring(root).decode()


def sign_by_library(text, id="_assertion", key=idp, cert="idp", hash="sha256", kind="rsa"):
    """The same by signxml, with its certificate in the signature."""
    inner = re.search(r"<(\w+:)?Assertion .*</(\w+:)?Assertion>", text, re.S)
    if inner and inner.start() > 0 and f' ID="{id}"' in inner.group(0) and "xmlns" in inner.group(0).split(">")[0]:
        # Alone, so that lxml does not change its prefixes to those of the response.
        signed = sign_by_library(inner.group(0), id, key, cert, hash, kind)
        return text.replace(inner.group(0), signed)
    root = etree.fromstring(text.encode())
    target = next(element for element in root.iter() if element.get("ID") == id)
    place = etree.Element(f"{{{D}}}Signature", Id="placeholder", nsmap={"ds": D})
    target.insert(target.index(target.find(f"{{{A}}}Issuer")) + 1, place)
    signer = XMLSigner(
        method=SignatureConstructionMethod.enveloped,
        signature_algorithm=f"{kind}-{hash}",
        digest_algorithm=hash,
        c14n_algorithm=EXCLUSIVE,
    )
    signed = signer.sign(target, key=key, cert=certificate(cert), reference_uri=id)
    if target is root:
        return etree.tostring(signed).decode()
    target.getparent().replace(target, signed)
    return etree.tostring(root).decode()


def write(name, text):
    data = text if isinstance(text, bytes) else text.encode()
    (OUT / f"{name}.xml").write_bytes(data)


def key_info(name):
    inner = "".join(certificate(name).split("\n")[1:-2])
    return (
        f"<ds:KeyInfo><ds:X509Data><ds:X509Certificate>{inner}</ds:X509Certificate>"
        "</ds:X509Data></ds:KeyInfo>"
    )


def part(text, name):
    """The text of an element, with what is in it."""
    return re.search(f"<{name}[ >].*?</{name}>", text, re.S).group(0)


# --- valid ------------------------------------------------------------------


def built_by_pysaml2():
    """What pysaml2 answers as an identity provider, before it is signed."""
    from saml2 import saml, samlp
    from saml2.s_utils import factory

    def issuer():
        return saml.Issuer(text=IDP, format=saml.NAMEID_FORMAT_ENTITY)

    data = factory(
        saml.SubjectConfirmationData,
        in_response_to=REQUEST,
        recipient=ACS,
        not_on_or_after=END,
    )
    confirmation = saml.SubjectConfirmation(
        method=saml.SCM_BEARER, subject_confirmation_data=data
    )
    named = saml.NameID(
        format=saml.NAMEID_FORMAT_PERSISTENT,
        name_qualifier=IDP,
        sp_name_qualifier=SP,
        text="5c1e9f",
    )
    value = saml.AttributeValue()
    value.set_text("ada@example.com")
    made = saml.Assertion(
        id="_assertion",
        version="2.0",
        issue_instant=ISSUED,
        issuer=issuer(),
        subject=saml.Subject(name_id=named, subject_confirmation=[confirmation]),
        conditions=saml.Conditions(
            not_before=BEGIN,
            not_on_or_after=END,
            audience_restriction=[
                saml.AudienceRestriction(audience=[saml.Audience(text=SP)])
            ],
        ),
        authn_statement=[
            saml.AuthnStatement(
                authn_instant=ISSUED,
                session_index="id-1",
                authn_context=saml.AuthnContext(
                    authn_context_class_ref=saml.AuthnContextClassRef(
                        text=saml.AUTHN_PASSWORD
                    )
                ),
            )
        ],
        attribute_statement=[
            saml.AttributeStatement(
                attribute=[
                    saml.Attribute(
                        name="urn:oid:0.9.2342.19200300.100.1.3",
                        name_format=saml.NAME_FORMAT_URI,
                        friendly_name="mail",
                        attribute_value=[value],
                    )
                ]
            )
        ],
    )
    whole = samlp.Response(
        id="_response",
        version="2.0",
        issue_instant=ISSUED,
        destination=ACS,
        in_response_to=REQUEST,
        issuer=issuer(),
        status=samlp.Status(status_code=samlp.StatusCode(value=samlp.STATUS_SUCCESS)),
        assertion=[made],
    )
    return str(whole)


def unsigned_shapes():
    """What the providers send, as their documentation shows it."""
    okta = response(
        assertion(
            name=name_id(format=UNSPECIFIED),
            attributes=attribute("email", "ada@example.com", more=' NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:unspecified"')
            + attribute("firstName", "Ada"),
        )
    )
    okta = okta.replace(
        "<saml:AttributeValue>",
        '<saml:AttributeValue xmlns:xs="http://www.w3.org/2001/XMLSchema" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="xs:string">',
    ).replace(
        "<saml:Issuer>",
        '<saml:Issuer Format="urn:oasis:names:tc:SAML:2.0:nameid-format:entity">',
    )
    okta = okta.replace("saml:", "saml2:").replace("xmlns:saml=", "xmlns:saml2=")
    okta = okta.replace("samlp:", "saml2p:").replace("xmlns:samlp=", "xmlns:saml2p=")
    okta = '<?xml version="1.0" encoding="UTF-8"?>' + okta
    entra = response(
        assertion(
            name=name_id("u8Gk2m", PERSISTENT),
            attributes=attribute("http://schemas.microsoft.com/identity/claims/tenantid", "t-1")
            + attribute(CLAIMS + "givenname", "Ada")
            + attribute(CLAIMS + "emailaddress", "ada@example.com")
            + attribute(CLAIMS + "name", "ada@example.com"),
            issued="2026-06-01T11:59:30.123Z",
        )
    )
    # Entra declares the default namespace in the assertion, and uses no prefix there.
    head, inner = entra.split("<saml:Assertion", 1)
    inner = inner.replace("<saml:", "<").replace("</saml:", "</").replace("xmlns:saml=", "xmlns=")
    inner = inner.replace("</samlp:Response>", "")
    entra = f"{head}<Assertion{inner}</samlp:Response>"
    google = response(assertion(attributes=attribute("mail", "ada@example.com")))
    google = '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n' + google.replace(
        "samlp:", "saml2p:"
    ).replace("xmlns:samlp=", "xmlns:saml2p=")
    keycloak = response(
        assertion(
            id="ID_5b0f3a52-6f0e-4ef7-8d2c-0d5b3f0b7c11",
            name=name_id("G-7a0e", PERSISTENT),
            session_end="2026-06-01T22:00:00Z",
            attributes=attribute(
                "urn:oid:1.2.840.113549.1.9.1",
                "ada@example.com",
                more=' FriendlyName="email" NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:uri"',
            )
            + attribute("Role", "view-profile")
            + attribute("Role", "manage-account"),
        ),
        id="ID_0f1f0a0c-1111-4a7e-9d7e-2f6b6f6d0001",
    )
    return okta, entra, google, keycloak


def valid():
    plain = response(assertion())
    write("valid-assertion", sign_by_library(plain))
    write("valid-both", sign_by_library(sign_by_library(plain), "_response"))
    write("valid-sha384", sign(plain, method=RSA_SHA256.replace("256", "384"), hash=hashes.SHA384(),
        digest_method="http://www.w3.org/2001/04/xmldsig-more#sha384", digest=hashlib.sha384))
    write("valid-sha512", sign_by_library(plain, hash="sha512"))
    write("valid-ecdsa", sign_by_library(plain, key=elliptic, cert="elliptic", kind="ecdsa"))
    write("valid-next-key", sign_by_library(plain, key=following, cert="next"))
    write("valid-old-key-in-rollover", sign(plain))
    pretty = plain.replace("><", ">\n    <").replace(">\n    </saml:Audience>", "></saml:Audience>")
    write("valid-white-space", sign(pretty.replace("\n", "\r\n")))
    okta, entra, google, keycloak = unsigned_shapes()
    write("valid-okta", '<?xml version="1.0" encoding="UTF-8"?>'
        + sign_by_library(sign_by_library(okta.split("?>", 1)[1]), "_response"))
    write("valid-entra", sign_by_library(entra))
    write("valid-google", google.split("\n", 1)[0] + "\n"
        + sign_by_library(google.split("\n", 1)[1]))
    write("valid-keycloak", sign_by_library(sign_by_library(keycloak,
        "ID_5b0f3a52-6f0e-4ef7-8d2c-0d5b3f0b7c11"), "ID_0f1f0a0c-1111-4a7e-9d7e-2f6b6f6d0001"))
    write("valid-pysaml2", sign_by_library(built_by_pysaml2()))
    # References to characters, and a namespace that is used in a value only.
    odd = assertion(attributes=attribute("note", "a &amp; b &lt;c&gt; &#13;&#10;&#9;&quot;d&quot; é &#x1F600;",
        more=' FriendlyName="x &#9;&#10;&#13; &quot;y&quot; &lt;z"'))
    write("valid-references", sign(response(odd)))
    write("valid-inclusive", inclusive())
    more = plain.replace("<samlp:Response ", '<samlp:Response xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:unused" ')
    write("valid-canonical-1.0", sign_inclusively(plain, INCLUSIVE))
    write("valid-canonical-1.1", sign_inclusively(more, INCLUSIVE_1_1))
    write("valid-signxml-defaults", sign_by_defaults(plain))
    write("valid-without-response-issuer", sign(response(assertion(), issuer=None)))
    elsewhere = confirmation(recipient="https://other.example.com/acs", end="2026-06-01T11:00:00Z")
    write("valid-two-confirmations", sign(response(assertion(subject=subject(elsewhere, confirmation())))))
    held = confirmation(HOLDER_OF_KEY, data=f'<saml:SubjectConfirmationData><ds:KeyInfo xmlns:ds="{D}"><ds:KeyName>x</ds:KeyName></ds:KeyInfo></saml:SubjectConfirmationData>')
    vouched = confirmation(SENDER_VOUCHES, data="")
    write("valid-confirmations-of-other-methods", sign(response(assertion(subject=subject(vouched, held, confirmation())))))
    user = name_id("u8Gk2m", PERSISTENT)
    write("valid-principal-name", sign(response(assertion(name=user, attributes=attribute(PRINCIPAL_NAME, "ada@example.com", more=' FriendlyName="eduPersonPrincipalName"')))))
    write("valid-principal-name-of-entra", sign(response(assertion(name=user, attributes=attribute(CLAIMS + "upn", "ada@example.com")))))
    other = attribute(CLAIMS + "upn", "ada@corp.example.com") + attribute(PRINCIPAL_NAME, "ada@corp.example.com")
    write("valid-principal-name-beside-address", sign(response(assertion(name=user, attributes=other + attribute("email", "ada@example.com")))))
    write("valid-principal-name-beside-name", sign(response(assertion(name=name_id(format=None), attributes=other))))
    within = assertion(begin="2026-06-01T12:00:59Z", end="2026-06-01T11:59:01Z", confirmed_end="2026-06-01T11:59:01Z")
    write("valid-clock-differs", sign(response(within)))
    audiences = f"<saml:AudienceRestriction><saml:Audience>https://other.example.com</saml:Audience><saml:Audience>{SP}</saml:Audience></saml:AudienceRestriction><saml:OneTimeUse/>"
    write("valid-two-audiences", sign(response(assertion(restriction=audiences))))
    write("valid-key-info-of-attacker", sign(plain, key_info=key_info("attacker")))
    write("valid-name-without-format", sign(response(assertion(name=name_id(format=None), attributes=""))))
    statements = assertion(more=f"<saml:AttributeStatement>{attribute('title', 'Countess')}</saml:AttributeStatement>")
    write("valid-two-statements", sign(response(statements)))
    known = f"<saml:OneTimeUse/><saml:AudienceRestriction><saml:Audience>{SP}</saml:Audience></saml:AudienceRestriction><saml:ProxyRestriction Count=\"0\"/>"
    write("valid-known-conditions", sign(response(assertion(restriction=known))))
    groups = attribute("email", "ada@example.com") + attribute("groups", *(f"group-{number}" for number in range(1000)))
    write("valid-thousand-groups", sign(response(assertion(attributes=groups))))


def inclusive():
    """A signature with a list of prefixes whose namespaces are written."""
    text = response(assertion(attributes=attribute("email", "ada@example.com")))
    text = text.replace("<saml:AttributeValue>", '<saml:AttributeValue xsi:type="xs:string">')
    text = text.replace("<samlp:Response ", '<samlp:Response xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ')
    root = etree.fromstring(text.encode())
    target = root.find(f"{{{A}}}Assertion")
    hashed = base64.b64encode(hashlib.sha256(canonical(target, ["xs"])).digest()).decode()
    listed = f'<ec:InclusiveNamespaces xmlns:ec="{EXCLUSIVE}" PrefixList="xs"/>'
    info = (
        f'<ds:SignedInfo xmlns:ds="{D}"><ds:CanonicalizationMethod Algorithm="{EXCLUSIVE}"/>'
        f'<ds:SignatureMethod Algorithm="{RSA_SHA256}"/><ds:Reference URI="#_assertion"><ds:Transforms>'
        f'<ds:Transform Algorithm="{ENVELOPED}"/><ds:Transform Algorithm="{EXCLUSIVE}">{listed}</ds:Transform>'
        f'</ds:Transforms><ds:DigestMethod Algorithm="{SHA256}"/><ds:DigestValue>{hashed}</ds:DigestValue>'
        "</ds:Reference></ds:SignedInfo>"
    )
    made = idp.sign(canonical(etree.fromstring(info)), padding.PKCS1v15(), hashes.SHA256())
    target.insert(1, etree.fromstring(
        f'<ds:Signature xmlns:ds="{D}">{info}<ds:SignatureValue>{base64.b64encode(made).decode()}'
        "</ds:SignatureValue></ds:Signature>"))
    return etree.tostring(root).decode()


# --- hostile ----------------------------------------------------------------


def evil(id="_evil"):
    return assertion(id=id, name=name_id("admin@example.com"),
        attributes=attribute("email", "admin@example.com"))


def wrapping():
    signed = sign(response(assertion()))
    inner = part(signed, "saml:Assertion")
    signature = part(inner, "ds:Signature")
    bare = inner.replace(signature, "")
    whole = sign(response(assertion()), "_response")
    of_whole = part(whole, "ds:Signature")
    bare_whole = whole.replace(of_whole, "")
    held = of_whole.replace("</ds:Signature>", f"<ds:Object>{bare_whole}</ds:Object></ds:Signature>")
    write("wrapping-1", response(evil(), id="_other", before=held))
    write("wrapping-2", response(bare_whole + evil(), id="_other", before=of_whole))
    write("wrapping-3", response(evil() + inner))
    write("wrapping-4", response(evil().replace("</saml:Assertion>", inner + "</saml:Assertion>")))
    moved = evil().replace("</saml:Issuer>", "</saml:Issuer>" + signature)
    write("wrapping-5", response(moved + bare))
    held = signature.replace("</ds:Signature>", bare + "</ds:Signature>")
    write("wrapping-6", response(evil().replace("</saml:Issuer>", "</saml:Issuer>" + held)))
    write("wrapping-7", response(inner, before=f"<samlp:Extensions>{evil()}</samlp:Extensions>"))
    held = signature.replace("</ds:Signature>", f"<ds:Object>{bare}</ds:Object></ds:Signature>")
    write("wrapping-8", response(evil().replace("</saml:Issuer>", "</saml:Issuer>" + held)))
    write("wrapping-key-info", response(evil().replace("</saml:Issuer>", "</saml:Issuer>" + signature.replace("</ds:Signature>", f"<ds:KeyInfo>{bare}</ds:KeyInfo></ds:Signature>"))))
    same = evil("_assertion").replace("</saml:Issuer>", "</saml:Issuer>" + signature)
    write("wrapping-same-id", response(same))
    write("wrapping-same-id-twice", response(same + inner))
    write("wrapping-in-value", response(evil().replace("</saml:Issuer>", "</saml:Issuer>" + signature).replace("admin@example.com</saml:AttributeValue>", f"{bare}</saml:AttributeValue>")))
    write("wrapping-other-namespace", response(inner + evil().replace(f'"{A}"', '"urn:other"')))
    write("wrapping-in-status", response(inner, status=f'<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/><samlp:StatusDetail>{evil()}</samlp:StatusDetail>'))
    write("wrapping-in-advice", sign(response(assertion().replace("<saml:AuthnStatement", f"<saml:Advice>{evil()}</saml:Advice><saml:AuthnStatement"))))
    write("two-assertions", sign(sign(response(assertion() + assertion(id="_second"))), "_second"))
    write("assertion-before-status", re.sub(r"(<samlp:Status>.*</samlp:Status>)(<saml:Assertion.*</saml:Assertion>)", r"\2\1", signed))
    write("assertion-in-extensions-only", response("", before=f"<samlp:Extensions>{inner}</samlp:Extensions>"))
    write("response-signed-assertion-swapped", whole.replace("ada@example.com", "admin@example.com"))
    write("response-signed-only", whole)
    both = sign(sign(response(assertion())), "_response")
    write("response-signature-broken", both.replace(f'Destination="{ACS}"', f'Destination="{ACS}" Consent="urn:x"', 1))
    write("signature-of-another-place", response(inner, before=signature))
    write("nested-response", response(f"<samlp:Response xmlns:samlp=\"{P}\">{inner}</samlp:Response>"))
    write("document-is-an-assertion", inner)


def signatures():
    plain = response(assertion())
    signed = sign(plain)
    write("unsigned", plain)
    write("changed-name", signed.replace("ada@example.com</saml:NameID>", "admin@example.com</saml:NameID>"))
    write("changed-attribute", signed.replace("<saml:AttributeValue>staff", "<saml:AttributeValue>owners"))
    write("attacker-key", sign(plain, key=attacker))
    write("attacker-key-info", sign(plain, key=attacker, key_info=key_info("attacker")))
    write("attacker-with-key-info-of-provider", sign(plain, key=attacker, key_info=key_info("idp")))
    write("expired-key", sign(plain, key=old))
    write("rsa-sha1", sign(plain, method=D + "rsa-sha1", hash=hashes.SHA1()))
    write("digest-sha1", sign(plain, digest_method=D + "sha1", digest=hashlib.sha1))
    public = idp.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    write("hmac-with-public-key", sign(plain, method="http://www.w3.org/2001/04/xmldsig-more#hmac-sha256", secret=public))
    write("hmac-sha1-short", sign(plain, method=D + "hmac-sha1", secret=b"", method_content="<ds:HMACOutputLength>0</ds:HMACOutputLength>"))
    write("hmac-length-in-rsa", sign(plain, method_content="<ds:HMACOutputLength>8</ds:HMACOutputLength>"))
    write("algorithm-unknown", sign(plain, method="urn:none"))
    write("algorithm-empty", sign(plain, method=""))
    write("ecdsa-by-name-only", sign(plain, method=RSA_SHA256.replace("rsa", "ecdsa")))
    write("two-references", sign(plain, references=2))
    write("no-reference", sign(plain, references=0))
    write("reference-empty", sign(plain, uri=""))
    write("reference-response", sign(plain, uri="#_response"))
    write("reference-xpointer", sign(plain, uri="#xpointer(id('_assertion'))"))
    write("reference-remote", sign(plain, uri="http://127.0.0.1/secret"))
    write("reference-file", sign(plain, uri="file:///etc/passwd"))
    write("reference-missing", sign(plain).replace(' URI="#_assertion"', ""))
    xpath = "http://www.w3.org/TR/1999/REC-xpath-19991116"
    write("transform-xpath", sign(plain, transforms=(xpath, ENVELOPED, EXCLUSIVE), transform_content="<ds:XPath>not(//saml:NameID)</ds:XPath>"))
    write("transform-xpath-last", sign(plain, transforms=(ENVELOPED, EXCLUSIVE, xpath), transform_content="<ds:XPath>self::text()</ds:XPath>"))
    xslt = "http://www.w3.org/TR/1999/REC-xslt-19991116"
    write("transform-xslt", sign(plain, transforms=(ENVELOPED, xslt), transform_content='<xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"/>'))
    write("transform-base64", sign(plain, transforms=(ENVELOPED, D + "base64")))
    write("transform-enveloped-only", sign(plain, transforms=(ENVELOPED,)))
    # Inclusive rules are named, and the text is that of exclusive ones.
    write("transform-inclusive", sign(plain, transforms=(ENVELOPED, INCLUSIVE)))
    write("transform-with-comments", sign(plain, transforms=(ENVELOPED, EXCLUSIVE + "WithComments")))
    write("transforms-many", sign(plain, transforms=(ENVELOPED,) + (EXCLUSIVE,) * 50))
    write("canonical-inclusive", sign(plain, c14n=INCLUSIVE))
    write("canonical-inclusive-with-comments", sign(plain, c14n=INCLUSIVE + "#WithComments"))
    write("canonical-1.1-with-comments", sign(plain, transforms=(ENVELOPED, INCLUSIVE_1_1 + "#WithComments")))
    listed = f'<ec:InclusiveNamespaces xmlns:ec="{EXCLUSIVE}" PrefixList="saml"/>'
    write("canonical-inclusive-prefixes", sign_inclusively(plain, INCLUSIVE, listed))
    write("canonical-inclusive-namespace", sign_inclusively(plain, INCLUSIVE).replace("<samlp:Response ", '<samlp:Response xmlns:x="urn:x" '))
    write("canonical-inclusive-attribute", sign_inclusively(plain.replace("<samlp:Response ", '<samlp:Response xml:lang="en" '), INCLUSIVE))
    write("value-empty", sign(plain, value=""))
    write("value-white-space", sign(plain, value=" \n "))
    write("value-not-base64", sign(plain, value="!!!!"))
    write("value-zeros", sign(plain, value=base64.b64encode(bytes(256)).decode()))
    write("digest-empty", re.sub("<ds:DigestValue>.*?</ds:DigestValue>", "<ds:DigestValue/>", signed))
    signature = part(signed, "ds:Signature")
    write("two-signatures", signed.replace(signature, signature * 2))
    write("two-infos", signed.replace(part(signed, "ds:SignedInfo"), part(signed, "ds:SignedInfo") * 2))
    write("info-in-object", sign(plain, end=f"<ds:Object>{part(signed, 'ds:SignedInfo')}</ds:Object>"))
    # samlify and xml-crypto read the first digest of two, split by a comment.
    write("digest-with-comment", re.sub("<ds:DigestValue>", "<ds:DigestValue><!--AAAA-->", signed))
    write("digest-twice", re.sub("(<ds:DigestValue>.*?</ds:DigestValue>)", r"\1\1", signed))
    write("signature-last", re.sub(r"(<ds:Signature .*</ds:Signature>)(.*)(</saml:Assertion>)", r"\2\1\3", signed))
    write("prefix-of-id", sign(response(assertion(id="_assertion-evil")), "_assertion-evil").replace('URI="#_assertion-evil"', 'URI="#_assertion"'))


def texts():
    signed = sign(response(assertion()))
    doctype = '<!DOCTYPE r [<!ENTITY e "admin@example.com">]>'
    write("doctype", "<!DOCTYPE r>" + signed)
    write("doctype-entity", doctype + signed.replace("ada@example.com", "&e;"))
    write("doctype-external", '<!DOCTYPE r SYSTEM "http://127.0.0.1/x.dtd">' + signed)
    laughs = '<!DOCTYPE r [<!ENTITY a "ha">' + "".join(f'<!ENTITY {chr(98 + n)} "{("&" + chr(97 + n) + ";") * 10}">' for n in range(10)) + "]>"
    write("doctype-billion-laughs", laughs + signed.replace("ada@example.com", "&k;"))
    write("entity-unknown", signed.replace("ada@", "&ada;@"))
    write("entity-nbsp", signed.replace("ada@", "&nbsp;ada@"))
    write("reference-to-nothing", signed.replace("ada@", "&#0;ada@"))
    write("reference-to-surrogate", signed.replace("ada@", "&#xD800;ada@"))
    write("reference-with-sign", signed.replace("ada@", "&#+97;da@"))
    write("reference-huge", signed.replace("ada@", "&#99999999999999;ada@"))
    write("instruction", signed.replace("<samlp:Status>", "<?php echo 1?><samlp:Status>"))
    write("instruction-in-name", signed.replace("ada@example.com</saml:NameID>", "ada@example.com<?x?>.evil.com</saml:NameID>"))
    write("instruction-style", '<?xml-stylesheet href="http://127.0.0.1/"?>' + signed)
    write("declaration-late", "\n" + '<?xml version="1.0"?>' + signed)
    # The name that was signed is another one than the part before the comment.
    named = sign(response(assertion(name=name_id("admin@example.com.evil.com"), attributes="")))
    write("comment-in-name", named.replace("admin@example.com.evil", "admin@example.com<!---->.evil"))
    signed_value = sign(response(assertion(name=name_id("u-1", PERSISTENT), attributes=attribute("email", "admin@example.com.evil.com"))))
    write("comment-in-value", signed_value.replace("admin@example.com.evil", "admin@example.com<!-- -->.evil"))
    write("comment-in-issuer", signed.replace(f"{IDP}</saml:Issuer>", f"https://idp<!---->.example.com/metadata</saml:Issuer>", 1))
    write("comment-outside", "<!-- -->" + signed)
    write("cdata-in-name", named.replace("admin@example.com.evil.com", "<![CDATA[admin@example.com]]>.evil.com"))
    write("cdata-whole", signed.replace(">ada@example.com</saml:NameID>", "><![CDATA[ada@example.com]]></saml:NameID>"))
    write("element-in-name", sign(response(assertion(name=name_id("admin@example.com<x>.evil.com</x>")))))
    write("utf-16", signed.encode("utf-16"))
    write("utf-16-without-mark", signed.encode("utf-16-le"))
    write("utf-32", signed.encode("utf-32-le"))
    write("byte-order-mark", b"\xef\xbb\xbf" + signed.encode())
    write("utf-8-invalid", signed.encode().replace(b"ada@", b"ad\xffa@", 1))
    write("utf-8-overlong", signed.encode().replace(b"ada@", b"ad\xc1\xa1@", 1))
    write("encoding-latin", '<?xml version="1.0" encoding="ISO-8859-1"?>' + signed)
    write("encoding-utf-7", '<?xml version="1.0" encoding="UTF-7"?>' + signed)
    write("version-1.1", '<?xml version="1.1"?>' + signed)
    write("control-character", signed.replace("ada@", "\x01ada@"))
    write("empty", "")
    write("text-only", "admin@example.com")
    write("two-roots", signed + signed)
    write("text-after", signed + "x")
    write("cut", signed[:-20])
    write("tags-crossed", signed.replace("</saml:Subject>", "</saml:Conditions>"))
    write("attribute-twice", signed.replace(' ID="_assertion"', ' ID="_assertion" ID="_evil"'))
    write("attribute-twice-by-prefix", signed.replace("<saml:NameID ", '<saml:NameID xmlns:a="urn:x" xmlns:b="urn:x" a:q="1" b:q="2" '))
    write("attribute-without-quotes", signed.replace('Version="2.0"', "Version=2.0", 1))
    write("less-than-in-attribute", signed.replace('Version="2.0"', 'Version="<2.0"', 1))
    write("compressed", zlib.compress(signed.encode())[2:-4])
    write("saml-1.1", f'<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:1.0:protocol" ResponseID="_a"/>')
    write("logout-response", signed.replace("samlp:Response", "samlp:LogoutResponse"))
    write("text-between", signed.replace("<samlp:Status>", "x<samlp:Status>"))


def namespaces():
    signed = sign(response(assertion()))
    write("prefix-undeclared", signed.replace(f' xmlns:samlp="{P}"', ""))
    write("prefix-redefined", signed.replace("<samlp:Status>", '<samlp:Status xmlns:samlp="urn:other">'))
    write("prefix-redefined-in-assertion", signed.replace("<saml:Subject>", '<saml:Subject xmlns:saml="urn:other">'))
    write("prefix-taken-back", signed.replace("<saml:Subject>", '<saml:Subject xmlns:saml="">'))
    write("prefix-xml", signed.replace("<saml:Subject>", '<saml:Subject xmlns:xml="urn:x">'))
    write("prefix-xmlns", signed.replace("<saml:Subject>", '<saml:Subject xmlns:xmlns="urn:x">'))
    write("default-undeclared", signed.replace("saml:Subject", "Subject"))
    write("default-taken-back", signed.replace("<saml:Subject>", f'<Subject xmlns="">').replace("</saml:Subject>", "</Subject>"))
    write("namespace-case", signed.replace(P, P.upper()))
    write("namespace-added-by-signature", signed.replace("<ds:SignedInfo", '<ds:SignedInfo xmlns:ds="urn:other"'))
    write("id-lower-case", sign(response(assertion())).replace(' ID="_assertion"', ' Id="_assertion"'))
    write("id-both-cases", signed.replace(' ID="_assertion"', ' ID="_assertion" id="_other"'))
    write("id-both-cases-same", signed.replace(' ID="_assertion"', ' ID="_assertion" id="_assertion"'))
    write("id-with-prefix", signed.replace(' ID="_assertion"', ' saml:ID="_assertion"'))
    write("id-same-as-response", sign(response(assertion(), id="_other")).replace('ID="_other"', 'ID="_assertion"'))
    write("id-empty", signed.replace(' ID="_assertion"', ' ID=""').replace('URI="#_assertion"', 'URI="#"'))
    write("id-missing", signed.replace(' ID="_response"', ""))
    write("id-of-xml", signed.replace("<saml:Subject>", '<saml:Subject xml:id="_assertion">'))
    write("colons", signed.replace("saml:Subject>", "saml:x:Subject>"))


def contents():
    def bad(file, **options):
        write(file, sign(response(assertion(**options))))

    def outer(file, **options):
        write(file, sign(response(assertion(), **options)))

    bad("audience-other", audience="https://other.example.com")
    bad("audience-prefix", audience=SP + "x")
    bad("audience-empty", audience="")
    bad("audience-missing", restriction="")
    bad("audience-list-empty", restriction="<saml:AudienceRestriction/>")
    both = "".join(f"<saml:AudienceRestriction><saml:Audience>{it}</saml:Audience></saml:AudienceRestriction>" for it in (SP, "https://other.example.com"))
    bad("audience-two-restrictions", restriction=both)
    bad("conditions-missing", conditions="")
    bad("conditions-twice", conditions=f'<saml:Conditions NotOnOrAfter="{END}"/>' * 2)
    bad("condition-unknown", restriction=f'<saml:AudienceRestriction><saml:Audience>{SP}</saml:Audience></saml:AudienceRestriction><saml:Condition xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="x"/>')
    bad("recipient-other", recipient="https://other.example.com/acs")
    bad("recipient-missing", recipient=None)
    right = confirmation()
    elsewhere = confirmation(recipient="https://other.example.com/acs")
    bad("confirmation-missing", subject=subject())
    bad("confirmation-holder-of-key", method=HOLDER_OF_KEY)
    bad("confirmation-data-missing", subject=subject(confirmation(data="")))
    # Each one lacks what the other one has.
    bad("confirmations-split", subject=subject(confirmation(end="2026-06-01T11:59:00Z"), elsewhere))
    bad("confirmations-split-answers", subject=subject(confirmation(answers="_other"), elsewhere))
    bad("confirmations-of-other-methods", subject=subject(confirmation(SENDER_VOUCHES), confirmation(HOLDER_OF_KEY)))
    bad("confirmations-second-malformed", subject=subject(right, right.replace(" Recipient=", ' recipient="x" Recipient=')))
    bad("confirmations-second-without-data", subject=subject(right, confirmation(data="")))
    bad("confirmations-assertion-inside", subject=subject(right, confirmation(SENDER_VOUCHES, data=evil())))
    bad("confirmations-name-between", subject=subject(right, name_id("admin@example.com"), right))
    bad("subject-missing", subject=" ")
    bad("name-missing", subject=f"<saml:Subject>{right}</saml:Subject>")
    bad("name-empty", name=name_id(""))
    bad("name-white-space", name=name_id(" ada@example.com"))
    bad("name-too-long", name=name_id("a" * 300))
    bad("name-transient", name=name_id("_t1", "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"))
    bad("name-for-another", name=name_id(more=' SPNameQualifier="https://other.example.com"'))
    bad("name-encrypted", subject=f"<saml:Subject><saml:EncryptedID/>{right}</saml:Subject>")
    bad("issuer-other", issuer="https://evil.example.com")
    bad("issuer-missing", issuer=None)
    bad("issuer-trailing-space", issuer=IDP + " ")
    outer("response-issuer-other", issuer="https://evil.example.com")
    write("response-signed-without-issuer", sign(sign(response(assertion(), issuer=None)), "_response"))
    write("issuer-other-alone", sign(response(assertion(issuer="https://evil.example.com"), issuer=None)))
    write("issuers-missing", sign(response(assertion(issuer=None), issuer=None)))
    outer("destination-other", destination="https://other.example.com/acs")
    outer("destination-missing", destination=None)
    outer("destination-empty", destination="")
    outer("answers-other", answers="_other")
    outer("answers-missing", answers=None)
    bad("confirmed-answers-other", answers="_other")
    bad("confirmed-answers-missing", answers=None)
    bad("begins-late", begin="2026-06-01T12:01:01Z")
    bad("ended", end="2026-06-01T11:59:00Z")
    bad("end-missing", end=None)
    bad("confirmed-begins-late", confirmed_begin="2026-06-01T12:01:01Z")
    bad("confirmed-ended", confirmed_end="2026-06-01T11:59:00Z")
    bad("confirmed-end-missing", confirmed_end=None)
    bad("time-not-utc", end="2026-06-01T14:05:00+02:00")
    bad("time-offset-zero", end="2026-06-01T12:05:00+00:00")
    bad("time-without-zone", end="2026-06-01T12:05:00")
    bad("time-nonsense", end="soon")
    bad("time-year-huge", end="99999999999-01-01T00:00:00Z")
    bad("time-impossible", end="2026-13-45T25:61:61Z")
    bad("session-ended", session_end="2026-06-01T11:58:00Z")
    bad("authentication-missing", authentication=" ")
    bad("version-1", version="1.1")
    bad("issued-nonsense", issued="yesterday")
    outer("response-version-3", version="3.0")
    outer("status-requester", status='<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Requester"/>')
    outer("status-missing", status=None)
    outer("status-empty", status="")
    outer("status-second-success", status='<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:StatusCode>')
    write("status-failed", response("", status='<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:AuthnFailed"/></samlp:StatusCode><samlp:StatusMessage>Not assigned.</samlp:StatusMessage>'))
    write("no-assertion", response(""))
    write("encrypted", response(f'<saml:EncryptedAssertion><xenc:EncryptedData xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"/></saml:EncryptedAssertion>'))
    bad("attribute-encrypted", attributes="<saml:EncryptedAttribute/>")
    bad("attribute-without-name", attributes="<saml:Attribute><saml:AttributeValue>x</saml:AttributeValue></saml:Attribute>")
    bad("attribute-nested", attributes=attribute("email", "<saml:Attribute/>"))
    bad("statement-unknown", more="<saml:AuthzDecisionStatement/>")
    user = name_id("u-1", PERSISTENT)
    bad("address-missing", name=user, attributes="")
    bad("address-two", name=user, attributes=attribute("email", "ada@example.com", "admin@example.com"))
    bad("address-two-attributes", name=user, attributes=attribute("email", "ada@example.com") + attribute("email", "admin@example.com"))
    bad("address-principal-names", name=user, attributes=attribute(PRINCIPAL_NAME, "ada@example.com", "admin@example.com"))
    bad("address-principal-name-without-domain", name=user, attributes=attribute(CLAIMS + "upn", "ada"))
    bad("address-two-ats", name=name_id("admin@evil.com@example.com"))
    bad("address-in-brackets", name=name_id("Ada &lt;ada@example.com&gt;"))
    bad("address-quoted", name=name_id('"admin@example.com"@evil.com'))
    bad("address-unicode", name=name_id("аda@example.com"))
    bad("address-with-line-end", name=user, attributes=attribute("email", "ada@example.com&#10;Bcc: x@y.zz"))
    bad("address-list", name=user, attributes=attribute("email", "ada@example.com,admin@example.com"))


OUT.mkdir(parents=True, exist_ok=True)
for file in OUT.glob("*.xml"):
    file.unlink()
valid()
wrapping()
signatures()
texts()
namespaces()
contents()
