//! The guided set-up of single sign-on for a domain: its steps, what to copy to the
//! identity provider, and the guide of each provider.

use leptos::prelude::*;

use crate::server_fns::domains::{DomainView, SiteView};
use crate::ui::copy::CopyValue;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell};

/// Providers with a page of the guide: name, page, and what they call the ACS URL, the entity
/// id and the redirect URI.
const PROVIDERS: [(&str, &str, &str, &str, &str); 4] = [
    (
        "Okta",
        "single-sign-on-okta",
        "Single sign-on URL",
        "Audience URI (SP Entity ID)",
        "Sign-in redirect URIs",
    ),
    (
        "Microsoft Entra",
        "single-sign-on-entra",
        "Reply URL (Assertion Consumer Service URL)",
        "Identifier (Entity ID)",
        "Redirect URI",
    ),
    ("Google", "single-sign-on-google", "ACS URL", "Entity ID", "Authorized redirect URIs"),
    (
        "Keycloak",
        "single-sign-on-keycloak",
        "Master SAML Processing URL",
        "Client ID",
        "Valid redirect URIs",
    ),
];

/// The steps, for those who may take them.
#[component]
pub(super) fn SetUp(domain: DomainView) -> impl IntoView {
    let DomainView { details, site, test, .. } = domain;
    let domain = details.domain;
    let is_tested = test.is_some_and(|test| test.works);
    let is_required = !domain.sso_enforcement.text().is_empty();
    let certificate = details.saml_signing_certificate.filter(|_| domain.saml_sign_requests);
    view! {
        <Section id="set-up" title="Set up single sign-on" hint="The steps, and the values for the identity provider.">
            <ol>
                <li>"Verify the domain, above. " {state(domain.is_verified)}</li>
                <li>
                    "Create an application at the identity provider, with these values:"
                    {values(site, certificate)}
                    {guides()}
                </li>
                <li>
                    "SAML: enter what the provider shows, in " <a href="#saml">"SAML provider"</a> ". "
                    {state(domain.has_saml)}
                    " OpenID Connect: staff of the instance enters it on the page "
                    <em>"Instance"</em> "."
                </li>
                <li>"Test the connection, in the same section. " {state(is_tested)}</li>
                <li>
                    "Require it, in " <a href="#sign-in">"Single sign-on"</a>
                    ", if members should sign in in no other way. " {state(is_required)}
                </li>
            </ol>
            <p><a href="/help/single-sign-on">"How single sign-on works"</a></p>
        </Section>
    }
}

/// Whether a step is done.
fn state(is_done: bool) -> AnyView {
    match is_done {
        true => view! { <Status tone=Tone::Good label="Done" /> }.into_any(),
        false => view! { <Status tone=Tone::Quiet label="Open" /> }.into_any(),
    }
}

/// What the identity provider must know of this instance.
fn values(site: SiteView, certificate: Option<String>) -> AnyView {
    let SiteView { entity_id, acs_url, metadata, redirect_uri } = site;
    view! {
        <dl class="facts">
            <dt>"SAML: ACS URL"</dt><dd><CopyValue text=acs_url what="ACS URL" /></dd>
            <dt>"SAML: entity id"</dt><dd><CopyValue text=entity_id what="entity id" /></dd>
            <dt>"SAML: metadata"</dt>
            <dd><a href=metadata.clone() rel="external">{metadata.clone()}</a></dd>
            {certificate.map(|text| view! {
                <dt>"SAML: certificate of requests"</dt>
                <dd><CopyValue text=text what="certificate" /></dd>
            })}
            <dt>"OpenID Connect: redirect URI"</dt>
            <dd><CopyValue text=redirect_uri what="redirect URI" /></dd>
        </dl>
        <p class="hint">"Replace NAME with the name of the provider on this instance, such as okta."</p>
    }
    .into_any()
}

/// The names of these values at each provider, and its guide.
fn guides() -> AnyView {
    let columns = vec![
        Column::text("Provider"),
        Column::text("ACS URL is called"),
        Column::text("Entity id is called"),
        Column::text("Redirect URI is called"),
        Column::text("Guide"),
    ];
    let rows = PROVIDERS.map(|(name, page, acs, entity, redirect)| {
        let guide = view! { <a href=format!("/help/{page}")>{format!("Set up {name}")}</a> };
        TableRow::new(vec![cell(name), cell(acs), cell(entity), cell(redirect), cell(guide)])
    });
    view! { <Table caption="Names of the values at each provider" columns=columns rows=rows.into_iter().collect() /> }
        .into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::PROVIDERS;
    use crate::help;

    #[test]
    fn every_provider_has_a_guide_with_its_own_names() {
        let index = help::index();
        let listed = |page: &str| {
            index.iter().any(|section| section.pages.iter().any(|(name, _)| name == page))
        };
        for (provider, page, acs, entity, redirect) in PROVIDERS {
            let guide = help::page(page).expect("a page of the guide");
            assert_eq!(guide.title, format!("Set up {provider}"));
            for name in [acs, entity, redirect] {
                assert!(guide.html.contains(name), "{page} names {name}");
            }
            for heading in ["SAML, for one domain", "OpenID Connect, for the instance"] {
                assert!(guide.html.contains(heading), "{page} has {heading}");
            }
            assert!(listed(page), "the index leads to {page}");
        }
    }
}
