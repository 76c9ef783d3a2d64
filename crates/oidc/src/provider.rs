//! The settings of a provider.
//!
//! What belongs here: checking settings that an operator or an administrator entered.
//! What does not: where they are stored, and the requests (`discovery`, `github`).

use url::{Host, Url};

use crate::secret::Secret;

/// The longest issuer and the longest base URL.
const MAX_URL: usize = 512;
/// The longest client id, client secret, scope, and name to show.
const MAX_TEXT: usize = 512;
/// The highest number of scopes.
const MAX_SCOPES: usize = 16;

const GOOGLE: &str = "https://accounts.google.com";
const GITLAB: &str = "https://gitlab.com";
const GITHUB: &str = "https://github.com";
const GITHUB_API: &str = "https://api.github.com";

/// The kind of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `google-oauth2`: Google, by OpenID Connect.
    Google,
    /// `gitlab`: GitLab.com or a GitLab of an organization, by OpenID Connect.
    GitLab,
    /// `github`: GitHub.com or GitHub Enterprise, by its OAuth API.
    GitHub,
    /// Any other issuer, by OpenID Connect.
    OpenId,
}

impl Kind {
    /// The id of the provider of this kind; an issuer of another kind chooses its id.
    pub(crate) fn id(self) -> Option<&'static str> {
        match self {
            Self::Google => Some("google-oauth2"),
            Self::GitLab => Some("gitlab"),
            Self::GitHub => Some("github"),
            Self::OpenId => None,
        }
    }
}

/// The settings of a provider as they were entered.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The id: part of paths, and of the key of every identity.
    pub id: String,
    /// The kind.
    pub kind: Kind,
    /// The name to show on the button.
    pub display_name: String,
    /// The issuer, or for GitHub the address of its pages. Empty: that of the kind.
    pub issuer: String,
    /// The address of GitHub's API. Empty: that of GitHub.com, or `/api/v3` below the
    /// pages. Other kinds have none.
    pub api: String,
    /// The id of this instance at the provider.
    pub client_id: String,
    /// The secret of this instance at the provider.
    pub client_secret: Secret,
    /// Scopes besides those of the kind.
    pub scopes: Vec<String>,
}

/// Which setting is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// The id.
    #[error(
        "The id of a provider has 1 to 28 lower-case letters, digits and hyphens; those of Google, GitLab and GitHub are google-oauth2, gitlab and github."
    )]
    Id,
    /// The name to show.
    #[error("The name of a provider has 1 to 512 characters.")]
    DisplayName,
    /// The issuer, or the address of GitHub.
    #[error("The issuer is an https URL without user, query and fragment.")]
    Issuer,
    /// The address of the API.
    #[error(
        "The address of the API is an https URL without user, query and fragment, and only GitHub has one."
    )]
    Api,
    /// The client id.
    #[error("The client id has 1 to 512 characters of visible ASCII.")]
    ClientId,
    /// The client secret.
    #[error("The client secret has 1 to 512 characters of visible ASCII.")]
    ClientSecret,
    /// A scope.
    #[error(
        "There are at most 16 scopes, each of visible ASCII without quotation marks and backslashes."
    )]
    Scopes,
}

/// A provider whose settings have been checked.
#[derive(Debug, Clone)]
pub struct Provider {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) display_name: String,
    pub(crate) issuer: String,
    pub(crate) api: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: Secret,
    pub(crate) scopes: Vec<String>,
}

impl Provider {
    /// Checks settings. Nothing is requested.
    ///
    /// # Errors
    /// [`InvalidSetting`] of the first invalid setting.
    pub fn new(settings: Settings) -> Result<Self, InvalidSetting> {
        let Settings { id, kind, display_name, client_id, client_secret, .. } = settings;
        if !is_id(&id, kind) {
            return Err(InvalidSetting::Id);
        }
        if display_name.trim().is_empty()
            || display_name.len() > MAX_TEXT
            || display_name.chars().any(char::is_control)
        {
            return Err(InvalidSetting::DisplayName);
        }
        if !is_visible(&client_id) {
            return Err(InvalidSetting::ClientId);
        }
        if !is_visible(client_secret.expose()) {
            return Err(InvalidSetting::ClientSecret);
        }
        let is_scope = |scope: &String| is_visible(scope) && !scope.contains(['"', '\\']);
        if settings.scopes.len() > MAX_SCOPES || !settings.scopes.iter().all(is_scope) {
            return Err(InvalidSetting::Scopes);
        }
        let issuer = match (settings.issuer, kind) {
            (entered, _) if !entered.is_empty() => entered,
            (_, Kind::Google) => GOOGLE.to_owned(),
            (_, Kind::GitLab) => GITLAB.to_owned(),
            (_, Kind::GitHub) => GITHUB.to_owned(),
            (_, Kind::OpenId) => return Err(InvalidSetting::Issuer),
        };
        if !is_base(&issuer) {
            return Err(InvalidSetting::Issuer);
        }
        let api = match (settings.api, kind) {
            (entered, Kind::GitHub) if !entered.is_empty() => entered,
            (_, Kind::GitHub) if issuer == GITHUB => GITHUB_API.to_owned(),
            (_, Kind::GitHub) => format!("{}/api/v3", issuer.trim_end_matches('/')),
            (entered, _) if entered.is_empty() => entered,
            _ => return Err(InvalidSetting::Api),
        };
        if kind == Kind::GitHub && !is_base(&api) {
            return Err(InvalidSetting::Api);
        }
        let mut scopes: Vec<String> = match kind {
            Kind::GitHub => vec!["read:user".to_owned(), "user:email".to_owned()],
            _ => ["openid", "profile", "email"].map(str::to_owned).to_vec(),
        };
        for scope in settings.scopes {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        Ok(Self { id, kind, display_name, issuer, api, client_id, client_secret, scopes })
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name to show on the button.
    pub fn display_name(&self) -> &str {
        &self.display_name
    }

    /// The issuer, or for GitHub the address of its pages.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Whether Google issues the tokens. A provider of any kind and id can have this issuer,
    /// and one of the kind `Google` another issuer.
    pub(crate) fn is_google(&self) -> bool {
        self.issuer == GOOGLE
    }
}

fn is_id(id: &str, kind: Kind) -> bool {
    if let Some(fixed) = kind.id() {
        return id == fixed;
    }
    let reserved = ["google-oauth2", "gitlab", "github", "saml"];
    (1..=28).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !reserved.contains(&id)
}

fn is_visible(text: &str) -> bool {
    (1..=MAX_TEXT).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text is an issuer, or a base of an API: an https URL, or http to this
/// machine, which tests and development use.
fn is_base(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    is_visible(text)
        && text.len() <= MAX_URL
        && is_safe(&url, is_loopback(&url))
        && url.query().is_none()
}

/// Whether a URL may be used: https without user and fragment, and http to this machine
/// only if `with_loopback`.
pub(crate) fn is_safe(url: &Url, with_loopback: bool) -> bool {
    let is_encrypted = url.scheme() == "https";
    (is_encrypted || (with_loopback && is_loopback(url)))
        && url.host().is_some()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
}

/// Whether a URL is http to a loopback address, or to `localhost`. Egress decides whether
/// that may be dialled, and refuses a `localhost` that stands for another address.
pub(crate) fn is_loopback(url: &Url) -> bool {
    url.scheme() == "http"
        && match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::{InvalidSetting, Kind, Provider, Settings};
    use crate::Secret;

    fn settings(kind: Kind, id: &str) -> Settings {
        Settings {
            id: id.to_owned(),
            kind,
            display_name: "Example".to_owned(),
            issuer: String::new(),
            api: String::new(),
            client_id: "client".to_owned(),
            client_secret: Secret::new("hidden".to_owned()),
            scopes: Vec::new(),
        }
    }

    #[test]
    fn kinds_have_their_issuers_and_scopes() {
        let google = Provider::new(settings(Kind::Google, "google-oauth2")).unwrap();
        assert_eq!(google.issuer(), "https://accounts.google.com");
        assert_eq!(google.scopes, ["openid", "profile", "email"]);
        let github = Provider::new(settings(Kind::GitHub, "github")).unwrap();
        assert_eq!(github.api, "https://api.github.com");
        assert_eq!(github.scopes, ["read:user", "user:email"]);
        let mut own = settings(Kind::GitHub, "github");
        own.issuer = "https://github.example/".to_owned();
        assert_eq!(Provider::new(own).unwrap().api, "https://github.example/api/v3");
        let mut gitlab = settings(Kind::GitLab, "gitlab");
        gitlab.issuer = "https://gitlab.example".to_owned();
        gitlab.scopes = vec!["email".to_owned(), "read_user".to_owned()];
        let gitlab = Provider::new(gitlab).unwrap();
        assert_eq!(gitlab.issuer(), "https://gitlab.example");
        assert_eq!(gitlab.scopes, ["openid", "profile", "email", "read_user"]);
        assert!(!format!("{gitlab:?}").contains("hidden"));
    }

    #[test]
    fn an_issuer_is_https_or_on_this_machine() {
        let with = |issuer: &str| {
            let mut settings = settings(Kind::OpenId, "keycloak");
            settings.issuer = issuer.to_owned();
            Provider::new(settings).map(drop)
        };
        for issuer in [
            "https://issuer.example",
            "https://issuer.example:8443/realms/a",
            "http://127.0.0.1:5556",
            "http://[::1]:5556/dex",
            "http://localhost:3000",
        ] {
            assert_eq!(with(issuer), Ok(()), "{issuer}");
        }
        for issuer in [
            "",
            "issuer.example",
            "http://issuer.example",
            "http://localhost.example",
            "http://issuer.localhost:3000",
            "http://localhost.:3000",
            "http://10.0.0.1",
            "ftp://issuer.example",
            "https://user@issuer.example",
            "https://user:word@issuer.example",
            "https://issuer.example?a=b",
            "https://issuer.example#a",
            "https://issuer.example/ä",
            "https://",
            "file:///etc/passwd",
        ] {
            assert_eq!(with(issuer), Err(InvalidSetting::Issuer), "{issuer}");
        }
    }

    #[test]
    fn invalid_settings_are_named() {
        type Change = fn(&mut Settings);
        let cases: [(Change, InvalidSetting); 11] = [
            (|it| it.id = "google-oauth2".to_owned(), InvalidSetting::Id),
            (|it| it.id = "saml".to_owned(), InvalidSetting::Id),
            (|it| it.id = "Key/cloak".to_owned(), InvalidSetting::Id),
            (|it| it.id = "a".repeat(29), InvalidSetting::Id),
            (|it| it.display_name = " ".to_owned(), InvalidSetting::DisplayName),
            (|it| it.display_name = "a\nb".to_owned(), InvalidSetting::DisplayName),
            (|it| it.client_id = String::new(), InvalidSetting::ClientId),
            (
                |it| it.client_secret = Secret::new("a\r\nb".to_owned()),
                InvalidSetting::ClientSecret,
            ),
            (|it| it.scopes = vec!["a b".to_owned()], InvalidSetting::Scopes),
            (|it| it.scopes = vec!["a".to_owned(); 17], InvalidSetting::Scopes),
            (|it| it.api = "https://api.example".to_owned(), InvalidSetting::Api),
        ];
        for (change, expected) in cases {
            let mut settings = settings(Kind::OpenId, "keycloak");
            settings.issuer = "https://issuer.example".to_owned();
            change(&mut settings);
            assert_eq!(Provider::new(settings).err(), Some(expected));
        }
        let mut github = settings(Kind::GitHub, "github");
        github.api = "http://api.example".to_owned();
        assert_eq!(Provider::new(github).err(), Some(InvalidSetting::Api));
        let other = settings(Kind::GitHub, "gitlab");
        assert_eq!(Provider::new(other).err(), Some(InvalidSetting::Id));
    }
}
