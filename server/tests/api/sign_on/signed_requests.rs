//! Requests to the SAML provider of a domain that are signed (SSO-34).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::json;
use weir_model::DomainId;
use weir_testkit::TestApp;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::identity_provider::{OWN, Request, Says};
use super::saml::{self, ENTITY_ID};
use super::set_cookie;
use crate::domains::{one, trust_settings, verified};

/// The signing certificate in the metadata, if there is one.
async fn certificate(app: &TestApp, query: &str) -> Option<String> {
    let metadata = app.anonymous().get(&format!("/api/saml/metadata/{query}")).await.text();
    let found = metadata
        .split_once("<ds:X509Certificate>")
        .map(|(_, rest)| rest.split_once("</ds:X509Certificate>").unwrap().0.to_owned());
    let says = format!("AuthnRequestsSigned=\"{}\"", found.is_some());
    assert!(metadata.contains(&says), "{metadata}");
    found
}

/// Whether the certificate's key signed the query as it was sent.
fn is_signed_by(request: &Request, certificate: &str) -> bool {
    let (signed, signature) = request.query.rsplit_once("&Signature=").expect("a signature");
    let algorithm = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";
    let mut pairs = form_urlencoded::parse(signed.as_bytes());
    assert!(pairs.any(|pair| pair == ("SigAlg".into(), algorithm.into())), "{signed}");
    let signature = format!("s={signature}");
    let (_, signature) = form_urlencoded::parse(signature.as_bytes()).next().unwrap();
    let signature = STANDARD.decode(signature.as_bytes()).unwrap();
    let certificate = Certificate::from_der(&STANDARD.decode(certificate).unwrap()).unwrap();
    let key = certificate.tbs_certificate.subject_public_key_info.subject_public_key;
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.raw_bytes());
    key.verify(signed.as_bytes(), &signature).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_signed_where_the_domain_wishes_with_a_key_of_its_own() {
    let app = TestApp::with_owner().await;
    let owner = app.owner().key(&["*"]).await;
    let domain = verified(&app, "mail.example").await;
    let (path, id) = (one(&app, &domain), domain["id"].as_str().unwrap());
    saml::connect(&owner, &path, ENTITY_ID, OWN).await;
    trust_settings(&app, &path).await;
    let of_domain = format!("?domain={id}");
    let (_, request) = saml::begin_login(&app, "x@mail.example", "").await;
    assert!(!request.query.contains("Signature"), "{}", request.query);
    assert_eq!(certificate(&app, &of_domain).await, None);

    let sign = async |wished: bool| {
        let answer = owner.patch(&path, &json!({"saml_sign_requests": wished})).await;
        assert_eq!((answer.status, &answer.json()["saml_sign_requests"]), (200, &json!(wished)));
        assert!(!answer.text().contains("PRIVATE"));
    };
    sign(true).await;
    let own = certificate(&app, &of_domain).await.expect("a certificate");
    for other in ["", "?domain=0199a1b2-0000-7000-8000-000000000001", "?domain=x"] {
        assert_eq!(certificate(&app, other).await, None, "{other}");
    }
    let (cookie, request) = saml::begin_login(&app, "x@mail.example", "").await;
    assert!(is_signed_by(&request, &own));
    let mut changed = request.clone();
    changed.query = request.query.replace("RelayState=", "RelayState=x");
    assert!(!is_signed_by(&changed, &own));
    let says = Says::about(&request, ENTITY_ID, "ada@mail.example");
    let answer = saml::bring(&app, &cookie, &request.relay_state, &says.signed()).await;
    assert!(set_cookie(&answer, "session").is_some());

    // The key is stored sealed.
    let row = weir_store::domains::get_any(app.store(), id.parse::<DomainId>().unwrap()).await;
    let stored = row.unwrap().unwrap().saml_signing_key.unwrap();
    assert!(!stored.contains("PRIVATE") && !stored.contains(&own), "{stored}");
    // The certificate that the identity provider has stays valid.
    sign(false).await;
    let (_, request) = saml::begin_login(&app, "x@mail.example", "").await;
    assert!(!request.query.contains("Signature"));
    assert_eq!(certificate(&app, &of_domain).await, None);
    sign(true).await;
    assert_eq!(certificate(&app, &of_domain).await.as_ref(), Some(&own));
    // Another domain has another key, from the beginning.
    let domains = path.replace(&format!("{id}/"), "");
    let body = json!({"domain": "more.example", "saml_sign_requests": true});
    let made = owner.post(&domains, &body).await.json();
    assert_eq!(made["saml_sign_requests"], true);
    let of_other = format!("?domain={}", made["id"].as_str().unwrap());
    let other = certificate(&app, &of_other).await.expect("a certificate");
    assert_ne!(other, own);
    assert!(!is_signed_by(&saml::begin_login(&app, "x@mail.example", "").await.1, &other));
    // It ends with its domain.
    let other_path = format!("{domains}{}/", made["id"].as_str().unwrap());
    assert_eq!(owner.delete(&other_path).await.status, 204);
    assert_eq!(certificate(&app, &of_other).await, None);
}
