//! The guided set-up of single sign-on for a domain: its steps, and for each identity
//! provider what to enter there and what to copy from there, in the words of the provider.

use leptos::prelude::*;
use weir_model::sso::ConnectionTest;

use super::domain_saml::has_passed;
use crate::server_fns::domains::{DomainView, SIGN_IN_URL, SiteView};
use crate::ui::alert::Alert;
use crate::ui::copy::CopyValue;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};

/// An identity provider with a page of the guide, and what it calls each value.
struct Provider {
    name: &'static str,
    /// The page of the guide.
    page: &'static str,
    /// The names of the ACS URL of Weir, where the provider asks for it.
    acs_url: &'static [&'static str],
    entity_id: &'static str,
    redirect_uri: &'static str,
    /// The name of the provider on an instance: the only one that works, or an example.
    name_here: NameHere,
    /// The names of what goes into the [`FIELDS`] of the section "SAML provider".
    shows: [&'static str; 3],
    /// The names of the SCIM address and of the token; `None`: it does not provision.
    scim: Option<[&'static str; 2]>,
}

/// The name that a provider has on an instance.
#[derive(Clone, Copy)]
enum NameHere {
    /// The only one.
    Fixed(&'static str),
    /// Staff chooses it, such as this one.
    Such(&'static str),
}

const PROVIDERS: [Provider; 4] = [
    Provider {
        name: "Okta",
        page: "single-sign-on-okta",
        acs_url: &["Single sign-on URL"],
        entity_id: "Audience URI (SP Entity ID)",
        redirect_uri: "Sign-in redirect URIs",
        name_here: NameHere::Such("okta"),
        shows: [
            "Identity Provider Issuer",
            "Identity Provider Single Sign-On URL",
            "X.509 Certificate",
        ],
        scim: Some(["SCIM connector base URL", "Authorization, Bearer"]),
    },
    Provider {
        name: "Microsoft Entra",
        page: "single-sign-on-entra",
        acs_url: &["Reply URL (Assertion Consumer Service URL)"],
        entity_id: "Identifier (Entity ID)",
        redirect_uri: "Redirect URI",
        name_here: NameHere::Such("entra"),
        shows: ["Microsoft Entra Identifier", "Login URL", "Certificate (Base64)"],
        scim: Some(["Tenant URL", "Secret Token"]),
    },
    Provider {
        name: "Google",
        page: "single-sign-on-google",
        acs_url: &["ACS URL"],
        entity_id: "Entity ID",
        redirect_uri: "Authorized redirect URIs",
        name_here: NameHere::Fixed("google-oauth2"),
        shows: ["Entity ID", "SSO URL", "Certificate"],
        scim: None,
    },
    Provider {
        name: "Keycloak",
        page: "single-sign-on-keycloak",
        acs_url: &["Master SAML Processing URL", "Valid redirect URIs"],
        entity_id: "Client ID",
        redirect_uri: "Valid redirect URIs",
        name_here: NameHere::Such("keycloak"),
        shows: [
            "The address of the realm",
            "The address of the realm and /protocol/saml",
            "Certificate",
        ],
        scim: None,
    },
];

/// The fields of the section "SAML provider", in the order of [`Provider::shows`].
const FIELDS: [&str; 3] = ["Entity id", SIGN_IN_URL, "X.509 certificate"];

/// The steps, for those who may take them.
#[component]
pub(super) fn SetUp(domain: DomainView) -> impl IntoView {
    let DomainView { details, scim, site, test, .. } = domain;
    let domain = details.domain;
    let tested = test_state(test.as_ref());
    let is_insecure = site.acs_url.starts_with("http://");
    let is_required = !domain.sso_enforcement.text().is_empty();
    let certificate = details.saml_signing_certificate.filter(|_| domain.saml_sign_requests);
    let providers = PROVIDERS.map(|provider| guide(&provider, &site, &scim.url)).collect_view();
    view! {
        <Section id="set-up" title="Set up single sign-on" hint="The steps in their order, and the values to enter at your identity provider.">
            {is_insecure.then(insecure)}
            <ol class="set-up-steps">
                <li>"Verify the domain, in " <a href="#ownership">"Ownership"</a> ". " {state(domain.is_verified)}</li>
                <li>
                    "Create an application at the identity provider. Choose yours:"
                    {providers}
                    {other(site, certificate)}
                </li>
                <li>
                    "Copy the values that the provider shows into " <a href="#saml">"SAML provider"</a> ". "
                    {state(domain.has_saml)}
                </li>
                <li>"Test the connection, in the same section. " {tested}</li>
                <li>
                    "Let colleagues join: invite them, or turn on "
                    <a href="#provisioning">"Just-in-time provisioning"</a> ". "
                    {optional(domain.jit_provisioning_enabled)}
                </li>
                <li>
                    "To have the provider add and deactivate members, make a token in "
                    <a href="#scim">"Provisioning"</a> ", and enter it at the provider. "
                    {optional(scim.token.is_some())}
                </li>
                <li>
                    "To allow no other way of signing in, require this one in "
                    <a href="#sign-in">"Single sign-on"</a> ". " {optional(is_required)}
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
        false => view! { <Status tone=Tone::Quiet label="To do" /> }.into_any(),
    }
}

/// Whether a step is done that not everyone needs.
fn optional(is_done: bool) -> AnyView {
    match is_done {
        true => state(true),
        false => view! { <Status tone=Tone::Quiet label="Optional" /> }.into_any(),
    }
}

/// How the last test ended.
fn test_state(test: Option<&ConnectionTest>) -> AnyView {
    let Some(test) = test else { return state(false) };
    match (test.works, has_passed(test)) {
        (true, _) => state(true),
        (false, true) => {
            view! { <Status tone=Tone::Warn label="Checks passed, sign-in refused" /> }.into_any()
        }
        (false, false) => view! { <Status tone=Tone::Bad label="Failed" /> }.into_any(),
    }
}

/// What to do before these addresses are copied.
fn insecure() -> AnyView {
    view! {
        <Alert kind="warning">
            <p>
                "The addresses below begin with http, and many providers accept only https. They change with the public address of Weir, so set that first: "
                <a href="/help/sign-in">"Let others sign in"</a> "."
            </p>
        </Alert>
    }
    .into_any()
}

/// A value with its name at the provider.
fn value(name: impl Into<String>, text: &str, what: &'static str) -> AnyView {
    let text = text.to_owned();
    view! { <dt>{name.into()}</dt><dd><CopyValue text=text what=what /></dd> }.into_any()
}

/// What to enter at one provider, and what to copy from there.
fn guide(provider: &Provider, site: &SiteView, scim_url: &str) -> AnyView {
    let Provider { name, page, acs_url, entity_id, redirect_uri, name_here, shows, scim } =
        provider;
    let acs = acs_url.iter().map(|called| value(*called, &site.acs_url, "ACS URL"));
    let acs = acs.collect_view();
    let shown = FIELDS.iter().zip(shows).map(|(field, called)| {
        view! { <dt>{*called}</dt><dd>{*field}</dd> }
    });
    let shown = shown.collect_view();
    let redirect = match name_here {
        NameHere::Fixed(fixed) => site.redirect_uri.replace("/NAME/", &format!("/{fixed}/")),
        NameHere::Such(_) => site.redirect_uri.clone(),
    };
    let provisioning = scim.map(|[address, token]| {
        view! {
            <p>{format!("For provisioning, enter at {name}:")}</p>
            <dl class="facts">
                {value(address, scim_url, "SCIM address")}
                <dt>{token}</dt><dd>"The token from " <a href="#scim">"Provisioning"</a></dd>
            </dl>
        }
    });
    view! {
        <details class="help">
            <summary>{*name}</summary>
            <p>{format!("Enter at {name}:")}</p>
            <dl class="facts">
                {acs}
                {value(*entity_id, &site.entity_id, "entity id")}
            </dl>
            <p>{format!("Copy each value from {name} into this field of ")} <a href="#saml">"SAML provider"</a> ":"</p>
            <dl class="facts">{shown}</dl>
            {provisioning}
            <p>{format!("With OpenID Connect instead of SAML, enter at {name}:")}</p>
            <dl class="facts">{value(*redirect_uri, &redirect, "redirect URI")}</dl>
            {of_instance(*name_here)}
            <p><a href=format!("/help/{page}")>{format!("Set up {name}")}</a></p>
        </details>
    }
    .into_any()
}

/// The values for every other identity provider.
fn other(site: SiteView, certificate: Option<String>) -> AnyView {
    let SiteView { entity_id, acs_url, metadata, redirect_uri } = site;
    view! {
        <details class="help">
            <summary>"Another provider"</summary>
            <dl class="facts">
                {value("SAML: ACS URL", &acs_url, "ACS URL")}
                {value("SAML: entity id", &entity_id, "entity id")}
                <dt>"SAML: metadata"</dt>
                <dd><a href=metadata.clone() rel="external">{metadata.clone()}</a></dd>
                {certificate.map(|text| value("SAML: certificate of requests", &text, "certificate"))}
                {value("OpenID Connect: redirect URI", &redirect_uri, "redirect URI")}
            </dl>
            {of_instance(NameHere::Such("corp"))}
        </details>
    }
    .into_any()
}

/// What is different with OpenID Connect.
fn of_instance(name: NameHere) -> AnyView {
    let name = match name {
        NameHere::Fixed(fixed) => format!(", with the name {fixed}."),
        NameHere::Such(example) => {
            format!(". Replace NAME with the name that it gets there, such as {example}.")
        }
    };
    view! {
        <p class="hint">
            "OpenID Connect is for the whole instance: its staff adds the provider on the page "
            <em>"Instance"</em> {name}
        </p>
    }
    .into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::{FIELDS, PROVIDERS};
    use crate::help;

    #[test]
    fn every_provider_has_a_guide_with_its_own_names() {
        let index = help::index();
        let listed = |page: &str| {
            index.iter().any(|section| section.pages.iter().any(|(name, _)| name == page))
        };
        let provisioning = help::page("provisioning").expect("a page of the guide").html;
        for provider in PROVIDERS {
            let page = provider.page;
            let guide = help::page(page).expect("a page of the guide");
            assert_eq!(guide.title, format!("Set up {}", provider.name));
            let html = guide.html.replace("<code>", "").replace("</code>", "");
            let names = [provider.entity_id, provider.redirect_uri];
            let names = names.into_iter().chain(provider.shows).chain(FIELDS);
            for name in names.chain(provider.acs_url.iter().copied()) {
                assert!(html.contains(name), "{page} names {name}");
            }
            for name in provider.scim.into_iter().flatten() {
                assert!(provisioning.contains(name), "the guide of provisioning names {name}");
            }
            for heading in ["SAML, for one domain", "OpenID Connect, for the instance"] {
                assert!(guide.html.contains(heading), "{page} has {heading}");
            }
            assert!(listed(page), "the index leads to {page}");
        }
    }
}
