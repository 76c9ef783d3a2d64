//! The names and the address of a user: what a provider may send.

use weir_model::invites::USER_FIRST_NAME_MAX;
use weir_model::validate;
use weir_scim::{Fault, UserInput, is_same_address};
use weir_store::scim::Profile;
use weir_store::users::UserRow;

use super::has_own_address;
use crate::identity::emails;
use crate::identity::sso::domain_of;
use crate::scim::ScimCtx;
use crate::users::NAME_MAX;

/// What a user is called.
pub(super) struct Names {
    /// The address.
    pub(super) email: String,
    /// `userName`; `None`: it is the address.
    pub(super) user_name: Option<String>,
}

/// The names of a user: `userName` if it is an address of the domain, else `userName` and
/// the main address in `emails`. `present` is the user before a change, who keeps the
/// address that is not sent.
pub(super) fn names(
    ctx: &ScimCtx,
    input: &UserInput,
    present: Option<&UserRow>,
) -> Result<Names, Fault> {
    let user_name = &input.user_name;
    let of_name = own_address(ctx, user_name);
    // An address elsewhere belongs to the user alone, but does not keep the user in.
    if let Some(user) = present.filter(|user| !has_own_address(ctx, user)) {
        let is_address = of_name.is_some() || is_same_address(user_name, &user.email);
        let user_name = (!is_address).then(|| user_name.clone());
        return Ok(Names { email: user.email.clone(), user_name });
    }
    if let Some(email) = of_name {
        return match &input.email {
            Some(other) if !is_same_address(other, &email) => Err(Fault::value(
                "`userName` and the main address in `emails` must be the same where both are \
                 addresses of the domain: users have one address.",
            )),
            _ => Ok(Names { email, user_name: None }),
        };
    }
    let email = match (&input.email, present) {
        (Some(email), _) => own_address(ctx, email),
        (None, Some(user)) => Some(user.email.clone()),
        (None, None) => None,
    };
    let wrong = || {
        let domain = &ctx.domain.domain;
        Fault::value(format!(
            "`userName`, or else the main address in `emails`, must be a mail address of {domain}."
        ))
    };
    Ok(Names { email: email.ok_or_else(wrong)?, user_name: Some(user_name.clone()) })
}

/// The address in a text; `None`: it is no address of the domain.
fn own_address(ctx: &ScimCtx, text: &str) -> Option<String> {
    let email = validate::email("emails", text).ok()?;
    (domain_of(&email).as_deref() == Some(&*ctx.domain.domain)).then_some(email)
}

/// The form of a `userName` that must be unique in its domain.
pub(super) fn name_key(user_name: &str) -> String {
    user_name.to_lowercase()
}

/// The fields of a user after a change. A name that is not sent stays as it is.
pub(super) fn profile(
    input: &UserInput,
    present: Option<&UserRow>,
    email: &str,
) -> Result<Profile, Fault> {
    let has_name = input.given_name.is_some() || input.family_name.is_some();
    let (first_name, last_name) = match (has_name, present) {
        (false, Some(user)) => (user.first_name.clone(), user.last_name.clone()),
        _ => {
            let local = email.split('@').next().unwrap_or_default().to_owned();
            let first = input.given_name.clone().or_else(|| input.display_name.clone());
            let first = match has_name {
                true => input.given_name.clone().unwrap_or_default(),
                false => first.unwrap_or(local),
            };
            (first, input.family_name.clone().unwrap_or_default())
        }
    };
    for (name, text, most) in [
        ("name.givenName", &first_name, USER_FIRST_NAME_MAX),
        ("name.familyName", &last_name, NAME_MAX),
    ] {
        if text.chars().count() > most {
            let detail = format!("`{name}` may have at most {most} characters.");
            return Err(Fault::value(detail));
        }
    }
    let email_key = emails::normalise(email);
    Ok(Profile { first_name, last_name, email: email.to_owned(), email_key })
}
