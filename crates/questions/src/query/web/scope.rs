//! Which views and sessions count.

use serde::ser::{Error as _, SerializeMap as _};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use weir_model::errors::FieldError;

use super::WebView;
use crate::choices::choices;
use crate::query::common::{DateRange, Scope};
use crate::query::filters::{
    FILTERS_MAX, Filter, FilterGroup, Logic, PropertyFilter, PropertyOwner, take,
};
use crate::query::input::{Fields, Input};

/// Most filters of sessions.
pub const SESSION_FILTERS_MAX: usize = 20;

/// Members that [`WebScope::read`] reads.
pub(super) const MEMBERS: [&str; 3] = ["dateRange", "properties", "filterTestAccounts"];
/// The word for the owner of a property of sessions.
const SESSION: &str = "session";

choices! {
    /// A property of a session, which one of its views has.
    SessionProperty {
        /// The path of its first page.
        EntryPath = "$entry_pathname",
        /// The path of its last page.
        EndPath = "$end_pathname",
        /// The domain of the site that led to it.
        EntryReferrer = "$entry_referring_domain",
        /// The source of its campaign.
        EntryUtmSource = "$entry_utm_source",
        /// The medium of its campaign.
        EntryUtmMedium = "$entry_utm_medium",
        /// Its campaign.
        EntryUtmCampaign = "$entry_utm_campaign",
        /// The key words of its campaign.
        EntryUtmTerm = "$entry_utm_term",
        /// The ad or the link of its campaign.
        EntryUtmContent = "$entry_utm_content",
    }
}

impl SessionProperty {
    /// The property of the view.
    pub const fn property(self) -> &'static str {
        match self {
            Self::EntryPath | Self::EndPath => "$pathname",
            Self::EntryReferrer => "$referring_domain",
            Self::EntryUtmSource => "utm_source",
            Self::EntryUtmMedium => "utm_medium",
            Self::EntryUtmCampaign => "utm_campaign",
            Self::EntryUtmTerm => "utm_term",
            Self::EntryUtmContent => "utm_content",
        }
    }

    /// The view.
    pub const fn view(self) -> WebView {
        match self {
            Self::EndPath => WebView::Last,
            _ => WebView::First,
        }
    }
}

/// A filter of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionFilter {
    /// The property of the session.
    pub property: SessionProperty,
    /// What the view must satisfy that has it.
    pub of_view: PropertyFilter,
}

/// Range and filters of a question about a site.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WebScope {
    /// The range, and which views count.
    pub views: Scope,
    /// Which sessions count: those that satisfy all of these.
    pub sessions: Vec<SessionFilter>,
}

impl WebScope {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let (properties, sessions) = match fields.get("properties") {
            Some(input) => filters(&input)?,
            None => Default::default(),
        };
        let views = Scope {
            dates: DateRange::read(fields)?,
            properties,
            filter_test_accounts: fields.flag("filterTestAccounts")?,
            group_type: None,
        };
        Ok(Self { views, sessions })
    }

    /// All filters as JSON.
    fn properties(&self) -> Result<Value, serde_json::Error> {
        let written = serde_json::to_value(&self.views.properties)?;
        if self.sessions.is_empty() {
            return Ok(written);
        }
        let sessions = self.sessions.iter().map(serde_json::to_value);
        let sessions: Vec<Value> = sessions.collect::<Result<_, _>>()?;
        Ok(match written {
            Value::Array(own) => own.into_iter().chain(sessions).collect(),
            group => {
                let is_of_all = group["type"] == Logic::And.word();
                let own = match group["values"].as_array() {
                    Some(own) if is_of_all => own.clone(),
                    _ => vec![group.clone()],
                };
                let all: Vec<Value> = own.into_iter().chain(sessions).collect();
                json!({ "type": Logic::And, "values": all })
            }
        })
    }
}

/// Filters of views, and those of sessions among the outermost ones, all of which must be
/// satisfied.
fn filters(input: &Input<'_>) -> Result<(FilterGroup, Vec<SessionFilter>), FieldError> {
    let mut left = FILTERS_MAX;
    let values = match input.value {
        Value::Array(_) => Some(input.clone()),
        _ => {
            let group = input.object()?;
            if group.choice("type", Logic::And)? == Logic::Or {
                let group = FilterGroup::read(input, &mut left, 1)?;
                return Ok((FilterGroup::default().and(group), Vec::new()));
            }
            group.check(&["type", "values"], &[])?;
            group.get("values")
        }
    };
    let (mut views, mut sessions) = (FilterGroup::default(), Vec::new());
    for item in values.map_or(Ok(Vec::new()), |values| values.list(FILTERS_MAX))? {
        let is_of_session = item.value["type"].as_str() == Some(SESSION);
        if !is_of_session {
            views.filters.extend(Filter::read(&item, &mut left, 1)?);
            continue;
        }
        if sessions.len() == SESSION_FILTERS_MAX {
            let detail =
                format!("A question has at most {SESSION_FILTERS_MAX} filters of sessions.");
            return Err(item.fault("max_length", detail));
        }
        take(&mut left, 1, &item)?;
        sessions.push(SessionFilter::read(&item, &mut left)?);
    }
    Ok((views, sessions))
}

impl SessionFilter {
    fn read(item: &Input<'_>, left: &mut usize) -> Result<Self, FieldError> {
        let property: SessionProperty = item.object()?.required("key")?.choice()?;
        let filter = PropertyFilter::read(item, left, PropertyOwner::Event)?;
        Ok(Self {
            property,
            of_view: PropertyFilter { key: property.property().to_owned(), ..filter },
        })
    }
}

impl Serialize for SessionFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.of_view).map_err(S::Error::custom)?;
        value["type"] = json!(SESSION);
        value["key"] = json!(self.property);
        value.serialize(serializer)
    }
}

impl Serialize for WebScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.views.dates.is_default() {
            map.serialize_entry("dateRange", &self.views.dates)?;
        }
        if !self.views.properties.is_empty() || !self.sessions.is_empty() {
            map.serialize_entry("properties", &self.properties().map_err(S::Error::custom)?)?;
        }
        if self.views.filter_test_accounts {
            map.serialize_entry("filterTestAccounts", &true)?;
        }
        map.end()
    }
}
