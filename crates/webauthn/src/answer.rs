//! Answers of browsers: JSON texts with binary values in base64url.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::bytes::Bytes;
use crate::cbor::{Item, Reader};
use crate::{Challenge, Refusal};

/// Longest answer, in bytes.
const MAX: usize = 16 << 10;
/// Most members of an attestation.
const MEMBERS: u64 = 8;

#[derive(Deserialize)]
struct Sent<R> {
    #[serde(rename = "rawId")]
    id: Bytes,
    #[serde(rename = "type")]
    kind: String,
    response: R,
}

impl<R: DeserializeOwned> Sent<R> {
    fn read(text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX {
            return Err(Refusal::TooLong);
        }
        let sent = serde_json::from_str::<Self>(text);
        let sent = sent.map_err(|_| Refusal::Unreadable("the answer"))?;
        if sent.kind == "public-key" { Ok(sent) } else { Err(Refusal::OtherType) }
    }
}

/// What the browser says, which the authenticator signs too.
#[derive(Deserialize)]
pub(crate) struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    cross_origin: bool,
}

impl ClientData {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(bytes).map_err(|_| Refusal::Unreadable("the data of the browser"))
    }

    pub(crate) fn check(
        &self,
        kind: &str,
        challenge: &Challenge,
        origin: &str,
    ) -> Result<(), Refusal> {
        if self.kind != kind {
            return Err(Refusal::OtherType);
        }
        if self.challenge != challenge.0 {
            return Err(Refusal::OtherChallenge);
        }
        if self.origin != origin || self.cross_origin {
            return Err(Refusal::OtherOrigin);
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attestation {
    #[serde(rename = "clientDataJSON")]
    client_data: Bytes,
    attestation_object: Bytes,
}

/// The answer of a browser that made a passkey.
pub(crate) struct Creation(Sent<Attestation>);

impl Creation {
    pub(crate) fn read(text: &str) -> Result<Self, Refusal> {
        Sent::read(text).map(Self)
    }

    pub(crate) fn id(&self) -> &[u8] {
        &self.0.id.0
    }

    pub(crate) fn client_data(&self) -> Result<ClientData, Refusal> {
        ClientData::read(&self.0.response.client_data.0)
    }

    /// The data of the authenticator within the attestation.
    pub(crate) fn authenticator_data(&self) -> Result<&[u8], Refusal> {
        let found = data_within(&self.0.response.attestation_object.0);
        found.ok_or(Refusal::Unreadable("the attestation"))
    }
}

fn data_within(object: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(object);
    let members = reader.map().filter(|members| *members <= MEMBERS)?;
    let mut found = None;
    for _ in 0..members {
        let (name, value) = (reader.item()?, reader.item()?);
        match (name, value) {
            (Item::Text("authData"), Item::Bytes(data)) if found.is_none() => found = Some(data),
            (Item::Text("authData"), _) => return None,
            _ => {}
        }
    }
    found.filter(|_| reader.is_at_end())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Used {
    #[serde(rename = "clientDataJSON")]
    client_data: Bytes,
    authenticator_data: Bytes,
    signature: Bytes,
    user_handle: Option<Bytes>,
}

/// The answer of a browser with a passkey, before it is checked.
pub struct Assertion(Sent<Used>);

impl Assertion {
    /// Reads an answer.
    ///
    /// # Errors
    /// When it has another form.
    pub fn read(text: &str) -> Result<Self, Refusal> {
        Sent::read(text).map(Self)
    }

    /// The id of the passkey that it names.
    pub fn credential_id(&self) -> &[u8] {
        &self.0.id.0
    }

    /// What the authenticator keeps for the user, if it says so.
    pub fn handle(&self) -> Option<&[u8]> {
        let handle = self.0.response.user_handle.as_ref();
        handle.map(|handle| handle.0.as_slice()).filter(|handle| !handle.is_empty())
    }

    pub(crate) fn client_data(&self) -> Result<ClientData, Refusal> {
        ClientData::read(self.client_data_bytes())
    }

    pub(crate) fn client_data_bytes(&self) -> &[u8] {
        &self.0.response.client_data.0
    }

    pub(crate) fn authenticator_data(&self) -> &[u8] {
        &self.0.response.authenticator_data.0
    }

    pub(crate) fn signature(&self) -> &[u8] {
        &self.0.response.signature.0
    }
}
