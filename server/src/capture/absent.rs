//! Features that PostHog's libraries ask for and Weir does not offer: surveys, early
//! access features, experiments, tours, conversations with support and the definitions of
//! feature flags.
//!
//! What belongs here: for each feature, the answer that libraries of every age read as
//! "there are none". A 404 does not work: some libraries retry it, some pass its body to
//! the page, and server libraries log it at every poll. The answers do not depend on a
//! project, so no key is checked.
//! What does not: sending a message to support. A visitor must see that it was not sent,
//! so that path is not served.

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, header};

use super::settings::CACHING;

/// Prefix of the paths that the conversations widget asks for.
const WIDGET: &str = "/api/conversations/v1/widget/";

/// A feature that Weir does not offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Surveys of browser and mobile libraries.
    Surveys,
    /// Features that visitors may turn on.
    EarlyAccessFeatures,
    /// Experiments without code.
    WebExperiments,
    /// Product tours.
    ProductTours,
    /// Conversations of a visitor with support.
    Tickets,
    /// The messages of a conversation.
    TicketMessages,
    /// Marks messages as read.
    TicketRead,
    /// Restores the conversations of another browser with the secret of a link.
    TicketRestore,
    /// Asks for a mail with such a link.
    TicketRestoreLink,
    /// Definitions of feature flags, for server libraries that evaluate them locally.
    FlagDefinitions,
    /// Definitions of feature flags, for libraries of 2021.
    FlagList,
    /// The payload of one feature flag.
    FlagPayload,
}

impl Absent {
    /// The feature at a path without the slash at the end.
    pub(super) fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/api/surveys" => Self::Surveys,
            "/api/early_access_features" => Self::EarlyAccessFeatures,
            "/api/web_experiments" => Self::WebExperiments,
            "/api/product_tours" => Self::ProductTours,
            "/flags/definitions" | "/api/feature_flag/local_evaluation" => Self::FlagDefinitions,
            "/api/feature_flag" => Self::FlagList,
            _ => {
                if let Some(below) = path.strip_prefix(WIDGET) {
                    return Self::of_widget(below);
                }
                let projects = path.strip_prefix("/api/projects/");
                let below = projects.or_else(|| path.strip_prefix("/api/environments/"))?;
                let (project, flag) = below.split_once("/feature_flags/")?;
                let is_word = |text: &str| !text.is_empty() && !text.contains('/');
                match flag.strip_suffix("/remote_config") {
                    Some(key) if is_word(project) && is_word(key) => Self::FlagPayload,
                    None if is_word(project) && flag == "local_evaluation" => Self::FlagDefinitions,
                    _ => return None,
                }
            }
        })
    }

    /// The feature at a path of the conversations widget.
    fn of_widget(below: &str) -> Option<Self> {
        Some(match below {
            "tickets" => Self::Tickets,
            "restore" => Self::TicketRestore,
            "restore/request" => Self::TicketRestoreLink,
            _ => match below.strip_prefix("messages/")?.split_once('/') {
                None => Self::TicketMessages,
                Some((_, "read")) => Self::TicketRead,
                Some(_) => return None,
            },
        })
    }

    pub(super) fn methods(self) -> &'static str {
        match self {
            Self::TicketRead | Self::TicketRestore | Self::TicketRestoreLink => "POST, OPTIONS",
            _ => "GET, HEAD, OPTIONS",
        }
    }

    pub(super) fn pattern(self) -> &'static str {
        match self {
            Self::Surveys => "/api/surveys/",
            Self::EarlyAccessFeatures => "/api/early_access_features/",
            Self::WebExperiments => "/api/web_experiments/",
            Self::ProductTours => "/api/product_tours/",
            Self::Tickets => "/api/conversations/v1/widget/tickets",
            Self::TicketMessages => "/api/conversations/v1/widget/messages/{id}",
            Self::TicketRead => "/api/conversations/v1/widget/messages/{id}/read",
            Self::TicketRestore => "/api/conversations/v1/widget/restore",
            Self::TicketRestoreLink => "/api/conversations/v1/widget/restore/request",
            Self::FlagDefinitions => "/flags/definitions",
            Self::FlagList => "/api/feature_flag/",
            Self::FlagPayload => "/api/projects/{project}/feature_flags/{key}/remote_config/",
        }
    }

    /// The answer that libraries read as "there are none".
    pub(super) fn answer(self) -> Response {
        let body = match self {
            Self::Surveys => r#"{"surveys":[]}"#,
            Self::EarlyAccessFeatures => r#"{"earlyAccessFeatures":[]}"#,
            Self::WebExperiments => r#"{"experiments":[]}"#,
            Self::ProductTours => r#"{"product_tours":[]}"#,
            Self::Tickets => r#"{"count":0,"results":[]}"#,
            Self::TicketMessages => {
                r#"{"ticket_status":"resolved","messages":[],"has_more":false,"unread_count":0}"#
            }
            Self::TicketRead => r#"{"success":true,"unread_count":0}"#,
            Self::TicketRestore => r#"{"status":"invalid","code":"token_invalid"}"#,
            Self::TicketRestoreLink => r#"{"ok":true}"#,
            Self::FlagDefinitions => r#"{"flags":[],"group_type_mapping":{},"cohorts":{}}"#,
            Self::FlagList => r#"{"count":0,"next":null,"previous":null,"results":[]}"#,
            Self::FlagPayload => "null",
        };
        const JSON: HeaderValue = HeaderValue::from_static("application/json");
        const HEADERS: [(HeaderName, HeaderValue); 2] =
            [(header::CONTENT_TYPE, JSON), (header::CACHE_CONTROL, CACHING)];
        (HEADERS, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::Absent;

    #[test]
    fn paths() {
        for (path, expected) in [
            ("/api/surveys", Some(Absent::Surveys)),
            ("/api/projects/@current/feature_flags/a/remote_config", Some(Absent::FlagPayload)),
            ("/api/projects/7/feature_flags/local_evaluation", Some(Absent::FlagDefinitions)),
            ("/api/projects/7/feature_flags", None),
            ("/api/projects/7/feature_flags/a", None),
            ("/api/projects/7/feature_flags/a/b/remote_config", None),
            ("/api/projects/7/x/feature_flags/a/remote_config", None),
            ("/api/projects//feature_flags/a/remote_config", None),
            ("/api/environments/7/feature_flags/a/remote_config", Some(Absent::FlagPayload)),
            ("/api/conversations/v1/widget/tickets", Some(Absent::Tickets)),
            ("/api/conversations/v1/widget/messages/7", Some(Absent::TicketMessages)),
            ("/api/conversations/v1/widget/messages/7/read", Some(Absent::TicketRead)),
            ("/api/conversations/v1/widget/message", None),
            ("/api/surveys/1", None),
        ] {
            assert_eq!(Absent::at(path), expected, "{path}");
        }
    }
}
