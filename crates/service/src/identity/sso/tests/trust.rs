//! For whom the provider of a domain speaks (SSO-45), and changes of a provider that is
//! required (SSO-32).

use weir_model::domains::{DomainPatch, SamlPatch, SsoEnforcement};
use weir_model::organizations::Level;
use weir_model::{DomainId, Patch};

use super::{
    CERTIFICATE, domain, level, opened, outsider, owner, reasons, says, set_up, through_saml,
};
use crate::Services;
use crate::ctx::OrgCtx;
use crate::error::Error;
use crate::identity::SignedOn;
use crate::identity::sso::decide::Reason;
use crate::test_support::{self, join, key_input};

const ADA: &str = "ada.l@mail.example";

/// Signs in through the provider. Each answer of a provider counts once, so that each
/// `spelling` of an address may be used once.
async fn enters(services: &Services, acme: DomainId, subject: &str, spelling: &str) -> bool {
    match through_saml(services, acme, "x@mail.example", &says(subject, spelling)).await {
        SignedOn::Opened(..) => true,
        SignedOn::Refused(..) => false,
        other => panic!("{other:?}"),
    }
}

/// Changes the provider: the code of a refusal, or `saved`.
async fn save(
    services: &Services,
    org: &OrgCtx,
    acme: DomainId,
    saml: SamlPatch,
    confirmed: Option<&str>,
) -> String {
    let changeable = services.domains.changeable(org, &acme.to_string()).await.unwrap();
    let confirmed_name = confirmed.map(str::to_owned);
    let patch = DomainPatch { saml, confirmed_name, ..DomainPatch::default() };
    match services.domains.update(org, changeable, patch).await {
        Ok(_) => "saved".to_owned(),
        Err(Error::Invalid(fault)) => fault.code,
        Err(other) => panic!("{other:?}"),
    }
}

fn set(text: &str) -> Patch<String> {
    Patch::Set(text.to_owned())
}

#[tokio::test]
async fn the_provider_of_an_administrator_signs_in_no_owner() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Off, true).await;
    assert!(enters(&services, acme, "ada", ADA).await, "the owner set the provider up");

    let eve = outsider(&services, "eve").await;
    join(&services, org.organization, &eve, Level::Administrator).await;
    let eve = services.organizations.enter(&eve, &org.organization.to_string()).await.unwrap();
    let own = SamlPatch { x509_cert_next: set(CERTIFICATE), ..SamlPatch::default() };
    // Of the owner, the identity that was linked before counts from its time alone.
    services.clock.advance(1);
    let eve = OrgCtx { ctx: crate::ctx::Ctx { now: services.clock.now(), ..eve.ctx }, ..eve };
    assert_eq!(save(&services, &eve, acme, own.clone(), None).await, "saved");
    assert!(!enters(&services, acme, "ada", "Ada.l@mail.example").await, "by an old identity");
    assert!(!enters(&services, acme, "another", ADA).await, "by the address");
    assert_eq!(reasons(&services, &org).await, [Reason::Above.text(); 2]);
    let answer = says("grace", "grace@mail.example");
    let grace = opened(through_saml(&services, acme, "x@mail.example", &answer).await);
    assert_eq!(level(&services, &org, grace.user).await, Some(Level::Member));

    // Some of the fields do not confirm the others.
    assert_eq!(save(&services, &org, acme, own.clone(), None).await, "saved");
    assert!(!enters(&services, acme, "ada", "aDa.l@mail.example").await);
    let all = SamlPatch {
        entity_id: set("https://idp.example"),
        acs_url: set("https://idp.example/sso"),
        x509_cert: set(CERTIFICATE),
        ..own
    };
    assert_eq!(save(&services, &org, acme, all, None).await, "saved");
    assert!(enters(&services, acme, "ada", "adA.l@mail.example").await);
}

#[tokio::test]
async fn a_required_provider_is_not_broken_by_accident() {
    let services = set_up().await;
    let org = owner(&services).await;
    let key = test_support::key(&services, &org.ctx, key_input()).await;
    let by_key = services.organizations.enter(&key, "@current").await.unwrap();
    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Saml, false).await;
    assert!(enters(&services, acme, "ada", ADA).await);
    let none = SamlPatch::default;
    for (what, saml) in [
        ("a certificate", SamlPatch { x509_cert: set("wrong"), ..none() }),
        ("an entity id", SamlPatch { entity_id: set("https://other.example"), ..none() }),
        ("an address", SamlPatch { acs_url: set("https://other.example/sso"), ..none() }),
    ] {
        for confirmed in [None, Some("acme")] {
            let saved = save(&services, &org, acme, saml.clone(), confirmed).await;
            assert_eq!(saved, "would_lock_out", "{what}");
        }
    }
    // Accepting a further certificate breaks nothing.
    let next = SamlPatch { x509_cert_next: set(CERTIFICATE), ..none() };
    assert_eq!(save(&services, &org, acme, next, None).await, "saved");
    let other = SamlPatch { entity_id: set("https://other.example"), ..none() };
    assert_eq!(save(&services, &org, acme, other, Some("mail.example")).await, "saved");
    // The identity of the other provider proves nothing any more.
    let impact = services.domains.impact(&org, &acme.to_string()).await.unwrap();
    let saml = impact.ways.iter().find(|way| way.sso_enforcement == SsoEnforcement::Saml).unwrap();
    assert_eq!((saml.proved.len(), saml.locks_out_owners), (0, true));
    // A key confirms nothing, and reads who may be locked out.
    let again = SamlPatch { entity_id: set("https://idp.example"), ..none() };
    let changeable = services.domains.changeable(&by_key, &acme.to_string()).await.unwrap();
    let patch = DomainPatch { saml: again, ..DomainPatch::default() };
    let changed = services.domains.update(&by_key, changeable, patch).await.unwrap();
    assert_eq!(changed.saml_entity_id.as_deref(), Some("https://idp.example"));
    let codes: Vec<&str> = changed.warnings.iter().map(|warning| &*warning.code).collect();
    assert_eq!(codes, ["settings_by_key", "would_lock_out"]);
    assert!(changed.warnings[1].detail.contains("Ada.L@mail.example"), "{changed:?}");
}
