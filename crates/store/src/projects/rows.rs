//! The stored form of a project.
//!
//! What belongs here: the record and the types that it is read into. What does not:
//! statements (`projects`).

use serde::Serialize;
use surrealdb::types::{self, Kind, SurrealValue, Value};
use uuid::Uuid;
use weir_model::projects::ProjectBrief;
use weir_model::{OrganizationId, ProjectId, Timestamp};

use crate::update::Row;

/// A project as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectRow {
    /// The fields that lists show.
    #[serde(flatten)]
    pub brief: ProjectBrief,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether client IP addresses are removed from events.
    pub anonymize_ips: bool,
    /// Whether events are processed without persons.
    pub person_processing_opt_out: bool,
    /// URLs of the sites that send events.
    pub app_urls: Vec<String>,
    /// First day of the week: 0 Sunday, 1 Monday.
    pub week_start_day: Option<i64>,
    /// Days that events are kept; `None`: for ever.
    pub event_retention_days: Option<i64>,
    /// A description for people.
    pub product_description: Option<String>,
    /// Person properties that are shown as a person's name.
    pub person_display_name_properties: Option<Vec<String>>,
    /// Its secret keys, sealed.
    #[serde(skip)]
    pub secrets: Option<String>,
    /// The previous project key, which stays valid for a limited time.
    #[serde(skip)]
    pub previous: Option<PreviousToken>,
}

/// A project key that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousToken {
    /// The replaced key.
    pub token: String,
    /// When it stops working.
    pub until: Timestamp,
}

impl ProjectRow {
    /// A new project with the defaults.
    #[must_use]
    pub fn new(
        id: ProjectId,
        organization: OrganizationId,
        name: String,
        api_token: String,
        now: Timestamp,
    ) -> Self {
        Self {
            brief: ProjectBrief {
                id,
                uuid: crate::ids::time_ordered(now),
                organization,
                api_token,
                name,
                completed_snippet_onboarding: false,
                has_completed_onboarding_for: None,
                ingested_event: false,
                is_demo: false,
                timezone: "UTC".to_owned(),
                access_control: false,
            },
            created_at: now,
            updated_at: now,
            anonymize_ips: false,
            person_processing_opt_out: false,
            app_urls: Vec::new(),
            week_start_day: None,
            event_retention_days: None,
            product_description: None,
            person_display_name_properties: None,
            secrets: None,
            previous: None,
        }
    }
}

impl Row for ProjectRow {
    type Id = ProjectId;
    type With = ();
    const TABLE: &'static str = "project";
    const UPDATE: &'static str = "projects update";
    const COMPARED: &'static [&'static str] = &["organization"];

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

impl SurrealValue for ProjectRow {
    fn kind_of() -> Kind {
        Stored::kind_of()
    }

    fn into_value(self) -> Value {
        Stored::from(&self).into_value()
    }

    fn from_value(value: Value) -> Result<Self, types::Error> {
        Stored::from_value(value).map(Self::from)
    }
}

/// The record. Its id is `project:<number>`, given as `number` too.
#[derive(Debug, Clone, SurrealValue)]
pub(crate) struct Stored {
    number: i64,
    uuid: Uuid,
    organization: Uuid,
    api_token: String,
    name: String,
    timezone: String,
    completed_snippet_onboarding: bool,
    ingested_event: bool,
    anonymize_ips: bool,
    person_processing_opt_out: bool,
    app_urls: Vec<String>,
    week_start_day: Option<i64>,
    event_retention_days: Option<i64>,
    product_description: Option<String>,
    person_display_name_properties: Option<Vec<String>>,
    secrets: Option<String>,
    previous_token: Option<String>,
    previous_token_until: Option<i64>,
    created_at: i64,
    updated_at: i64,
}

/// The fields of a record that lists show.
#[derive(Debug, Clone, SurrealValue)]
pub(crate) struct StoredBrief {
    number: i64,
    uuid: Uuid,
    organization: Uuid,
    api_token: String,
    name: String,
    timezone: String,
    completed_snippet_onboarding: bool,
    ingested_event: bool,
}

impl From<StoredBrief> for ProjectBrief {
    fn from(stored: StoredBrief) -> Self {
        Self {
            id: ProjectId(stored.number),
            uuid: stored.uuid,
            organization: OrganizationId(stored.organization),
            api_token: stored.api_token,
            name: stored.name,
            completed_snippet_onboarding: stored.completed_snippet_onboarding,
            has_completed_onboarding_for: None,
            ingested_event: stored.ingested_event,
            is_demo: false,
            timezone: stored.timezone,
            access_control: false,
        }
    }
}

/// The previous key, if it was to stay valid.
pub(super) fn previous(token: Option<String>, until: Option<i64>) -> Option<PreviousToken> {
    Some(PreviousToken { token: token?, until: Timestamp::from_micros(until?) })
}

impl From<Stored> for ProjectRow {
    fn from(stored: Stored) -> Self {
        Self {
            brief: ProjectBrief::from(StoredBrief {
                number: stored.number,
                uuid: stored.uuid,
                organization: stored.organization,
                api_token: stored.api_token,
                name: stored.name,
                timezone: stored.timezone,
                completed_snippet_onboarding: stored.completed_snippet_onboarding,
                ingested_event: stored.ingested_event,
            }),
            created_at: Timestamp::from_micros(stored.created_at),
            updated_at: Timestamp::from_micros(stored.updated_at),
            anonymize_ips: stored.anonymize_ips,
            person_processing_opt_out: stored.person_processing_opt_out,
            app_urls: stored.app_urls,
            week_start_day: stored.week_start_day,
            event_retention_days: stored.event_retention_days,
            product_description: stored.product_description,
            person_display_name_properties: stored.person_display_name_properties,
            secrets: stored.secrets,
            previous: previous(stored.previous_token, stored.previous_token_until),
        }
    }
}

impl From<&ProjectRow> for Stored {
    fn from(row: &ProjectRow) -> Self {
        Self {
            number: row.brief.id.0,
            uuid: row.brief.uuid,
            organization: row.brief.organization.0,
            api_token: row.brief.api_token.clone(),
            name: row.brief.name.clone(),
            timezone: row.brief.timezone.clone(),
            completed_snippet_onboarding: row.brief.completed_snippet_onboarding,
            ingested_event: row.brief.ingested_event,
            anonymize_ips: row.anonymize_ips,
            person_processing_opt_out: row.person_processing_opt_out,
            app_urls: row.app_urls.clone(),
            week_start_day: row.week_start_day,
            event_retention_days: row.event_retention_days,
            product_description: row.product_description.clone(),
            person_display_name_properties: row.person_display_name_properties.clone(),
            secrets: row.secrets.clone(),
            previous_token: row.previous.as_ref().map(|previous| previous.token.clone()),
            previous_token_until: row.previous.as_ref().map(|previous| previous.until.micros()),
            created_at: row.created_at.micros(),
            updated_at: row.updated_at.micros(),
        }
    }
}
