//! Range and filters of a dashboard, which are for all questions on it (API-64).

use serde::Serialize;
use serde_json::Value;
use weir_model::errors::FieldError;

use super::common::{DATES, DateRange};
use super::filters::{FILTERS_MAX, FilterGroup};
use super::input::Input;

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
