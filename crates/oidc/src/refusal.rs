//! Why a sign-in through a provider is refused, for administrators (SSO-9).
//!
//! What belongs here: the reasons and their texts. What does not: the checks, and what
//! visitors read. No text has a value of a token, a callback or an answer, because all of
//! them come from outside.

use weir_egress::FaultClass;

use crate::callback::CallbackFault;

/// Which answer of a provider is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The document at `/.well-known/openid-configuration`.
    Discovery,
    /// The keys that tokens are signed with.
    Keys,
    /// The answer to the code.
    Token,
    /// The answer of the userinfo endpoint.
    Userinfo,
    /// The user, from GitHub's API.
    GitHubUser,
    /// The addresses of the user, from GitHub's API.
    GitHubAddresses,
}

impl Answer {
    fn text(self) -> &'static str {
        match self {
            Self::Discovery => "discovery document",
            Self::Keys => "key set",
            Self::Token => "answer of the token endpoint",
            Self::Userinfo => "answer of the userinfo endpoint",
            Self::GitHubUser => "user from GitHub's API",
            Self::GitHubAddresses => "list of addresses from GitHub's API",
        }
    }
}

/// An endpoint that the discovery document names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Where the browser goes to sign in.
    Authorization,
    /// Where the code is exchanged.
    Token,
    /// Where the keys are.
    Keys,
    /// Where claims are that the token lacks.
    Userinfo,
}

impl Endpoint {
    fn text(self) -> &'static str {
        match self {
            Self::Authorization => "authorization endpoint",
            Self::Token => "token endpoint",
            Self::Keys => "address of the keys",
            Self::Userinfo => "userinfo endpoint",
        }
    }
}

/// An error code that a provider sent, in the callback or instead of a token. Descriptions
/// of the provider are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderError {
    /// The user, or a rule of the provider, refused.
    AccessDenied,
    /// The provider needs an interaction that it was not allowed to make.
    InteractionRequired,
    /// The request has a fault, such as another redirect URI than the registered one.
    InvalidRequest,
    /// The client id or the client secret is wrong, or this client may not sign users in.
    InvalidClient,
    /// A requested scope is unknown or not allowed.
    InvalidScope,
    /// The code is unknown, used or expired.
    InvalidCode,
    /// The provider has a fault of its own.
    ServerError,
    /// The provider is overloaded.
    TemporarilyUnavailable,
    /// A code that is not in the standards.
    Other,
}

impl ProviderError {
    pub(crate) fn of_code(code: &str) -> Self {
        match code {
            "access_denied" => Self::AccessDenied,
            "interaction_required"
            | "login_required"
            | "consent_required"
            | "account_selection_required" => Self::InteractionRequired,
            "invalid_request"
            | "unsupported_response_type"
            | "unsupported_grant_type"
            | "redirect_uri_mismatch" => Self::InvalidRequest,
            "invalid_client" | "unauthorized_client" | "incorrect_client_credentials" => {
                Self::InvalidClient
            }
            "invalid_scope" => Self::InvalidScope,
            "invalid_grant" | "bad_verification_code" => Self::InvalidCode,
            "server_error" => Self::ServerError,
            "temporarily_unavailable" => Self::TemporarilyUnavailable,
            _ => Self::Other,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::AccessDenied => "access was denied there",
            Self::InteractionRequired => "it needs an interaction with the user",
            Self::InvalidRequest => "it does not accept the request; compare the redirect URI",
            Self::InvalidClient => "it does not accept the client id or the client secret",
            Self::InvalidScope => "it does not accept a scope",
            Self::InvalidCode => "it does not accept the code",
            Self::ServerError => "it has a fault of its own",
            Self::TemporarilyUnavailable => "it is overloaded",
            Self::Other => "it sent an error code that is not in the standards",
        }
    }
}

/// Why a sign-in is refused. `Display` is the text for the administrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The system has no random bytes.
    #[error("The system returned no random bytes.")]
    NoRandomness,
    /// All requests together took too long.
    #[error("The provider took longer than {} seconds for all answers together.", crate::IN_ALL.as_secs())]
    TooSlow,

    /// The callback is not readable.
    #[error("{}", .0.text())]
    Callback(CallbackFault),
    /// The callback has no state.
    #[error("The callback has no parameter \"state\".")]
    StateMissing,
    /// The callback belongs to another login.
    #[error("The parameter \"state\" of the callback is not the one of this login.")]
    State,
    /// The login was begun too long ago.
    #[error("The login was begun more than {} minutes ago.", crate::pending::LIFETIME.num_minutes())]
    LoginExpired,
    /// The settings of the provider are not those with which the login was begun.
    #[error("The login was begun with another provider, or its settings changed since then.")]
    OtherProvider,
    /// The callback names another issuer.
    #[error("The parameter \"iss\" of the callback is not the issuer of this provider.")]
    CallbackIssuer,
    /// The provider announces that it names the issuer, and did not.
    #[error("The callback has no parameter \"iss\", although the provider announces it.")]
    CallbackIssuerMissing,
    /// The provider sent an error with the callback.
    #[error("The provider refused the sign-in: {}.", .0.text())]
    RefusedByProvider(ProviderError),
    /// The callback has neither a code nor an error.
    #[error("The callback has no parameter \"code\".")]
    CodeMissing,

    /// An answer did not arrive, or not with success.
    #[error("The {} could not be read: {fault}.", .answer.text())]
    Unreachable {
        /// Which answer.
        answer: Answer,
        /// The class of the fault.
        fault: FaultClass,
    },
    /// An answer is not a JSON object (or, for a list, not a JSON array).
    #[error("The {} is not JSON of the expected form.", .0.text())]
    NotJson(Answer),
    /// A member of an answer is missing or has another type.
    #[error("In the {}, \"{member}\" is missing or has another type than the standard says.", .answer.text())]
    Member {
        /// Which answer.
        answer: Answer,
        /// The name of the member.
        member: &'static str,
    },
    /// The discovery document names another issuer.
    #[error(
        "The discovery document names another issuer than the settings do. Both must be the same, character by character."
    )]
    DiscoveryIssuer,
    /// An endpoint is not an https URL.
    #[error("The {} is not an https URL without user and fragment.", .0.text())]
    EndpointUrl(Endpoint),
    /// An endpoint has an address that must not be dialled.
    #[error("The {} has an address that this server must not connect to.", .0.text())]
    EndpointForbidden(Endpoint),
    /// The key set has too many keys.
    #[error("The key set has more than {} keys.", crate::keys::MAX_KEYS)]
    TooManyKeys,
    /// The key set has no key that can be used.
    #[error(
        "The key set has no key for RS256 (2048 to 4096 bits), ES256 (P-256) or EdDSA (Ed25519)."
    )]
    NoUsableKey,

    /// The provider did not accept the code.
    #[error("The provider issued no token: {}.", .0.text())]
    NoToken(ProviderError),
    /// The ID token is longer than the limit.
    #[error("The ID token is longer than {} KiB.", crate::id_token::MAX_BYTES / 1024)]
    TokenTooLong,
    /// The ID token is not a signed JWT.
    #[error("The ID token is not a signed JSON Web Token.")]
    TokenForm,
    /// A header of the token asks for what is not supported.
    #[error(
        "The header of the ID token has a type, content type or critical extension that is not supported."
    )]
    TokenHeader,
    /// The algorithm is not one of the three.
    #[error("The ID token is signed with another algorithm than RS256, ES256 or EdDSA.")]
    Algorithm,
    /// No key of the issuer has this id and type.
    #[error("The ID token is signed with a key that is not in the key set of the issuer.")]
    UnknownKey,
    /// Several keys could be meant.
    #[error("The ID token does not say which of several keys of the issuer signed it.")]
    AmbiguousKey,
    /// The key does not fit the algorithm.
    #[error("The key of the issuer does not fit the algorithm of the ID token.")]
    UnusableKey,
    /// The signature is wrong.
    #[error("The signature of the ID token is wrong.")]
    Signature,
    /// The token is of another issuer.
    #[error("The ID token is of another issuer (iss).")]
    Issuer,
    /// The token is for another client.
    #[error("The ID token is for another client (aud).")]
    Audience,
    /// The token was issued to another client.
    #[error(
        "The ID token was issued to another client, or has several audiences and does not say to which client (azp)."
    )]
    AuthorizedParty,
    /// The token has expired.
    #[error("The ID token has expired (exp). Compare the clocks.")]
    Expired,
    /// The token is not valid yet.
    #[error("The ID token is not valid yet (nbf). Compare the clocks.")]
    NotYetValid,
    /// The token was issued in the future.
    #[error("The ID token was issued in the future (iat). Compare the clocks.")]
    IssuedInFuture,
    /// The token was issued before the login.
    #[error("The ID token was issued before the login was begun (iat). Compare the clocks.")]
    IssuedBeforeLogin,
    /// The token belongs to another login.
    #[error("The ID token has no nonce, or that of another login.")]
    Nonce,
    /// The token belongs to another access token.
    #[error("The ID token belongs to another access token (at_hash).")]
    AccessTokenHash,
    /// A claim is missing.
    #[error("The claim \"{0}\" is missing.")]
    ClaimMissing(&'static str),
    /// A claim has another type.
    #[error("The claim \"{0}\" has another type than the standard says.")]
    ClaimType(&'static str),
    /// The subject is empty, too long, or not ASCII.
    #[error("The subject (sub) is empty, longer than 255 characters, or not ASCII.")]
    Subject,
    /// The address has no form of an address.
    #[error("The claim \"email\" is not one address in ASCII of at most 254 characters.")]
    EmailForm,
    /// The userinfo endpoint answered for another user.
    #[error("The userinfo endpoint answered for another user than the ID token (sub).")]
    UserinfoSubject,
}

impl Refusal {
    /// The text for administrators: which check failed.
    pub fn for_administrators(self) -> String {
        self.to_string()
    }
}

impl From<CallbackFault> for Refusal {
    fn from(fault: CallbackFault) -> Self {
        Self::Callback(fault)
    }
}
