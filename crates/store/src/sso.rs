//! Single sign-on: identities of users at other providers, pending logins at a
//! provider, and the providers that staff added.
//!
//! What belongs here: statements about these records. What does not: who may sign in
//! (`weir-service`), and the protocols (`weir-oidc`, `weir-saml`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `external_identity` | SHA-256 of connection, issuer and subject | the user, and what is shown of the identity |
//! | `user_identity` | `[user, SHA-256]` | nothing: the list of a user |
//! | `pending_login` | `[SHA-256 of the browser's token, key]` | a pending login at a provider |
//! | `pending_login_due` | `[end, SHA-256, key]` | nothing: when it is removed |
//! | `saml_assertion` | `[domain, SHA-256 of its id]` | nothing: an assertion that was used |
//! | `saml_assertion_due` | `[end, domain, SHA-256]` | nothing: when it is removed |
//! | `saml_test` | domain | the result of the last test of the connection |
//! | `sign_in_provider` | name | a provider that staff added; its secret is sealed |

pub mod identities;
pub mod pending;
pub mod providers;
