//! Labels of fields in the activity log. A field of a form has the label of the form. The
//! server names the fields, so that the browser does not load all labels.

use std::borrow::Cow;

use weir_model::activity::Subject;
use weir_model::limits::LimitName;

use crate::pages::exports::{form, words};
use crate::pages::project_retention;
use crate::server_fns::domains::SIGN_IN_URL;
use crate::server_fns::plugin_configs::ON_FAILURE;

/// What comes before the name of a setting of an export.
const EXPORT_SETTINGS: [&str; 2] = ["destination__config__", "destination.config."];
/// The same of a plugin config.
const PLUGIN_SETTINGS: [&str; 2] = ["config__", "config."];

/// The label of a field of an object, and the path of the part that changed within it. `None`:
/// the field has no label.
pub(crate) fn label(subject: Subject, field: &str) -> Option<(Cow<'static, str>, &str)> {
    let setting = |begins: [&str; 2]| begins.iter().find_map(|begin| field.strip_prefix(*begin));
    match subject {
        Subject::BatchExport => {
            if let Some(setting) = setting(EXPORT_SETTINGS) {
                let path = setting.replace('.', "__");
                return words::setting_label(&path).map(|label| (Cow::Borrowed(label), ""));
            }
        }
        Subject::PluginConfig => {
            if let Some(setting) = setting(PLUGIN_SETTINGS) {
                return Some((Cow::Borrowed("Setting"), setting));
            }
        }
        Subject::Organization => {
            if let Some(limit) = field.strip_suffix("_limit").and_then(LimitName::of) {
                return Some((Cow::Owned(format!("{}: limit", limit.label())), ""));
            }
        }
        _ => {}
    }
    if let Some(label) = of_subject(subject, field).or_else(|| common(field)) {
        return Some((Cow::Borrowed(label), ""));
    }
    let end = field.find(['.', ' ']).unwrap_or(field.len());
    let (name, part) = field.split_at(end);
    let label = of_subject(subject, name).or_else(|| common(name))?;
    Some((Cow::Borrowed(label), part.trim_start_matches(['.', ' '])))
}

/// The label and the path of the part as one text. Without a label, the name of the field.
pub(crate) fn words_of(subject: Subject, field: &str) -> String {
    match label(subject, field) {
        None => field.to_owned(),
        Some((label, "")) => label.into_owned(),
        Some((label, part)) => format!("{label} {part}"),
    }
}

/// Labels of fields that are others than those of the same name elsewhere.
fn of_subject(subject: Subject, field: &str) -> Option<&'static str> {
    Some(match (subject, field) {
        (Subject::Alert, "calculation_interval") => "Check",
        (Subject::Alert, "condition") => "Compare",
        (Subject::Alert, "config") => "Series and interval",
        (Subject::Alert, "enabled") => "Check this alert",
        (Subject::Annotation, "content") => "Text",
        (Subject::Annotation, "date_marker") => "Time",
        (Subject::PluginConfig, "config") => "Settings",
        (Subject::Project, "product_description") => "Description",
        (Subject::SignInProvider, "label") => "Shown as",
        _ => return None,
    })
}

fn common(field: &str) -> Option<&'static str> {
    Some(match field {
        "active" | "is_active" => "Active",
        "anonymize_ips" => "Remove client IP addresses from events",
        "api_token" => "Project key",
        "app_urls" => "Addresses of sites",
        "backfill" => "Backfill",
        "backfill_end_at" => "Backfill up to",
        "backfill_start_at" => "Backfill from",
        "backfill_status" => "Status of the backfill",
        "capabilities" => "Capabilities",
        "client_id" => "Client id",
        "client_secret" => "Client secret",
        "config_schema" => "Settings",
        "connection" => "Connection",
        "dashboard_id" => "Dashboard",
        "dashboard_item" | "insight" => "Insight",
        "dashboards" => "Dashboards",
        "delete_events" => "Delete its events too",
        "deleted" => "Deleted",
        "derived_name" => "Name without a choice",
        "description" => "Description",
        "destination" => "Destination",
        "display_name" => "Display name",
        "domain" => "Domain",
        "email" | "target_email" => "E-mail address",
        "enabled" => "Switched on",
        "end_at" => "Not after",
        "enforce_2fa" | "is_2fa_enabled" => "Two-step sign-in",
        "event_retention_days" => project_retention::LABEL,
        "expires_at" => "Expires",
        "external_id" => "Id at the identity provider",
        "favorited" => "Favorite",
        "filters" => "Range and filters",
        "first_name" => "First name",
        "has_authenticator_app" => "Authenticator app",
        "hogql_query" => "Query",
        "icon" => "Icon",
        "interval" => "Interval",
        "is_email_verified" => "Address confirmed",
        "is_global" => "Offered to all organizations",
        "is_member_join_email_enabled" => "Mail when a member joins",
        "is_verified" => "Verified",
        "issuer" => "Issuer",
        "jit_provisioning_enabled" => "Just-in-time provisioning",
        "job" => "Job",
        "label" => "Label",
        "last_name" => "Last name",
        "last_paused_at" => "Paused at",
        "level" => "Level",
        "linked_account" => "Linked account",
        "members" => "Members",
        "members_added" => "Members added",
        "members_removed" => "Members removed",
        "metrics" => "Metrics",
        "migration" => "Migration",
        "model" => "Exported data",
        "name" => "Name",
        "offset_day" => form::WEEKS,
        "offset_hour" => form::DAYS,
        "on_failure" => ON_FAILURE,
        "operation" => "Operation",
        "order" => "Position",
        "organization" => "Organization",
        "passkey" => "Passkey",
        "password" => "Password",
        "paused" => "Paused",
        "pending_email" => "New e-mail address",
        "person_display_name_properties" => "Properties with names of persons",
        "person_processing_opt_out" => "Store events without persons",
        "pinned" => "Pin the dashboard",
        "plugin" => "Plugin",
        "plugin_type" => "Kind",
        "plugins_access_level" => "Access to plugins",
        "previous api_token" => "Previous project key",
        "previous value" => "Previous value",
        "project" => "Project",
        "public_jobs" => "Jobs",
        "query" => "Question",
        "reason" => "Reason",
        "recovery_codes" => "Recovery codes",
        "retried_run" => "Tried again",
        "run" => "Run",
        "run_status" => "Status of the run",
        "saml_acs_url" => SIGN_IN_URL,
        "saml_entity_id" => "Entity id",
        "saml_sign_requests" => "Sign requests to the provider",
        "saml_signing_certificate" => "Signing certificate",
        "saml_x509_cert" => "X.509 certificate",
        "saml_x509_cert_next" => "Second certificate",
        "saved" => "Saved",
        "scim_token" => "SCIM token",
        "scope" => "Scope",
        "scopes" => "Scopes",
        "secret_api_token" => "Secret key",
        "secret_api_token_backup" => "Previous secret key",
        "share_links" => "Share links",
        "sign_in_link_until" => "Sign-in link until",
        "signed_in_by" => "Signed in by",
        "skip_weekend" => "Skip weekends",
        "slug" => "Short name",
        "snoozed_until" => "Snoozed until",
        "sso_enforcement" => "Single sign-on",
        "start_at" => "Not before",
        "subscribed_users" => "Mail to",
        "tag" => "Version",
        "tags" => "Tags",
        "threshold" => "Bounds",
        "tiles" => "Tiles",
        "timezone" => form::ZONE,
        "updated_at" => "Changed at",
        "url" => "Address",
        "user" => "User",
        "user_name" => "User name",
        "value" => "Value",
        "verification_failing_since" => "Verification fails since",
        "verification_record" => "TXT record",
        "webhook_url" => "Webhook",
        "week_start_day" => "First day of the week",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Subject, label, words_of};

    #[test]
    fn fields_and_their_parts_have_labels() {
        for (subject, field, expected) in [
            (Subject::Project, "timezone", "Time zone"),
            (Subject::Organization, "events_per_month_limit", "Events per month: limit"),
            (Subject::BatchExport, "destination__config__bucket_name", "Bucket"),
            (Subject::BatchExport, "destination.config.bucket_name", "Bucket"),
            (Subject::BatchExport, "destination.type", "Destination type"),
            (Subject::PluginConfig, "config__token", "Setting token"),
            (Subject::Alert, "threshold.bounds.lower", "Bounds bounds.lower"),
            (Subject::Alert, "enabled", "Check this alert"),
            (Subject::Dashboard, "tiles 2.color", "Tiles 2.color"),
            (Subject::Project, "previous api_token", "Previous project key"),
            (Subject::Project, "unheard_of", "unheard_of"),
        ] {
            assert_eq!(words_of(subject, field), expected, "{field}");
        }
    }

    #[test]
    fn labels_are_those_of_the_forms() {
        for (subject, fields, page) in [
            (
                Subject::Alert,
                &["name", "condition", "webhook_url", "skip_weekend", "enabled"][..],
                include_str!("../alerts.rs"),
            ),
            (
                Subject::BatchExport,
                &["name", "interval", "model", "hogql_query", "start_at", "end_at"][..],
                include_str!("../exports/form.rs"),
            ),
            (
                Subject::Dashboard,
                &["name", "description"][..],
                include_str!("../dashboards/new.rs"),
            ),
            (
                Subject::Domain,
                &["saml_entity_id", "saml_x509_cert", "saml_x509_cert_next", "saml_sign_requests"]
                    [..],
                include_str!("domain_saml.rs"),
            ),
            (
                Subject::Domain,
                &["jit_provisioning_enabled", "sso_enforcement"][..],
                include_str!("domain_rules.rs"),
            ),
            (
                Subject::Organization,
                &["name", "slug", "is_member_join_email_enabled", "enforce_2fa"][..],
                include_str!("../organization.rs"),
            ),
            (Subject::PersonalApiKey, &["label"][..], include_str!("../key_new.rs")),
            (Subject::PluginConfig, &["name"][..], include_str!("../pipeline/config.rs")),
            (
                Subject::Project,
                &["name", "timezone", "anonymize_ips", "person_processing_opt_out"][..],
                include_str!("../project_settings.rs"),
            ),
            (
                Subject::SignInProvider,
                &["label", "issuer", "client_id", "client_secret"][..],
                include_str!("../instance/providers.rs"),
            ),
            (Subject::User, &["first_name", "last_name"][..], include_str!("../account.rs")),
        ] {
            for field in fields {
                let (label, _) = label(subject, field).unwrap();
                assert!(page.contains(&format!("\"{label}\"")), "{field}: {label}");
            }
        }
    }
}
