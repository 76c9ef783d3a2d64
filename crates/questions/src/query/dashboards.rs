//! Range and filters of a dashboard, which are for all questions on it (API-64).

use serde::Serialize;
use serde_json::Value;
use weir_model::errors::FieldError;

use super::Query;
use super::common::{DATES, DateRange};
use super::filters::{FILTERS_MAX, FilterGroup};
use super::input::Input;
use crate::time::DateText;

/// A day in microseconds.
const DAY: i64 = 86_400_000_000;

/// The range and the filters of a dashboard.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct DashboardFilters {
    /// The range. Without dates each question has its own.
    #[serde(flatten)]
    pub dates: DateRange,
    /// Filters in addition to those of each question.
    #[serde(skip_serializing_if = "FilterGroup::is_empty")]
    pub properties: FilterGroup,
}

impl DashboardFilters {
    /// Reads filters. A fault has the path of its field, such as `properties__0__key`.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Input::root(value).object()?;
        let [from, to, explicit] = DATES;
        fields.check(&[from, to, explicit, "properties"], &["breakdown_filter"])?;
        let mut left = FILTERS_MAX;
        let properties = match fields.get("properties") {
            Some(input) => FilterGroup::read(&input, &mut left, 1)?,
            None => FilterGroup::default(),
        };
        Ok(Self { dates: DateRange::read_members(&fields)?, properties })
    }

    /// A question on the dashboard: with this range instead of its own, if there is one, and
    /// with these filters in addition to its own.
    ///
    /// # Errors
    /// A fault if the question cannot have the range, or has too many filters with these.
    pub fn applied(&self, mut query: Query) -> Result<Query, FieldError> {
        self.change(&mut query)?;
        // The bounds of a question are for all of its filters.
        Query::read(&serde_json::to_value(&query).unwrap_or_default())
    }

    fn change(&self, query: &mut Query) -> Result<(), FieldError> {
        let (dates, properties) = match query {
            Query::Trends(query) => (&mut query.scope.dates, &mut query.scope.properties),
            Query::Funnels(query) => (&mut query.scope.dates, &mut query.scope.properties),
            Query::Retention(query) => (&mut query.scope.dates, &mut query.scope.properties),
            Query::Paths(query) => (&mut query.scope.dates, &mut query.scope.properties),
            Query::Stickiness(query) => (&mut query.scope.dates, &mut query.scope.properties),
            Query::Lifecycle(query) => (&mut query.scope.dates, &mut query.scope.properties),
            Query::WebOverview(query) => {
                (&mut query.scope.views.dates, &mut query.scope.views.properties)
            }
            Query::WebTable(query) => {
                (&mut query.scope.views.dates, &mut query.scope.views.properties)
            }
            Query::WebTrends(query) => {
                (&mut query.scope.views.dates, &mut query.scope.views.properties)
            }
            Query::HogQL(query) => (&mut query.filters.dates, &mut query.filters.properties),
            Query::Events(query) => {
                if self.has_dates() {
                    query.after = self.dates.date_from.filter(|from| *from != DateText::All);
                    query.before = self.dates.date_to.map(after_whole).transpose()?;
                }
                let own = std::mem::take(&mut query.properties);
                query.properties = own.and(self.properties.clone());
                return Ok(());
            }
            Query::Actors(query) => return self.change(&mut query.source),
        };
        if self.has_dates() {
            *dates = self.dates;
        }
        *properties = std::mem::take(properties).and(self.properties.clone());
        Ok(())
    }

    fn has_dates(&self) -> bool {
        self.dates.date_from.is_some() || self.dates.date_to.is_some()
    }
}

/// The date before which the events of a list are, for a range that includes the whole day of
/// its end.
fn after_whole(date_to: DateText) -> Result<DateText, FieldError> {
    match date_to {
        DateText::Day(micros) => Ok(DateText::Day(micros + DAY)),
        DateText::Local(_) | DateText::Instant(_) => Ok(date_to),
        DateText::All | DateText::Relative(_) => {
            let detail = "A list of events cannot have a range with such an end.";
            Err(FieldError::new("before", "invalid_input", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_of_dashboards_have_one_form() {
        let filter = json!({"key": "plan", "type": "event", "operator": "exact", "value": ["pro"]});
        let sent = json!({
            "date_from": "-7d", "date_to": null, "explicitDate": false, "properties": [filter],
            "breakdown_filter": null,
        });
        let read = DashboardFilters::read(&sent).unwrap();
        let canonical = serde_json::to_value(&read).unwrap();
        assert_eq!(canonical["date_from"], "-7d");
        assert_eq!(canonical["properties"][0]["key"], "plan");
        assert_eq!(canonical.as_object().unwrap().len(), 2);
        assert_eq!(DashboardFilters::read(&canonical).unwrap(), read);
        let nothing = serde_json::to_value(DashboardFilters::default()).unwrap();
        assert_eq!(nothing, json!({}));
    }

    fn applied(filters: &Value, query: &Value) -> Result<Value, FieldError> {
        let filters = DashboardFilters::read(filters).unwrap();
        let found = filters.applied(Query::read(query).unwrap())?;
        Ok(serde_json::to_value(&found).unwrap())
    }

    #[test]
    fn a_question_has_the_range_and_the_filters_of_its_dashboard() {
        let filter = |key: &str| json!({"key": key, "operator": "exact", "value": ["a"]});
        let own = json!({
            "kind": "TrendsQuery", "series": [{"event": "paid"}],
            "dateRange": {"date_from": "-90d"}, "properties": [filter("plan")],
        });
        let with_both = json!({"date_from": "-7d", "properties": [filter("country")]});
        let found = applied(&with_both, &own).unwrap();
        assert_eq!(found["dateRange"], json!({"date_from": "-7d"}));
        let keys = [&found["properties"][0]["key"], &found["properties"][1]["key"]];
        assert_eq!(keys, [&json!("plan"), &json!("country")]);
        // A dashboard without a range and filters changes nothing.
        let unchanged = serde_json::to_value(Query::read(&own).unwrap()).unwrap();
        assert_eq!(applied(&json!({}), &own).unwrap(), unchanged);
    }

    #[test]
    fn lists_and_sql_have_the_range_of_their_dashboard() {
        let range = json!({"date_from": "2026-08-01", "date_to": "2026-08-21"});
        let events = json!({"kind": "EventsQuery", "select": ["event"], "before": "2026-01-01"});
        let found = applied(&range, &events).unwrap();
        assert_eq!(
            (&found["after"], &found["before"]),
            (&json!("2026-08-01"), &json!("2026-08-22"))
        );
        let whole = applied(&json!({"date_from": "all"}), &events).unwrap();
        assert_eq!((whole.get("after"), whole.get("before")), (None, None));
        let fault = applied(&json!({"date_to": "-1d"}), &events).unwrap_err();
        assert_eq!(fault.attr.as_deref(), Some("before"));
        let sql = json!({"kind": "HogQLQuery", "query": "select 1"});
        assert_eq!(applied(&range, &sql).unwrap()["filters"]["dateRange"], range);
    }

    #[test]
    fn the_filters_of_both_have_one_bound() {
        let filters = |count: usize| {
            let filter = json!({"key": "plan", "operator": "exact", "value": ["a"]});
            json!({"properties": vec![filter; count]})
        };
        let mut query = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
        query["properties"] = filters(60)["properties"].clone();
        assert!(applied(&filters(40), &query).is_ok());
        assert_eq!(applied(&filters(41), &query).unwrap_err().code, "max_length");
    }

    #[test]
    fn faults_of_filters_have_their_path() {
        for (sent, attr) in [
            (json!({"date_from": "soon"}), Some("date_from")),
            (json!({"date_to": "all"}), Some("date_to")),
            (json!({"interval": "day"}), Some("interval")),
            (json!({"breakdown_filter": {"breakdown": "plan"}}), Some("breakdown_filter")),
            (json!({"properties": [{"key": ""}]}), Some("properties__0__key")),
            (json!([]), None),
        ] {
            let fault = DashboardFilters::read(&sent).unwrap_err();
            assert_eq!(fault.attr.as_deref(), attr, "{sent}");
        }
    }
}
