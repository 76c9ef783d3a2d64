//! Users and groups: as they are shown, and as they are sent.

use serde::Serialize;
use serde_json::Value;

use crate::fault::{Fault, FaultKind};
use crate::list::PRIMARY;
use crate::resource_type::{GROUP, USER};
use crate::{MEMBERS_MAX, member};

/// Most characters of a text, unless the service allows fewer.
const TEXT_MAX: usize = 1024;

/// When a resource was made and changed, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// `User` or `Group`.
    pub resource_type: &'static str,
    /// When it was made.
    pub created: String,
    /// When it was last changed.
    pub last_modified: String,
    /// Its URL.
    pub location: String,
    /// Its version: another one after every change that can be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The name of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Name {
    /// First and last name together.
    pub formatted: String,
    /// First name.
    pub given_name: String,
    /// Last name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family_name: Option<String>,
}

/// A mail address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Address {
    /// The address.
    pub value: String,
    /// `work`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether it is the main address.
    pub primary: bool,
}

/// A group of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Membership {
    /// Id of the group.
    pub value: String,
    /// URL of the group.
    #[serde(rename = "$ref")]
    pub location: String,
    /// Name of the group.
    pub display: String,
    /// `direct`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// A user as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The schema.
    pub schemas: [&'static str; 1],
    /// Id of the user.
    pub id: String,
    /// What the identity provider calls the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// The name of the user at the identity provider: the mail address, or another text.
    pub user_name: String,
    /// The name.
    pub name: Name,
    /// The name that the identity provider shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Whether the user may sign in.
    pub active: bool,
    /// The mail address, by which the user signs in.
    pub emails: Vec<Address>,
    /// The groups.
    pub groups: Vec<Membership>,
    /// Times and URL.
    pub meta: Meta,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Id of the user.
    pub value: String,
    /// URL of the user.
    #[serde(rename = "$ref")]
    pub location: String,
    /// `User`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// A group as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The schema.
    pub schemas: [&'static str; 1],
    /// Id of the group.
    pub id: String,
    /// What the identity provider calls the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Its name.
    pub display_name: String,
    /// Its members; `None`: they were not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<Member>>,
    /// Times and URL.
    pub meta: Meta,
}

impl User {
    /// The value of `schemas`.
    pub const SCHEMAS: [&'static str; 1] = [USER.schema];
}

impl Group {
    /// The value of `schemas`.
    pub const SCHEMAS: [&'static str; 1] = [GROUP.schema];
}

/// A resource as it is shown.
pub trait Resource: Serialize {
    /// Its times, URL and version.
    fn meta(&self) -> &Meta;
}

impl Resource for User {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Resource for Group {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// A user as it is sent, or as it is after a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserInput {
    /// `userName`.
    pub user_name: String,
    /// The main mail address: the primary one, else that of the type `work`, else the
    /// first one.
    pub email: Option<String>,
    /// `externalId`.
    pub external_id: Option<String>,
    /// `name.givenName`, or `name.formatted` if there is no part of the name.
    pub given_name: Option<String>,
    /// `name.familyName`.
    pub family_name: Option<String>,
    /// `displayName`.
    pub display_name: Option<String>,
    /// `active`.
    pub active: Option<bool>,
}

impl UserInput {
    /// Reads a user.
    ///
    /// # Errors
    /// `invalidSyntax`, `invalidValue`.
    pub fn read(body: &Value) -> Result<Self, Fault> {
        is_object(body)?;
        let name = member(body, "name");
        let part = |part: &str| match name {
            Some(name) => text(name, part),
            None => Ok(None),
        };
        let (given, family) = (part("givenName")?, part("familyName")?);
        let given = match (given, &family) {
            (None, None) => part("formatted")?,
            (given, _) => given,
        };
        let user_name = text(body, "userName")?;
        Ok(Self {
            user_name: user_name.ok_or_else(|| Fault::value("`userName` is required."))?,
            email: email(body)?,
            external_id: text(body, "externalId")?,
            given_name: given,
            family_name: family,
            display_name: text(body, "displayName")?,
            active: active(body)?,
        })
    }
}

/// A group as it is sent, or as it is after a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupInput {
    /// `displayName`.
    pub display_name: String,
    /// `externalId`.
    pub external_id: Option<String>,
    /// The ids of the members, each one once.
    pub members: Vec<String>,
}

impl GroupInput {
    /// Reads a group.
    ///
    /// # Errors
    /// `invalidSyntax`, `invalidValue`, `tooMany`.
    pub fn read(body: &Value) -> Result<Self, Fault> {
        is_object(body)?;
        let display_name = text(body, "displayName")?;
        let mut members = Vec::new();
        let sent = match member(body, "members") {
            None | Some(Value::Null) => &[],
            Some(Value::Array(sent)) => sent.as_slice(),
            Some(_) => return Err(Fault::value("`members` must be a list.")),
        };
        for each in sent {
            let id =
                text(each, "value")?.ok_or_else(|| Fault::value("A member has no `value`."))?;
            members.push(id);
        }
        members.sort();
        members.dedup();
        if members.len() > MEMBERS_MAX {
            let detail = format!("A group may have at most {MEMBERS_MAX} members.");
            return Err(Fault::new(FaultKind::TooMany, detail));
        }
        Ok(Self {
            display_name: display_name.ok_or_else(|| Fault::value("`displayName` is required."))?,
            external_id: text(body, "externalId")?,
            members,
        })
    }
}

/// Whether two addresses differ in case at most.
pub fn is_same_address(one: &str, other: &str) -> bool {
    one.trim().to_lowercase() == other.trim().to_lowercase()
}

fn is_object(body: &Value) -> Result<(), Fault> {
    match body {
        Value::Object(_) => Ok(()),
        _ => Err(Fault::new(FaultKind::InvalidSyntax, "The body must be an object.")),
    }
}

/// A text without surrounding blanks; `None`: it is missing, null or empty.
fn text(body: &Value, name: &str) -> Result<Option<String>, Fault> {
    let text = match member(body, name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.trim(),
        Some(_) => return Err(Fault::value(format!("`{name}` must be a text."))),
    };
    if text.chars().count() > TEXT_MAX {
        let detail = format!("`{name}` may have at most {TEXT_MAX} characters.");
        return Err(Fault::value(detail));
    }
    if text.contains('\0') {
        return Err(Fault::value(format!("`{name}` has a character that is not allowed.")));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// Entra sends `active` as the text `False`, and older versions of it as an object.
fn active(body: &Value) -> Result<Option<bool>, Fault> {
    let value = match member(body, "active") {
        Some(value @ Value::Object(_)) => member(value, "value"),
        value => value,
    };
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(active)) => Ok(Some(*active)),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(_) => Err(Fault::value("`active` must be true or false.")),
    }
}

/// Whether a value of a list says that it is the main one.
pub(crate) fn is_main(value: &Value) -> bool {
    member(value, PRIMARY).is_some_and(is_true)
}

/// Entra sends `True` as a text.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(is) => *is,
        Value::String(text) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

fn email(body: &Value) -> Result<Option<String>, Fault> {
    let sent = match member(body, "emails") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(sent)) => sent,
        Some(_) => return Err(Fault::value("`emails` must be a list.")),
    };
    let is_work = |each: &&Value| {
        let kind = member(each, "type").and_then(Value::as_str);
        kind.is_some_and(|kind| kind.eq_ignore_ascii_case("work"))
    };
    let main = sent.iter().find(|each| is_main(each)).or_else(|| sent.iter().find(is_work));
    match main.or(sent.first()) {
        None => Ok(None),
        Some(Value::String(address)) => Ok(Some(address.trim().to_owned())),
        Some(address) => text(address, "value"),
    }
}
