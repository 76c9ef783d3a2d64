//! Options for `navigator.credentials`: JSON texts with binary values in base64url.

use serde_json::{Value, json};

use crate::bytes::encoded;
use crate::key::ALGORITHMS;
use crate::{Challenge, Credential, RelyingParty, SECONDS};

/// The name of the product in dialogs of authenticators.
const NAME: &str = "Weir";

/// A passkey that is to be made.
#[derive(Debug)]
pub struct NewPasskey<'a> {
    /// What the authenticator keeps for the user. It must reveal nothing about the user.
    pub handle: &'a [u8],
    /// The address of the user, which the authenticator shows.
    pub account: &'a str,
    /// The name of the user, which the authenticator shows.
    pub name: &'a str,
    /// The passkeys that the user has. Their authenticators make no second one.
    pub present: &'a [Credential],
}

impl RelyingParty {
    /// The options of `navigator.credentials.create`. The passkey is found without the name
    /// of the user, and needs a user who is verified.
    pub fn creation_options(&self, challenge: &Challenge, new: &NewPasskey<'_>) -> String {
        let algorithms = ALGORITHMS.map(|number| json!({"type": "public-key", "alg": number}));
        let options = json!({
            "rp": {"id": self.id, "name": NAME},
            "user": {"id": encoded(new.handle), "name": new.account, "displayName": new.name},
            "challenge": challenge.0,
            "pubKeyCredParams": algorithms,
            "timeout": SECONDS * 1000,
            "excludeCredentials": named(new.present),
            "authenticatorSelection": {
                "residentKey": "required",
                "requireResidentKey": true,
                "userVerification": "required",
            },
            "attestation": "none",
        });
        options.to_string()
    }

    /// The options of `navigator.credentials.get`, for one of these passkeys; for none: for
    /// any passkey of this site.
    pub fn request_options(&self, challenge: &Challenge, allowed: &[Credential]) -> String {
        let options = json!({
            "challenge": challenge.0,
            "timeout": SECONDS * 1000,
            "rpId": self.id,
            "allowCredentials": named(allowed),
            "userVerification": "required",
        });
        options.to_string()
    }
}

fn named(credentials: &[Credential]) -> Vec<Value> {
    let name = |one: &Credential| json!({"type": "public-key", "id": encoded(one.id())});
    credentials.iter().map(name).collect()
}
