//! The question of the page for SQL.

#[cfg(feature = "ssr")]
use serde_json::{Value, json};
#[cfg(feature = "ssr")]
use weir_model::errors::FieldError;
#[cfg(feature = "ssr")]
use weir_questions::Query;
#[cfg(feature = "ssr")]
use weir_questions::query::{HogQLFilters, HogQLQuery};

/// The path of the server function of the page.
pub const FUNCTION: &str = "/_fn/get_sql";
/// The field with the text.
pub const TEXT: &str = "query";
/// The field with what `{filters}` stands for, as JSON.
pub const FILTERS: &str = "filters";
/// Longest text, in characters: the address of the page contains it.
pub const TEXT_MAX: usize = 4_000;
/// Longest filters, in characters, for the same reason.
pub const FILTERS_MAX: usize = 2_000;

/// The question of these fields.
///
/// # Errors
/// A fault at one of them.
#[cfg(feature = "ssr")]
pub fn query(text: &str, filters: &str) -> Result<Query, FieldError> {
    // Browsers send line breaks of forms as two characters.
    let [text, filters] = [text, filters].map(|value| value.replace("\r\n", "\n"));
    for (name, value, most) in [(TEXT, &text, TEXT_MAX), (FILTERS, &filters, FILTERS_MAX)] {
        if value.chars().count() > most {
            let detail =
                format!("The page takes {most} characters here. Ask longer questions by API.");
            return Err(FieldError::new(name, "max_length", detail));
        }
    }
    let mut query = json!({ "kind": "HogQLQuery", "query": text });
    if !filters.trim().is_empty() {
        query["filters"] = crate::json::read(&filters).map_err(|error| {
            FieldError::new(FILTERS, "invalid_input", format!("This is not JSON: {error}."))
        })?;
    }
    Query::read(&query).map_err(at_field)
}

/// The values of the fields for a question. `None`: it is none in SQL, or has values beside its
/// text.
#[cfg(feature = "ssr")]
pub fn fields(query: &Value) -> Option<(String, String)> {
    let Ok(Query::HogQL(HogQLQuery { query, values, filters })) = Query::read(query) else {
        return None;
    };
    let filters = match filters == HogQLFilters::default() {
        true => String::new(),
        false => serde_json::to_string(&filters).ok()?,
    };
    values.is_empty().then_some((query, filters))
}

/// The fault of a question at its field. The path of a fault in the filters is in its text.
#[cfg(feature = "ssr")]
pub fn at_field(fault: FieldError) -> FieldError {
    let path = fault.attr.as_deref().and_then(|attr| attr.strip_prefix(FILTERS));
    match path.map(|path| path.trim_start_matches('_')) {
        None => fault,
        Some(path) => {
            let detail = match path {
                "" => fault.detail,
                path => format!("{path}: {}", fault.detail),
            };
            FieldError { attr: Some(FILTERS.to_owned()), detail, ..fault }
        }
    }
}

/// The line and the column that the text of a fault ends with.
pub(crate) fn position(detail: &str) -> Option<(usize, usize)> {
    let (_, position) = detail.strip_suffix(')')?.rsplit_once("(line ")?;
    let (line, column) = position.split_once(", column ")?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::{TEXT_MAX, fields, position, query};

    #[test]
    fn fields_lead_back_to_themselves() {
        let filters = r#"{"dateRange":{"date_from":"-7d"}}"#;
        for (text, filters) in [("select 1\nfrom events", ""), ("select 1 from events", filters)] {
            let asked = serde_json::to_value(query(text, filters).unwrap()).unwrap();
            assert_eq!(fields(&asked), Some((text.to_owned(), filters.to_owned())), "{text}");
        }
        let with_values = json!({"kind": "HogQLQuery", "query": "select {a}", "values": {"a": 1}});
        assert_eq!(fields(&with_values), None);
        assert_eq!(fields(&json!({"kind": "EventsQuery", "select": ["event"]})), None);
    }

    #[test]
    fn faults_are_at_a_field() {
        let long = "x".repeat(TEXT_MAX + 1);
        for (text, filters, attr, detail) in [
            ("", "", "query", "This field may not be blank."),
            (long.as_str(), "", "query", "The page takes 4000 characters here."),
            ("select 1", "{", "filters", "This is not JSON"),
            ("select 1", r#"{"properties": [{"key": ""}]}"#, "filters", "properties__0__key: "),
            (
                "select 1",
                r#"{"dateRange": {"date_from": "soon"}}"#,
                "filters",
                "dateRange__date_from: ",
            ),
        ] {
            let fault = query(text, filters).unwrap_err();
            assert_eq!(fault.attr.as_deref(), Some(attr), "{fault:?}");
            assert!(fault.detail.starts_with(detail), "{fault:?}");
        }
    }

    #[test]
    fn a_fault_has_its_position() {
        assert_eq!(position("Unknown name `x` (line 2, column 15)"), Some((2, 15)));
        assert_eq!(position("This field may not be blank."), None);
        assert_eq!(position("It is (line 2)"), None);
    }
}
