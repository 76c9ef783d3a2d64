//! Reading JSON with the path of each value, for faults (QRY-2, QRY-3).

use serde_json::{Map, Value};
use weir_model::errors::FieldError;

use crate::choices::Choice;

/// Characters of a name or word of a client that a fault repeats.
const SHOWN: usize = 64;
/// Most rows that are skipped.
const OFFSET_MAX: i64 = 1_000_000;

/// A value of the input with its path, such as `series__0__math`.
#[derive(Debug, Clone)]
pub(super) struct Input<'a> {
    pub(super) value: &'a Value,
    path: String,
}

impl<'a> Input<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// Its path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A fault of this value.
    pub(super) fn fault(&self, code: &str, detail: impl Into<String>) -> FieldError {
        match self.path.as_str() {
            "" => FieldError::body(code, detail),
            path => FieldError::new(path, code, detail),
        }
    }

    pub(super) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        self.fault("invalid_input", detail)
    }

    pub(super) fn object(&self) -> Result<Fields<'a>, FieldError> {
        match self.value {
            Value::Object(map) => Ok(Fields { map, path: self.path.clone() }),
            _ => Err(self.invalid("Expected an object.")),
        }
    }

    /// The items of a list of at most this many.
    pub(super) fn list(&self, most: usize) -> Result<Vec<Self>, FieldError> {
        let Value::Array(items) = self.value else {
            return Err(self.fault("not_a_list", "Expected a list of items."));
        };
        if items.len() > most {
            let detail = format!("Ensure this field has no more than {most} elements.");
            return Err(self.fault("max_length", detail));
        }
        Ok(items
            .iter()
            .enumerate()
            .map(|(at, value)| Self { value, path: joined(&self.path, &at.to_string()) })
            .collect())
    }

    /// A text of at most this many characters, as it was sent.
    pub(super) fn text(&self, most: usize) -> Result<String, FieldError> {
        let Value::String(text) = self.value else {
            return Err(self.invalid("Not a valid string."));
        };
        weir_model::validate::text_as_sent(&self.path, text, most)
    }

    /// The same, with at least one character that is no blank.
    pub(super) fn name(&self, most: usize) -> Result<String, FieldError> {
        let text = self.text(most)?;
        if text.trim().is_empty() {
            return Err(self.fault("blank", "This field may not be blank."));
        }
        Ok(text)
    }

    /// A whole number within bounds (inclusive), also as a text or as `5.0`.
    pub(super) fn integer(&self, least: i64, most: i64) -> Result<i64, FieldError> {
        let number = match self.value {
            Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.invalid("A valid integer is required."))?;
        weir_model::validate::within(&self.path, number, least, most)?;
        Ok(number)
    }

    /// True or false, also as a text.
    pub(super) fn flag(&self) -> Result<bool, FieldError> {
        match self.value {
            Value::Bool(flag) => Ok(*flag),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(self.invalid("Must be a valid boolean.")),
        }
    }

    pub(super) fn choice<T: Choice>(&self) -> Result<T, FieldError> {
        let Value::String(word) = self.value else {
            return Err(self.invalid("Not a valid string."));
        };
        T::of_word(word).ok_or_else(|| self.no_choice())
    }

    /// The fault of a word that is not among the choices.
    pub(super) fn no_choice(&self) -> FieldError {
        let shown = match self.value {
            Value::String(word) => shortened(word),
            other => shortened(&other.to_string()),
        };
        self.fault("invalid_choice", format!("\"{shown}\" is not a valid choice."))
    }
}

/// The members of an object of the input.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    /// A member. `None`: it is not there, or null.
    pub(super) fn get(&self, name: &str) -> Option<Input<'a>> {
        let value = self.map.get(name).filter(|value| !value.is_null())?;
        Some(Input { value, path: joined(&self.path, name) })
    }

    /// A member that must be there.
    pub(super) fn required(&self, name: &str) -> Result<Input<'a>, FieldError> {
        self.get(name).ok_or_else(|| self.fault(name, "required", "This field is required."))
    }

    /// A fault of a member, whether it is there or not.
    pub(super) fn fault(&self, name: &str, code: &str, detail: impl Into<String>) -> FieldError {
        FieldError::new(&joined(&self.path, name), code, detail)
    }

    /// Whether it has no members, or only ones that are null.
    pub(super) fn is_empty(&self) -> bool {
        self.map.values().all(Value::is_null)
    }

    /// A word that has a default.
    pub(super) fn choice<T: Choice>(&self, name: &str, default: T) -> Result<T, FieldError> {
        self.get(name).map_or(Ok(default), |input| input.choice())
    }

    /// A flag that is false by default.
    pub(super) fn flag(&self, name: &str) -> Result<bool, FieldError> {
        self.get(name).map_or(Ok(false), |input| input.flag())
    }

    /// `limit`, at most this many rows, and `offset`.
    pub(super) fn page(&self, most: u32, default: u32) -> Result<(u32, u32), FieldError> {
        let number = |name: &str, least: i64, most: i64, default: u32| {
            let Some(input) = self.get(name) else { return Ok(default) };
            Ok::<_, FieldError>(u32::try_from(input.integer(least, most)?).unwrap_or(default))
        };
        Ok((number("limit", 1, i64::from(most), default)?, number("offset", 0, OFFSET_MAX, 0)?))
    }

    /// A text that may be missing.
    pub(super) fn optional_text(
        &self,
        name: &str,
        most: usize,
    ) -> Result<Option<String>, FieldError> {
        self.get(name).map(|input| input.text(most)).transpose()
    }

    /// Refuses members that no list names: `read` are those with a meaning, `refused` those
    /// that would change the answer in a way that is not implemented, and all others that
    /// are known only change how an answer is drawn. One that is null is absent.
    pub(super) fn check(&self, read: &[&str], refused: &[&str]) -> Result<(), FieldError> {
        for (name, value) in self.map {
            let name = name.as_str();
            if value.is_null() {
                continue;
            }
            if refused.contains(&name) {
                if !says_nothing(name, value) {
                    let detail = "Weir does not support this field.";
                    return Err(self.fault(name, "invalid_input", detail));
                }
            } else if !read.contains(&name) && !PRESENTATION.contains(&name) {
                let detail = "There is no such field.";
                return Err(self.fault(&shortened(name), "invalid_input", detail));
            }
        }
        Ok(())
    }
}

/// Fields of which one is as much as none: factors, and numbers of intervals that are joined.
const FACTORS: [&str; 4] =
    ["intervalCount", "math_multiplier", "samplingFactor", "smoothingIntervals"];

/// Whether a value of a field means the same as its absence.
fn says_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(Value::is_null),
        Value::Number(number) => FACTORS.contains(&name) && number.as_f64() == Some(1.0),
        Value::Bool(true) => false,
    }
}

/// Fields of clients that change how an answer is drawn, logged or cached, and not the
/// answer.
const PRESENTATION: &[&str] = &[
    "aggregationAxisFormat",
    "aggregationAxisPostfix",
    "aggregationAxisPrefix",
    "chartSettings",
    "chartStyle",
    "columns",
    "confidenceLevel",
    "dashboardDisplay",
    "dataColorTheme",
    "decimalPlaces",
    "detailedResultsAggregationType",
    "display",
    "embedded",
    "explain",
    "full",
    "funnelStepReference",
    "goalLines",
    "hiddenColumns",
    "hiddenLegendBreakdowns",
    "hiddenLegendIndexes",
    "kind",
    "label",
    "layout",
    "meanRetentionCalculation",
    "metricColorByDirection",
    "metricShowChange",
    "metricSummary",
    "minDecimalPlaces",
    "modifiers",
    "movingAverageIntervals",
    "name",
    "order",
    "pinnedColumns",
    "response",
    "resultCustomizationBy",
    "resultCustomizations",
    "retentionReference",
    "selectedInterval",
    "shortId",
    "showAlertThresholdLines",
    "showAnnotations",
    "showConfidenceIntervals",
    "showFullUrls",
    "showLabelsOnSeries",
    "showLegend",
    "showMovingAverage",
    "showMultipleYAxes",
    "showPercentStackView",
    "showTrendLines",
    "showValuesOnSeries",
    "stacked",
    "tableSettings",
    "tags",
    "useUdf",
    "uuid",
    "version",
    "vizSpecificOptions",
    "xAxisLabel",
    "yAxisLabel",
    "yAxisScaleType",
];

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}__{name}") }
}

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// The integer of a whole number that a `f64` has exactly.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_leniently() {
        let integer = |value: Value| Input::root(&value).integer(0, 10).map_err(|e| e.code);
        assert_eq!(integer(json!(5)), Ok(5));
        assert_eq!(integer(json!("5")), Ok(5));
        assert_eq!(integer(json!(5.0)), Ok(5));
        for (value, code) in [
            (json!(5.5), "invalid_input"),
            (json!("five"), "invalid_input"),
            (json!([5]), "invalid_input"),
            (json!(1e300), "invalid_input"),
            (json!(11), "max_value"),
            (json!(-1), "min_value"),
            (json!(u64::MAX), "invalid_input"),
        ] {
            assert_eq!(integer(value.clone()), Err(code.to_owned()), "{value}");
        }
        assert_eq!(Input::root(&json!("True")).flag(), Ok(true));
        assert!(Input::root(&json!(1)).flag().is_err());
    }

    #[test]
    fn faults_have_the_path_of_their_value() {
        let value = json!({ "a": [{ "b": "x\u{0}" }, 7], "c": "y" });
        let fields = Input::root(&value).object().unwrap();
        let items = fields.required("a").unwrap().list(5).unwrap();
        let inner = items[0].object().unwrap();
        let error = inner.required("b").unwrap().text(10).unwrap_err();
        assert_eq!(error.attr.as_deref(), Some("a__0__b"));
        assert_eq!(items[1].object().unwrap_err().attr.as_deref(), Some("a__1"));
        assert_eq!(fields.required("d").unwrap_err().attr.as_deref(), Some("d"));
        assert_eq!(fields.required("a").unwrap().list(1).unwrap_err().code, "max_length");
        assert_eq!(Input::root(&json!(1)).object().unwrap_err().attr, None);
        let error = fields.check(&["a"], &["c"]).unwrap_err();
        assert_eq!(error.detail, "Weir does not support this field.");
        let error = fields.check(&["c"], &[]).unwrap_err();
        assert_eq!(error.detail, "There is no such field.");
    }

    #[test]
    fn fields_that_say_nothing_are_not_refused() {
        let value = json!({ "a": null, "b": [], "c": false, "samplingFactor": 1, "e": { "f": null },
            "unknown": null, "showLegend": true });
        let fields = Input::root(&value).object().unwrap();
        assert_eq!(fields.check(&[], &["a", "b", "c", "samplingFactor", "e"]), Ok(()));
        for (name, value) in [("e", json!({ "f": {} })), ("actionId", json!(1))] {
            let value = json!({ name: value });
            assert!(Input::root(&value).object().unwrap().check(&[], &[name]).is_err());
        }
    }
}
