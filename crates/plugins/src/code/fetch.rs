//! Fetching the code of plugins from other hosts.
//!
//! What belongs here: the requests to each host, and checking the answers. What does not:
//! which addresses may be connected to (`weir-egress`).
//!
//! A token is sent only to the host that the address names, and is never logged. Text
//! from a host is never shown to members.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sha2::{Digest as _, Sha512};
use weir_egress::{Egress, Fault, FaultClass, Method, header};
use weir_model::plugins::address::Address;
use weir_service::plugins::code::{CodeFault, Fetched};

use super::archive::ARCHIVE_BYTES_MAX;
use super::extracted;
use super::repository::{CodeLocation, Repository};
use crate::Shared;

/// Maximum bytes of the description of a package with all its versions.
const ABOUT_MAX: usize = 8 << 20;
/// Characters that are percent-encoded in a URL.
const SPECIAL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Maximum redirects.
const HOPS: usize = 3;

/// GitHub has its API on another host; self-hosted installations have it below a path.
const GITHUB: (&str, &str) = ("https://github.com", "https://api.github.com");

/// Base addresses of the hosts of plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origins {
    /// Base address of GitHub.
    pub github: String,
    /// Base address of GitLab.
    pub gitlab: String,
    /// Base address of the npm registry.
    pub npm: String,
}

impl Default for Origins {
    fn default() -> Self {
        Self {
            github: GITHUB.0.to_owned(),
            gitlab: "https://gitlab.com".to_owned(),
            npm: "https://registry.npmjs.org".to_owned(),
        }
    }
}

impl Origins {
    fn github_api(&self) -> String {
        let (own, api) = GITHUB;
        if self.github == own { api.to_owned() } else { format!("{}/api/v3", self.github) }
    }
}

/// How a token is sent.
#[derive(Clone, Copy)]
enum Token<'a> {
    None,
    /// As an `Authorization` header.
    Bearer(&'a str),
    /// As the header of GitLab.
    GitLab(&'a str),
}

impl<'a> Token<'a> {
    fn bearer(token: Option<&'a str>) -> Self {
        token.map_or(Self::None, Self::Bearer)
    }

    fn gitlab(token: Option<&'a str>) -> Self {
        token.map_or(Self::None, Self::GitLab)
    }
}

impl Shared {
    /// Fetches the files at an address.
    pub(crate) async fn fetch_code(
        &self,
        address: &Address,
        token: Option<&str>,
    ) -> Result<Fetched, CodeFault> {
        let origins = &self.settings.origins;
        match location_of(address)? {
            CodeLocation::GitHub(repository) => {
                let version = match repository.fixed() {
                    Some(version) => Some(version),
                    None => wanted(&repository, self.newest_on_github(&repository, token).await),
                };
                let (path, named) = (&repository.path, version.as_deref().unwrap_or("HEAD"));
                let url = format!("{}/{path}/archive/{}.zip", origins.github, encoded_ref(named));
                let archive = self.get(&url, Token::bearer(token), ARCHIVE_BYTES_MAX).await?;
                Ok(Fetched { files: extracted(archive, repository.folder).await?, tag: version })
            }
            CodeLocation::GitLab(repository) => {
                let version = match repository.fixed() {
                    Some(version) => Some(version),
                    None => wanted(&repository, self.newest_on_gitlab(&repository, token).await),
                };
                let api = gitlab_api(&origins.gitlab, &repository);
                let mut url = format!("{api}/repository/archive.zip");
                if let Some(version) = &version {
                    url.push_str("?sha=");
                    url.push_str(&encoded(version));
                }
                let archive = self.get(&url, Token::gitlab(token), ARCHIVE_BYTES_MAX).await?;
                Ok(Fetched { files: extracted(archive, repository.folder).await?, tag: version })
            }
            CodeLocation::Npm { name, version } => {
                let about = self.about_package(&name, token).await?;
                let version = version.or_else(|| latest_of(&about)).ok_or_else(no_version)?;
                let of = about.get("versions").and_then(|all| all.get(&version));
                let dist = of.and_then(|of| of.get("dist")).ok_or_else(no_version)?;
                let text = |name: &str| dist.get(name).and_then(Value::as_str);
                let tarball = text("tarball").ok_or_else(no_version)?;
                // Only the registry gets the token.
                let is_own = tarball.starts_with(&format!("{}/", origins.npm));
                let token = if is_own { Token::bearer(token) } else { Token::None };
                let archive = self.get(tarball, token, ARCHIVE_BYTES_MAX).await?;
                check(&archive, text("integrity").unwrap_or_default())?;
                Ok(Fetched { files: extracted(archive, None).await?, tag: Some(version) })
            }
        }
    }

    /// The newest version at an address.
    pub(crate) async fn latest_code(
        &self,
        address: &Address,
        token: Option<&str>,
    ) -> Result<Option<String>, CodeFault> {
        match location_of(address)? {
            CodeLocation::GitHub(repository) => self.newest_on_github(&repository, token).await,
            CodeLocation::GitLab(repository) => self.newest_on_gitlab(&repository, token).await,
            CodeLocation::Npm { name, .. } => {
                Ok(latest_of(&self.about_package(&name, token).await?))
            }
        }
    }

    async fn newest_on_github(
        &self,
        repository: &Repository,
        token: Option<&str>,
    ) -> Result<Option<String>, CodeFault> {
        let (api, path) = (self.settings.origins.github_api(), &repository.path);
        let mut url = format!("{api}/repos/{path}/commits?per_page=1");
        if let Some(branch) = repository.version.as_ref().filter(|_| repository.may_move) {
            url.push_str("&sha=");
            url.push_str(&encoded(branch));
        }
        let commits = self.get_json(&url, Token::bearer(token)).await?;
        Ok(commits.pointer("/0/sha").and_then(Value::as_str).and_then(tag))
    }

    async fn newest_on_gitlab(
        &self,
        repository: &Repository,
        token: Option<&str>,
    ) -> Result<Option<String>, CodeFault> {
        let api = gitlab_api(&self.settings.origins.gitlab, repository);
        let mut url = format!("{api}/repository/commits?per_page=1");
        if let Some(branch) = repository.version.as_ref().filter(|_| repository.may_move) {
            url.push_str("&ref_name=");
            url.push_str(&encoded(branch));
        }
        let commits = self.get_json(&url, Token::gitlab(token)).await?;
        Ok(commits.pointer("/0/id").and_then(Value::as_str).and_then(tag))
    }

    async fn about_package(&self, name: &str, token: Option<&str>) -> Result<Value, CodeFault> {
        // The slash after a scope is part of the name.
        let url = format!("{}/{}", self.settings.origins.npm, name.replace('/', "%2F"));
        self.get_json(&url, Token::bearer(token)).await
    }

    async fn get_json(&self, url: &str, token: Token<'_>) -> Result<Value, CodeFault> {
        let body = self.get(url, token, ABOUT_MAX).await?;
        let unusable = |_| CodeFault::Unreachable("The host did not answer with JSON.".to_owned());
        serde_json::from_slice(&body).map_err(unusable)
    }

    /// Fetches a URL. Hosts redirect large downloads. Each target is checked like the
    /// first, and gets no token.
    async fn get(&self, url: &str, token: Token<'_>, max: usize) -> Result<Bytes, CodeFault> {
        let (mut url, mut token) = (url.to_owned(), token);
        for _ in 0..=HOPS {
            let request = self.egress.request(Method::GET, &url);
            let request = request.map_err(|refused| unreachable_by(refused.into()))?;
            let request = request.header(header::ACCEPT, "application/json, */*;q=0.1");
            let request = match token {
                Token::None => request,
                Token::Bearer(token) => request.bearer_auth(token),
                Token::GitLab(token) => request.header("private-token", token),
            };
            let response = request.send().await.map_err(|error| unreachable_by(error.into()))?;
            let status = response.status();
            if status.is_success() {
                return Egress::read(response, max).await.map_err(|fault| match fault.class {
                    FaultClass::TooLarge => {
                        CodeFault::Unusable("The code is larger than is fetched.".to_owned())
                    }
                    _ => unreachable_by(fault),
                });
            }
            let there = response.headers().get(header::LOCATION);
            let there = there.filter(|_| status.is_redirection());
            let Some(there) = there.and_then(|there| there.to_str().ok()) else {
                return Err(unreachable_by(FaultClass::Status(status.as_u16()).into()));
            };
            let next = response.url().join(there);
            let next = next.map_err(|_| unreachable_by(FaultClass::NotFound.into()))?;
            if next.origin() != response.url().origin() {
                token = Token::None;
            }
            url = next.into();
        }
        Err(CodeFault::Unreachable("The host leads from one address to the next.".to_owned()))
    }
}

fn location_of(address: &Address) -> Result<CodeLocation, CodeFault> {
    CodeLocation::of(address)
        .ok_or_else(|| CodeFault::Unusable("The address names no code.".to_owned()))
}

/// The version to fetch if no version is named, or if the named version moves: its
/// current commit, if the host reports it.
fn wanted(repository: &Repository, latest: Result<Option<String>, CodeFault>) -> Option<String> {
    latest.ok().flatten().or_else(|| repository.version.clone())
}

fn unreachable_by(fault: Fault) -> CodeFault {
    CodeFault::Unreachable(format!("The code could not be fetched: {}.", fault.class))
}

fn no_version() -> CodeFault {
    CodeFault::Unusable("The package has no such version.".to_owned())
}

fn latest_of(about: &Value) -> Option<String> {
    about.pointer("/dist-tags/latest").and_then(Value::as_str).and_then(tag)
}

/// A version name from another host, if it is a valid one.
fn tag(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    (!text.is_empty() && text.len() <= 200 && text.chars().all(is_plain)).then(|| text.to_owned())
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, SPECIAL).to_string()
}

/// A version in a path. Slashes of branches stay.
fn encoded_ref(text: &str) -> String {
    text.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

fn gitlab_api(host: &str, repository: &Repository) -> String {
    format!("{host}/api/v4/projects/{}", encoded(&repository.path))
}

/// Compares a package with the integrity value of the registry: hashes separated by
/// blanks, of which the SHA-512 hash counts.
fn check(archive: &[u8], integrity: &str) -> Result<(), CodeFault> {
    let said = integrity.split_ascii_whitespace().find_map(|hash| hash.strip_prefix("sha512-"));
    let wrong = || CodeFault::Unusable("The package is not what the registry says.".to_owned());
    let said = said.ok_or_else(wrong)?;
    // Options may follow a hash.
    let said = said.split_once('?').map_or(said, |(hash, _)| hash);
    let is_same = STANDARD.encode(Sha512::digest(archive)) == said;
    is_same.then_some(()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::{Repository, check, encoded_ref, tag, wanted};

    #[test]
    fn a_package_is_what_the_registry_says() {
        let of_abc = "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==";
        assert!(check(b"abc", of_abc).is_ok());
        assert!(check(b"abc", &format!("sha1-x {of_abc}?a")).is_ok());
        for wrong in ["", "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "sha512-", "sha256-abc"] {
            assert!(check(b"abc", wrong).is_err(), "{wrong}");
        }
        assert!(check(b"abd", of_abc).is_err());
    }

    #[test]
    fn a_branch_is_fetched_as_the_commit_that_it_is() {
        let of = |version: Option<&str>, may_move| Repository {
            path: "a/b".to_owned(),
            version: version.map(str::to_owned),
            may_move,
            folder: None,
        };
        let commit = || Ok(Some("0a1b".to_owned()));
        assert_eq!(of(Some("v1"), false).fixed().as_deref(), Some("v1"));
        assert_eq!(of(Some("dev"), true).fixed(), None);
        assert_eq!(wanted(&of(Some("dev"), true), commit()).as_deref(), Some("0a1b"));
        assert_eq!(wanted(&of(Some("dev"), true), Ok(None)).as_deref(), Some("dev"));
        assert_eq!(wanted(&of(None, false), commit()).as_deref(), Some("0a1b"));
        assert_eq!(wanted(&of(None, false), Ok(None)), None);
    }

    #[test]
    fn versions_of_others_are_plain() {
        assert_eq!(tag("1.0.0-rc.1+b").as_deref(), Some("1.0.0-rc.1+b"));
        for bad in ["", "a/../b", "a b", "ä"] {
            assert_eq!(tag(bad), None);
        }
        assert_eq!(encoded_ref("feature/a b"), "feature/a%20b");
    }
}
