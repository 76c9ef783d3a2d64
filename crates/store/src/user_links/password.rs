//! Changing the password, for a user who knows the present one.

use weir_model::UserId;
use weir_model::activity::Entry;

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::mail::{self, MailRow, write_mails};
use crate::sessions::{self, SessionRow, end_sessions, write_session};
use crate::users::PasswordHash;
use crate::{Result, Store};

/// A new password for a user.
#[derive(Debug)]
pub struct NewPassword<'a> {
    /// The user whose password changes.
    pub user: UserId,
    /// The hash of the present password, as it was proved.
    pub present: &'a PasswordHash,
    /// The hash of the new password.
    pub chosen: &'a PasswordHash,
    /// Hash of the session in which it is changed.
    pub replaced: &'a str,
    /// The session that replaces it.
    pub session: &'a SessionRow,
    /// The mails about the change.
    pub mails: &'a [MailRow],
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

// The new session shows whether this is a retry of the same call.
const CHANGE: Statement = Statement::write(
    "users change password",
    concat!(
        "BEGIN;
         LET $made = (SELECT VALUE user FROM ONLY type::record('session', $hash));
         IF $made = NONE {
             LET $user_row = (SELECT * FROM ONLY type::record('user', $user));
             LET $held = (SELECT VALUE user FROM ONLY type::record('session', $replaced));
             IF $user_row = NONE OR $user_row.is_active != true
                 OR $user_row.password != $present OR $held = NONE { THROW 'user' };
             UPDATE type::record('user', $user)
                 SET password = $chosen, updated_at = $now RETURN NONE;",
        end_sessions!(),
        end_links!(),
        write_session!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Sets the new password, ends all sessions and links of the user, and opens the new
/// session. `false`: the user or the session has changed since they were read, and
/// nothing was written.
pub async fn change(store: &Store, new: NewPassword<'_>) -> Result<bool> {
    let vars = bind! {
        user: new.user.0,
        present: new.present.0.as_str(),
        chosen: new.chosen.0.as_str(),
        replaced: new.replaced,
        hash: new.session.hash.as_str(),
        row: sessions::Stored::from(new.session),
        mails: mail::stored(new.mails)?,
        now: new.session.signed_in_at.micros(),
    };
    is_done(activity::change(store, CHANGE, vars, new.activities).await)
}
