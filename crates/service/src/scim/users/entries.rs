//! The audit entries about a user.

use weir_model::MembershipId;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_store::scim::{Profile, ScimUserRow, Switch};
use weir_store::users::UserRow;

use super::VisibleUser;
use crate::activity::{About, Changes, scim_entry};
use crate::scim::ScimCtx;

/// The audit entries of a change; none: nothing changes. Whether a field of the user is
/// among them.
pub(super) fn changes(
    ctx: &ScimCtx,
    known: &VisibleUser,
    after: &ScimUserRow,
    profile: &Profile,
    switch: Switch,
) -> (Vec<Entry>, bool) {
    let user = &known.user;
    let of_user = Changes::none()
        .field("first_name", &user.first_name, &profile.first_name)
        .field("last_name", &user.last_name, &profile.last_name)
        .field("email", &user.email, &profile.email);
    let has_profile = !of_user.is_empty();
    let before = known.scim.as_ref();
    let all = of_user
        .field("user_name", &before.and_then(|row| row.user_name.clone()), &after.user_name)
        .field("external_id", &before.and_then(|row| row.external_id.clone()), &after.external_id)
        .field(
            "display_name",
            &before.and_then(|row| row.display_name.clone()),
            &after.display_name,
        );
    let mut entries = Vec::new();
    if !all.is_empty() {
        entries.push(entry(ctx, known, AuditAction::Updated, all));
    }
    match switch {
        Switch::Keep => {}
        Switch::Off => {
            let changes = Changes::none().field("active", &true, &false);
            entries.push(entry(ctx, known, AuditAction::Disabled, changes));
        }
        Switch::On(level) => {
            let changes = Changes::none().field("active", &false, &true).field(
                "level",
                &known.shut.as_ref().map(|shut| shut.level),
                &Some(i64::from(level)),
            );
            entries.push(entry(ctx, known, AuditAction::Enabled, changes));
        }
    }
    (entries, has_profile)
}

/// The audit entry about the name of a user who existed before; `None`: it is the same.
pub(super) fn renamed(
    ctx: &ScimCtx,
    membership: MembershipId,
    before: &UserRow,
    after: &UserRow,
) -> Option<Entry> {
    let changes = Changes::none().field("first_name", &before.first_name, &after.first_name).field(
        "last_name",
        &before.last_name,
        &after.last_name,
    );
    let about = about(membership, &after.email);
    (!changes.is_empty()).then(|| scim_entry(ctx, about, AuditAction::Updated, changes))
}

pub(super) fn entry(
    ctx: &ScimCtx,
    known: &VisibleUser,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    let membership = known.membership().unwrap_or(MembershipId(known.user.id.0));
    scim_entry(ctx, about(membership, &known.user.email), action, changes)
}

pub(super) fn about(membership: MembershipId, email: &str) -> About<'_> {
    About { subject: Subject::Member, id: membership.to_string(), name: Some(email), project: None }
}
