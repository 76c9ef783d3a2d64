//! Reading a field as a value: texts, booleans, numbers, times, lists.
//!
//! What belongs here: the leniency and the faults of one field, and its schema for the
//! API document. What does not: where the fields come from (`input`).

use serde_json::{Value, json};
use weir_model::errors::FieldError;
use weir_model::validate;
use weir_model::{Patch, Timestamp};

use super::Fields;

/// The error for a time in another format.
const TIME_FORM: &str = "Datetime has wrong format. Use one of these formats instead: \
                         YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";

impl Fields {
    /// A required text of 1 to `max` characters.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn required_text(&self, name: &str, max: usize) -> Result<String, FieldError> {
        self.note(name, true, || text_schema(1, max));
        required(name, self.text(name, max)?)
    }

    /// A required text of 1 to `max` characters whose blanks are kept: a password.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn secret(&self, name: &str, max: usize) -> Result<String, FieldError> {
        self.note(
            name,
            true,
            || json!({"type": "string", "format": "password", "minLength": 1, "maxLength": max}),
        );
        let read = self.present(name, |value| {
            let text = to_text(name, value)?;
            // Checks that it is neither too long nor empty.
            validate::optional_text(name, &text, max)?;
            match text.is_empty() {
                true => validate::text(name, &text, max),
                false => Ok(text),
            }
        })?;
        required(name, read)
    }

    /// A text of 1 to `max` characters.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn text(&self, name: &str, max: usize) -> Result<Patch<String>, FieldError> {
        self.note(name, false, || text_schema(1, max));
        self.present(name, |value| validate::text(name, &to_text(name, value)?, max))
    }

    /// A text of at most `max` characters, which may be empty.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn optional_text(&self, name: &str, max: usize) -> Result<Patch<String>, FieldError> {
        self.note(name, false, || text_schema(0, max));
        self.present(name, |value| validate::optional_text(name, &to_text(name, value)?, max))
    }

    /// A text of at most `max` characters, which may be empty or null.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn nullable_text(&self, name: &str, max: usize) -> Result<Patch<String>, FieldError> {
        self.note(name, false, || or_null(text_schema(0, max)));
        if self.0.get(name) == Some(&Value::Null) {
            return Ok(Patch::Clear);
        }
        self.optional_text(name, max)
    }

    /// A text of at most `max` characters whose blanks are kept. It may be empty or null.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn nullable_text_as_sent(
        &self,
        name: &str,
        max: usize,
    ) -> Result<Patch<String>, FieldError> {
        self.note(name, false, || or_null(text_schema(0, max)));
        if self.0.get(name) == Some(&Value::Null) {
            return Ok(Patch::Clear);
        }
        self.present(name, |value| validate::text_as_sent(name, &to_text(name, value)?, max))
    }

    /// A boolean.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn boolean(&self, name: &str) -> Result<Patch<bool>, FieldError> {
        self.note(name, false, || json!({"type": "boolean"}));
        self.present(name, |value| to_boolean(name, value))
    }

    /// A boolean that may be null, also written as `""` or `"null"`.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn nullable_boolean(&self, name: &str) -> Result<Patch<bool>, FieldError> {
        self.note(name, false, || or_null(json!({"type": "boolean"})));
        match self.0.get(name) {
            Some(Value::Null) => Ok(Patch::Clear),
            Some(Value::String(text)) if text.is_empty() || text.eq_ignore_ascii_case("null") => {
                Ok(Patch::Clear)
            }
            Some(_) | None => self.boolean(name),
        }
    }

    /// One of a few numbers. `"1"` is accepted for 1.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn choice(&self, name: &str, choices: &[i64]) -> Result<Patch<i64>, FieldError> {
        self.note(name, false, || json!({"type": "integer", "enum": choices}));
        self.present(name, |value| {
            let text = scalar_text(value);
            let chosen = text.as_deref().and_then(|text| text.parse().ok());
            chosen.filter(|number| choices.contains(number)).ok_or_else(|| {
                let given = text.unwrap_or_else(|| value.to_string());
                validate::invalid_choice(name, &given)
            })
        })
    }

    /// One of a few numbers, or null. `"1"` is accepted for 1.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn nullable_choice(&self, name: &str, choices: &[i64]) -> Result<Patch<i64>, FieldError> {
        self.note(name, false, || or_null(json!({"type": "integer", "enum": choices})));
        if self.0.get(name) == Some(&Value::Null) {
            return Ok(Patch::Clear);
        }
        self.choice(name, choices)
    }

    /// One of a few words.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn word(&self, name: &str, words: &[&str]) -> Result<Patch<String>, FieldError> {
        self.note(name, false, || json!({"type": "string", "enum": words}));
        self.present(name, |value| {
            let given = scalar_text(value).unwrap_or_else(|| value.to_string());
            let is_known = words.contains(&given.as_str());
            if is_known { Ok(given) } else { Err(validate::invalid_choice(name, &given)) }
        })
    }

    /// A whole number within bounds, or null. `"1"` is accepted for 1.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn nullable_integer(
        &self,
        name: &str,
        least: i64,
        most: i64,
    ) -> Result<Patch<i64>, FieldError> {
        self.note(name, false, || {
            or_null(json!({"type": "integer", "minimum": least, "maximum": most}))
        });
        if self.0.get(name) == Some(&Value::Null) {
            return Ok(Patch::Clear);
        }
        self.present(name, |value| to_integer(name, value, least, most))
    }

    /// A time, or null. Without a zone it is UTC.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn nullable_time(&self, name: &str) -> Result<Patch<Timestamp>, FieldError> {
        self.note(name, false, || or_null(json!({"type": "string", "format": "date-time"})));
        if self.0.get(name) == Some(&Value::Null) {
            return Ok(Patch::Clear);
        }
        self.present(name, |value| {
            let read = value.as_str().and_then(Timestamp::parse_lenient);
            read.ok_or_else(|| FieldError::new(name, "invalid_input", TIME_FORM))
        })
    }

    /// A list of at most `most` texts of 1 to `max` characters.
    ///
    /// # Errors
    /// The fault, at `name` or at the item.
    pub fn texts(
        &self,
        name: &str,
        most: usize,
        max: usize,
    ) -> Result<Patch<Vec<String>>, FieldError> {
        self.note(name, false, || texts_schema(most, max));
        self.present(name, |value| {
            let Value::Array(items) = value else { return Err(no_list(name, value)) };
            validate::list_length(name, items.len(), most)?;
            let item = |(index, item): (usize, &Value)| {
                let attr = format!("{name}__{index}");
                if item.is_null() {
                    return Err(null(&attr));
                }
                validate::text(&attr, &to_text(&attr, item)?, max)
            };
            items.iter().enumerate().map(item).collect()
        })
    }

    /// A list of texts, or null.
    ///
    /// # Errors
    /// The fault, at `name` or at the item.
    pub fn nullable_texts(
        &self,
        name: &str,
        most: usize,
        max: usize,
    ) -> Result<Patch<Vec<String>>, FieldError> {
        self.note(name, false, || or_null(texts_schema(most, max)));
        if self.0.get(name) == Some(&Value::Null) {
            return Ok(Patch::Clear);
        }
        self.texts(name, most, max)
    }

    fn present<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T, FieldError>,
    ) -> Result<Patch<T>, FieldError> {
        match self.0.get(name) {
            None => Ok(Patch::Keep),
            Some(Value::Null) => Err(null(name)),
            Some(value) => read(value).map(Patch::Set),
        }
    }
}

fn required(name: &str, read: Patch<String>) -> Result<String, FieldError> {
    match read {
        Patch::Set(text) => Ok(text),
        Patch::Keep | Patch::Clear => Err(missing(name)),
    }
}

fn text_schema(least: usize, most: usize) -> Value {
    match least {
        0 => json!({"type": "string", "maxLength": most}),
        // One character that is not a blank, because blanks at both ends are removed.
        _ => json!({"type": "string", "minLength": least, "maxLength": most, "pattern": r"\S"}),
    }
}

fn texts_schema(most: usize, longest: usize) -> Value {
    json!({"type": "array", "maxItems": most, "items": text_schema(1, longest)})
}

/// The schema, with null as another value.
fn or_null(mut schema: Value) -> Value {
    let kind = schema["type"].take();
    schema["type"] = json!([kind, "null"]);
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.push(Value::Null);
    }
    schema
}

/// The fault of a missing field.
pub(crate) fn missing(name: &str) -> FieldError {
    FieldError::new(name, "required", "This field is required.")
}

/// The fault of a field that is null.
pub(crate) fn null(name: &str) -> FieldError {
    FieldError::new(name, "null", "This field may not be null.")
}

/// The fault of a value that is not a text.
pub(crate) fn no_text(name: &str) -> FieldError {
    FieldError::new(name, "invalid_input", "Not a valid string.")
}

/// The fault of a value that is not a list.
pub(crate) fn no_list(name: &str, value: &Value) -> FieldError {
    let detail = format!("Expected a list of items but got type \"{}\".", kind(value));
    FieldError::new(name, "not_a_list", detail)
}

/// The fault of a value that is not an object.
pub(crate) fn no_object(name: &str, value: &Value) -> FieldError {
    let detail = format!("Expected a dictionary of items but got type \"{}\".", kind(value));
    FieldError::new(name, "not_a_dict", detail)
}

fn to_text(name: &str, value: &Value) -> Result<String, FieldError> {
    scalar_text(value).ok_or_else(|| no_text(name))
}

/// A whole number within bounds. `"1"` is accepted for 1.
///
/// # Errors
/// The fault, at `name`.
pub(crate) fn to_integer(
    name: &str,
    value: &Value,
    least: i64,
    most: i64,
) -> Result<i64, FieldError> {
    let number = scalar_text(value).and_then(|text| text.trim().parse().ok());
    let wrong = || FieldError::new(name, "invalid_input", "A valid integer is required.");
    let number: i64 = number.ok_or_else(wrong)?;
    validate::within(name, number, least, most)?;
    Ok(number)
}

/// Numbers count as texts; booleans, lists and objects do not.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn to_boolean(name: &str, value: &Value) -> Result<bool, FieldError> {
    const TRUE: [&str; 6] = ["t", "y", "yes", "true", "on", "1"];
    const FALSE: [&str; 6] = ["f", "n", "no", "false", "off", "0"];
    let read = match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => match number.as_f64() {
            Some(1.0) => Some(true),
            Some(0.0) => Some(false),
            Some(_) | None => None,
        },
        Value::String(text) => {
            let word = text.trim().to_ascii_lowercase();
            if TRUE.contains(&word.as_str()) {
                Some(true)
            } else {
                FALSE.contains(&word.as_str()).then_some(false)
            }
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    read.ok_or_else(|| FieldError::new(name, "invalid_input", "Must be a valid boolean."))
}

/// The name of a value's type in error texts.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: &Value) -> Fields {
        Fields::of_value(value.clone()).unwrap()
    }

    fn code<T: std::fmt::Debug>(outcome: Result<T, FieldError>) -> (String, String) {
        let error = outcome.unwrap_err();
        (error.attr.unwrap_or_default(), error.code)
    }

    #[test]
    fn texts_are_lenient_about_numbers_only() {
        let fields = fields(&json!({"n": 12, "s": " a ", "b": true, "l": [], "z": null, "e": " "}));
        assert_eq!(fields.text("n", 5), Ok(Patch::Set("12".to_owned())));
        assert_eq!(fields.text("s", 5), Ok(Patch::Set("a".to_owned())));
        assert_eq!(fields.text("none", 5), Ok(Patch::Keep));
        assert_eq!(fields.nullable_text("z", 5), Ok(Patch::Clear));
        assert_eq!(fields.nullable_text("e", 5), Ok(Patch::Set(String::new())));
        assert_eq!(fields.nullable_text_as_sent("z", 5), Ok(Patch::Clear));
        assert_eq!(fields.nullable_text_as_sent("s", 3), Ok(Patch::Set(" a ".to_owned())));
        assert_eq!(code(fields.nullable_text_as_sent("s", 2)).1, "max_length");
        for (name, expected) in
            [("b", "invalid_input"), ("l", "invalid_input"), ("z", "null"), ("e", "blank")]
        {
            assert_eq!(code(fields.text(name, 5)), (name.to_owned(), expected.to_owned()));
        }
        assert_eq!(code(fields.required_text("none", 5)).1, "required");
        assert_eq!(code(fields.text("s", 0)).1, "max_length");
    }

    #[test]
    fn booleans_have_many_spellings() {
        for (value, expected) in [
            (json!(true), Patch::Set(true)),
            (json!(0), Patch::Set(false)),
            (json!(1.0), Patch::Set(true)),
            (json!("YES"), Patch::Set(true)),
            (json!("off"), Patch::Set(false)),
            (json!("null"), Patch::Clear),
            (json!(""), Patch::Clear),
            (Value::Null, Patch::Clear),
        ] {
            assert_eq!(fields(&json!({"b": value})).nullable_boolean("b"), Ok(expected), "{value}");
        }
        for value in [json!(2), json!("maybe"), json!([]), json!("")] {
            assert_eq!(
                code(fields(&json!({"b": value})).boolean("b")).1,
                "invalid_input",
                "{value}"
            );
        }
        assert_eq!(code(fields(&json!({"b": null})).boolean("b")).1, "null");
    }

    #[test]
    fn lists_and_choices_name_the_item() {
        let fields = fields(&json!({"l": ["a", [], ""], "s": "x", "w": "1", "v": 2}));
        assert_eq!(code(fields.texts("l", 3, 9)), ("l__1".to_owned(), "invalid_input".to_owned()));
        assert_eq!(code(fields.texts("l", 2, 9)), ("l".to_owned(), "max_length".to_owned()));
        assert_eq!(code(fields.texts("s", 3, 9)).1, "not_a_list");
        assert_eq!(fields.nullable_choice("w", &[0, 1]), Ok(Patch::Set(1)));
        let error = fields.nullable_choice("v", &[0, 1]).unwrap_err();
        assert_eq!(error.detail, "\"2\" is not a valid choice.");
    }

    #[test]
    fn secrets_keep_their_blanks() {
        let fields = fields(&json!({"a": " x y ", "b": "", "c": null, "d": "xxxxxxx"}));
        assert_eq!(fields.secret("a", 6), Ok(" x y ".to_owned()));
        for (name, expected) in
            [("b", "blank"), ("c", "null"), ("d", "max_length"), ("e", "required")]
        {
            assert_eq!(code(fields.secret(name, 6)).1, expected, "{name}");
        }
    }
}
