//! Labels for the activity log.

use weir_model::activity::{Deed, Subject};

/// Label of a kind of object.
pub(super) fn kind(subject: Subject) -> &'static str {
    match subject {
        Subject::Organization => "Organization",
        Subject::Member => "Member",
        Subject::Invite => "Invite",
        Subject::Domain => "Domain",
        Subject::Role => "Role",
        Subject::Project => "Project",
        Subject::Plugin => "Plugin",
        Subject::PluginConfig => "Plugin config",
        Subject::BatchExport => "Batch export",
        Subject::PersonalApiKey => "API key",
        Subject::User => "Account",
    }
}

/// Label of an audit action.
pub(super) fn deed(deed: Deed) -> &'static str {
    match deed {
        Deed::Created => "Created",
        Deed::Updated => "Changed",
        Deed::Deleted => "Deleted",
        Deed::Rotated => "Replaced a secret",
        Deed::Verified => "Verified",
        Deed::Accepted => "Accepted",
        Deed::Triggered => "Started by hand",
        Deed::Installed => "Installed",
        Deed::Uninstalled => "Uninstalled",
        Deed::Enabled => "Enabled",
        Deed::Disabled => "Disabled",
        Deed::ConfigUpdated => "Changed settings",
        Deed::OrderChanged => "Moved",
        Deed::JobTriggered => "Started a job",
        Deed::AttachmentCreated => "Attached a file",
        Deed::AttachmentUpdated => "Replaced a file",
        Deed::AttachmentDeleted => "Removed a file",
    }
}
