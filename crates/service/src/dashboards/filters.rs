//! Range and filters of a dashboard: what is stored after a change.

use serde_json::{Value, json};
use weir_model::Patch;
use weir_model::dashboards::{DashboardPatch, FILTERS_MAX};
use weir_model::errors::FieldError;
use weir_questions::query::DashboardFilters;

use crate::Result;
use crate::error::Error;
use crate::insights::{below, stored};

/// No range and no filters.
pub(super) const NO_FILTERS: &str = "{}";

/// The filters after a change, in their canonical form.
pub(super) fn changed(patch: &DashboardPatch, present: &str) -> Result<String> {
    if (&patch.filters, &patch.range) == (&Patch::Keep, &Patch::Keep) {
        return Ok(present.to_owned());
    }
    let filters = match &patch.filters {
        Patch::Keep => stored(present)?,
        Patch::Clear => json!({}),
        Patch::Set(sent) => sent.clone(),
    };
    let filters = match &patch.range {
        Patch::Keep => filters,
        Patch::Clear => with_range(filters, None),
        Patch::Set(from) => with_range(filters, Some(from.as_str())),
    };
    let filters = DashboardFilters::read(&filters).map_err(|fault| below("filters", fault))?;
    let text = serde_json::to_string(&filters)
        .map_err(|error| Error::Internal(format!("filters without a form: {error}")))?;
    if text.len() > FILTERS_MAX {
        let detail = format!("Ensure these filters have no more than {FILTERS_MAX} bytes.");
        return Err(FieldError::new("filters", "max_length", detail).into());
    }
    Ok(text)
}

/// Filters with a range from this date until now, or without one.
fn with_range(mut filters: Value, from: Option<&str>) -> Value {
    if let Some(fields) = filters.as_object_mut() {
        for name in ["date_from", "date_to", "explicitDate"] {
            fields.remove(name);
        }
        if let Some(from) = from {
            fields.insert("date_from".to_owned(), json!(from));
        }
    }
    filters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_kept_in_their_canonical_form() {
        let patch = |filters: Value| DashboardPatch {
            filters: Patch::Set(filters),
            ..DashboardPatch::default()
        };
        let sent = json!({"date_from": "-7d", "date_to": null, "properties": []});
        let text = changed(&patch(sent), NO_FILTERS).unwrap();
        assert_eq!(text, r#"{"date_from":"-7d"}"#);
        let refused = changed(&patch(json!({"date_from": "soon"})), &text).unwrap_err();
        let Error::Invalid(fault) = refused else { panic!("{refused}") };
        assert_eq!(fault.attr.as_deref(), Some("filters__date_from"));
        let cleared = DashboardPatch { filters: Patch::Clear, ..DashboardPatch::default() };
        assert_eq!(changed(&cleared, &text).unwrap(), NO_FILTERS);
        assert_eq!(changed(&DashboardPatch::default(), &text).unwrap(), text);
    }

    #[test]
    fn a_range_replaces_the_range_and_keeps_the_filters() {
        let filter = json!({"key": "plan", "type": "event", "operator": "exact", "value": ["pro"]});
        let dated = json!({"date_from": "-7d", "date_to": "-1d", "properties": [filter]});
        let sent = DashboardPatch { filters: Patch::Set(dated), ..DashboardPatch::default() };
        let text = changed(&sent, NO_FILTERS).unwrap();
        let present: Value = serde_json::from_str(&text).unwrap();
        let with = |range: Patch<String>| -> Value {
            let patch = DashboardPatch { range, ..DashboardPatch::default() };
            serde_json::from_str(&changed(&patch, &text).unwrap()).unwrap()
        };
        let later = with(Patch::Set("-30d".to_owned()));
        assert_eq!((&later["date_from"], later.get("date_to")), (&json!("-30d"), None));
        assert_eq!(later["properties"], present["properties"]);
        let none = with(Patch::Clear);
        assert_eq!((none.get("date_from"), none.get("date_to")), (None, None));
        assert_eq!(none["properties"], present["properties"]);
    }
}
