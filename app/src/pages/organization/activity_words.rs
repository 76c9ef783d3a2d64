//! Labels for the activity log.

use weir_model::activity::{AuditAction, Subject};

/// Label of a kind of object.
pub(crate) fn kind(subject: Subject) -> &'static str {
    match subject {
        Subject::Organization => "Organization",
        Subject::Member => "Member",
        Subject::Invite => "Invite",
        Subject::Domain => "Domain",
        Subject::ScimGroup => "Group of the identity provider",
        Subject::Role => "Role",
        Subject::Person => "Person",
        Subject::Project => "Project",
        Subject::Plugin => "Plugin",
        Subject::PluginConfig => "Plugin config",
        Subject::BatchExport => "Export",
        Subject::PersonalApiKey => "API key",
        Subject::User => "Account",
        Subject::SignInProvider => "Sign-in provider",
    }
}

/// Label of an audit action.
pub(crate) fn action(action: AuditAction) -> &'static str {
    match action {
        AuditAction::Created => "Created",
        AuditAction::Updated => "Changed",
        AuditAction::Deleted => "Deleted",
        AuditAction::Rotated => "Replaced a secret",
        AuditAction::Verified => "Verified",
        AuditAction::Accepted => "Accepted",
        AuditAction::Triggered => "Started by hand",
        AuditAction::Installed => "Installed",
        AuditAction::Uninstalled => "Uninstalled",
        AuditAction::Enabled => "Enabled",
        AuditAction::Disabled => "Disabled",
        AuditAction::ConfigUpdated => "Changed settings",
        AuditAction::OrderChanged => "Moved",
        AuditAction::JobTriggered => "Started a job",
        AuditAction::AttachmentCreated => "Attached a file",
        AuditAction::AttachmentUpdated => "Replaced a file",
        AuditAction::AttachmentDeleted => "Removed a file",
        AuditAction::SignInRefused => "Refused a sign-in",
    }
}
