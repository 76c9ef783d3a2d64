//! What PostHog's libraries ask for and Weir does not offer: surveys, early access
//! features, experiments, tours and the definitions of feature flags.
//!
//! What belongs here: for each, the answer that libraries of every age read as
//! "there are none". A 404 is not one: some retry it, some hand its body to the
//! page, and server libraries log it at every poll. The answers say nothing of a
//! project, so no key is looked at.

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, header};

use super::settings::CACHING;

/// A feature that is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Surveys of browser and mobile libraries.
    Surveys,
    /// Features that visitors may switch on for themselves.
    EarlyAccessFeatures,
    /// Experiments without code.
    WebExperiments,
    /// Product tours.
    ProductTours,
    /// Definitions of flags, for server libraries that evaluate them locally.
    FlagDefinitions,
    /// The same for libraries of 2021.
    FlagList,
    /// The payload of one flag.
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
                let below = path.strip_prefix("/api/projects/")?;
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

    pub(super) fn pattern(self) -> &'static str {
        match self {
            Self::Surveys => "/api/surveys/",
            Self::EarlyAccessFeatures => "/api/early_access_features/",
            Self::WebExperiments => "/api/web_experiments/",
            Self::ProductTours => "/api/product_tours/",
            Self::FlagDefinitions => "/flags/definitions",
            Self::FlagList => "/api/feature_flag/",
            Self::FlagPayload => "/api/projects/{project}/feature_flags/{key}/remote_config/",
        }
    }

    /// "There are none", as libraries read it.
    pub(super) fn answer(self) -> Response {
        let body = match self {
            Self::Surveys => r#"{"surveys":[]}"#,
            Self::EarlyAccessFeatures => r#"{"earlyAccessFeatures":[]}"#,
            Self::WebExperiments => r#"{"experiments":[]}"#,
            Self::ProductTours => r#"{"product_tours":[]}"#,
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
            ("/api/surveys/1", None),
        ] {
            assert_eq!(Absent::at(path), expected, "{path}");
        }
    }
}
