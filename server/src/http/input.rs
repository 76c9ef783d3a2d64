//! Reading the fields of a request body with the leniency that API clients
//! rely on (management-api 1.3, 1.4): JSON or forms, numbers for texts, words
//! for booleans; unknown and read-only keys are ignored.
//!
//! What belongs here: turning bytes into fields and fields into values.
//! What does not: which fields a resource has (`api`), and what a value may be
//! beyond its type and length (`weir-model`).

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use weir_model::errors::FieldError;
use weir_model::validate;
use weir_model::{Patch, Timestamp};

use crate::http::error::ApiError;

/// Nested objects and lists of a body.
const DEPTH: usize = 64;
/// What a time of another form hears.
const TIME_FORM: &str = "Datetime has wrong format. Use one of these formats instead: \
                         YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";

/// A resource's input, read from fields in the order in which the resource
/// declares them: the first field at fault is reported. The API document shows
/// the fields that [`read`](Self::read) asks for, because it runs it.
pub trait Input: Sized {
    /// A body that is accepted, as JSON text: the example of the API document.
    /// Must have every required field.
    const EXAMPLE: &'static str = "{}";

    /// Reads and checks the fields.
    ///
    /// # Errors
    /// What is wrong with the first field at fault.
    fn read(fields: &Fields) -> Result<Self, FieldError>;
}

/// The fields of a request body.
#[derive(Debug, Clone, Default)]
pub struct Fields(Map<String, Value>, Option<Recorder>);

/// Notes which fields are asked for, and what each may be.
type Recorder = Arc<Mutex<Vec<Asked>>>;

/// A field that an input asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// What it may be, as JSON Schema.
    pub schema: Value,
    /// Whether it must be there.
    pub required: bool,
}

impl Fields {
    /// Reads a body. No bytes are no fields, whatever the media type.
    ///
    /// # Errors
    /// [`ApiError::UnsupportedMediaType`], [`ApiError::Malformed`], or the body
    /// is JSON but no object.
    pub async fn parse(content_type: Option<&str>, body: &Bytes) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let content_type = content_type.unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Self::from_json(body)
        } else if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let pairs = form_urlencoded::parse(body);
            let field = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
                (name.into_owned(), Value::String(value.into_owned()))
            };
            Ok(Self(pairs.map(field).collect(), None))
        } else if essence.eq_ignore_ascii_case("multipart/form-data") {
            Self::from_multipart(content_type, body).await.map_err(|error| {
                ApiError::Malformed(format!("Multipart form parse error - {error}"))
            })
        } else {
            Err(ApiError::UnsupportedMediaType(content_type.to_owned()))
        }
    }

    async fn from_multipart(content_type: &str, body: &Bytes) -> Result<Self, multer::Error> {
        let boundary = multer::parse_boundary(content_type)?;
        let all = futures::stream::iter([Ok::<_, Infallible>(body.clone())]);
        let mut parts = multer::Multipart::new(all, boundary);
        let mut fields = Map::new();
        while let Some(part) = parts.next_field().await? {
            if let Some(name) = part.name().map(str::to_owned) {
                fields.insert(name, Value::String(part.text().await?));
            }
        }
        Ok(Self(fields, None))
    }

    fn from_json(body: &[u8]) -> Result<Self, ApiError> {
        Ok(Self::of_value(parse_json(body)?)?)
    }

    fn of_value(value: Value) -> Result<Self, FieldError> {
        match value {
            Value::Object(fields) => Ok(Self(fields, None)),
            other => Err(FieldError::body(
                "invalid_input",
                format!("Invalid data. Expected a dictionary, but got {}.", kind(&other)),
            )),
        }
    }

    /// The fields that an input asks for, in its order.
    ///
    /// # Errors
    /// The example of the input is not accepted.
    pub fn asked_by<T: Input>() -> Result<Vec<Asked>, ApiError> {
        let recorder = Recorder::default();
        let Self(example, _) = Self::from_json(T::EXAMPLE.as_bytes())?;
        T::read(&Self(example, Some(Arc::clone(&recorder))))?;
        let asked = recorder.lock().clone();
        Ok(asked)
    }

    /// Says more of a field in the API document: what is checked of it beyond
    /// its type and length, such as `{"format": "email"}`. Call it after the
    /// field was read.
    pub fn refine(&self, name: &str, more: impl FnOnce() -> Value) {
        let Some(recorder) = &self.1 else { return };
        let mut asked = recorder.lock();
        let Some(found) = asked.iter_mut().find(|asked| asked.name == name) else { return };
        if let (Value::Object(schema), Value::Object(more)) = (&mut found.schema, more()) {
            schema.extend(more);
        }
    }

    /// The first note of a field is the one that counts: readers are built on
    /// each other.
    fn note(&self, name: &str, required: bool, schema: impl FnOnce() -> Value) {
        let Some(recorder) = &self.1 else { return };
        let mut asked = recorder.lock();
        if asked.iter().all(|asked| asked.name != name) {
            asked.push(Asked { name: name.to_owned(), schema: schema(), required });
        }
    }

    /// Whether there is a field of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A text as it was sent, for keys that are looked for before the body is judged.
    #[must_use]
    pub fn raw_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A text of 1 to `max` characters that must be there.
    ///
    /// # Errors
    /// The fault, at `name`.
    pub fn required_text(&self, name: &str, max: usize) -> Result<String, FieldError> {
        self.note(name, true, || text_schema(1, max));
        match self.text(name, max)? {
            Patch::Set(text) => Ok(text),
            Patch::Keep | Patch::Clear => {
                Err(FieldError::new(name, "required", "This field is required."))
            }
        }
    }

    /// A text of 1 to `max` characters that must be there, blanks and all: a
    /// password.
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
            // For what it may not be: too long, or nothing.
            validate::optional_text(name, &text, max)?;
            match text.is_empty() {
                true => validate::text(name, &text, max),
                false => Ok(text),
            }
        })?;
        match read {
            Patch::Set(text) => Ok(text),
            Patch::Keep | Patch::Clear => {
                Err(FieldError::new(name, "required", "This field is required."))
            }
        }
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
        self.present(name, |value| {
            let text = scalar_text(value);
            let number = text.as_deref().and_then(|text| text.trim().parse().ok());
            let number: i64 = number.ok_or_else(|| {
                FieldError::new(name, "invalid_input", "A valid integer is required.")
            })?;
            validate::within(name, number, least, most)?;
            Ok(number)
        })
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

    /// A value as it was sent, for an input that judges it by itself. `schema` is
    /// what it may be, as JSON Schema.
    pub fn value(
        &self,
        name: &str,
        is_required: bool,
        schema: impl FnOnce() -> Value,
    ) -> Option<&Value> {
        self.note(name, is_required, schema);
        self.0.get(name)
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
            let Value::Array(items) = value else {
                let detail = format!("Expected a list of items but got type \"{}\".", kind(value));
                return Err(FieldError::new(name, "not_a_list", detail));
            };
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

/// A body that is one object or a list of them.
#[derive(Debug)]
pub enum Items {
    /// One object.
    One(Fields),
    /// A list; what its items are is not judged yet.
    Many(Vec<Value>),
    /// JSON of another kind.
    Neither,
}

impl Items {
    /// Reads a body. A list is JSON; one object may be a form as well.
    ///
    /// # Errors
    /// As [`Fields::parse`].
    pub async fn parse(content_type: Option<&str>, body: &Bytes) -> Result<Self, ApiError> {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        if body.is_empty() || !essence.trim().eq_ignore_ascii_case("application/json") {
            return Fields::parse(content_type, body).await.map(Self::One);
        }
        Ok(match parse_json(body)? {
            Value::Object(fields) => Self::One(Fields(fields, None)),
            Value::Array(items) => Self::Many(items),
            _ => Self::Neither,
        })
    }
}

/// The inputs of a list, or what is wrong with the first item at fault: `attr` is
/// `<index>__<field>` (management-api 1.3).
///
/// # Errors
/// The fault.
pub fn read_items<T: Input>(items: &[Value]) -> Result<Vec<T>, FieldError> {
    let read = |(index, item): (usize, &Value)| {
        let read = Fields::of_value(item.clone()).and_then(|fields| T::read(&fields));
        read.map_err(|fault| {
            let field = fault.attr.as_deref().unwrap_or("non_field_errors");
            FieldError { attr: Some(format!("{index}__{field}")), ..fault }
        })
    };
    items.iter().enumerate().map(read).collect()
}

fn parse_json(body: &[u8]) -> Result<Value, ApiError> {
    let fault =
        |text: &dyn std::fmt::Display| ApiError::Malformed(format!("JSON parse error - {text}"));
    if is_too_deep(body) {
        return Err(fault(&format_args!("more than {DEPTH} nested objects and lists")));
    }
    serde_json::from_slice(body).map_err(|error| fault(&error))
}

fn text_schema(least: usize, most: usize) -> Value {
    match least {
        0 => json!({"type": "string", "maxLength": most}),
        // One character that is not blank: what is around it is cut off.
        _ => json!({"type": "string", "minLength": least, "maxLength": most, "pattern": r"\S"}),
    }
}

fn texts_schema(most: usize, longest: usize) -> Value {
    json!({"type": "array", "maxItems": most, "items": text_schema(1, longest)})
}

/// The same, or null.
fn or_null(mut schema: Value) -> Value {
    let kind = schema["type"].take();
    schema["type"] = json!([kind, "null"]);
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.push(Value::Null);
    }
    schema
}

fn null(name: &str) -> FieldError {
    FieldError::new(name, "null", "This field may not be null.")
}

fn to_text(name: &str, value: &Value) -> Result<String, FieldError> {
    scalar_text(value).ok_or_else(|| FieldError::new(name, "invalid_input", "Not a valid string."))
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

/// The name of a value's type in the texts of the specification.
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

/// Whether more than [`DEPTH`] objects and lists are nested.
fn is_too_deep(body: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > DEPTH {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {

    use futures::FutureExt as _;

    use super::*;

    fn parse(content_type: Option<&str>, body: &str) -> Result<Fields, ApiError> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        // All bytes are there: nothing waits.
        Fields::parse(content_type, &body).now_or_never().unwrap()
    }

    fn fields(value: &Value) -> Fields {
        parse(Some("application/json"), &value.to_string()).unwrap()
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
    fn bodies_are_told_apart_by_their_type() {
        assert!(parse(None, "").unwrap().0.is_empty());
        assert!(parse(Some("text/plain"), "").unwrap().0.is_empty());
        let form = parse(Some("application/x-www-form-urlencoded"), "a=1+2&a=%C3%A9").unwrap();
        assert_eq!(form.raw_text("a"), Some("é"));
        let parts = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\né\r\n--x--\r\n";
        let form = parse(Some("multipart/form-data; boundary=x"), parts).unwrap();
        assert_eq!(form.raw_text("a"), Some("é"));
        for (content_type, body) in
            [("multipart/form-data", parts), ("multipart/form-data; boundary=x", "--x")]
        {
            assert!(matches!(parse(Some(content_type), body), Err(ApiError::Malformed(_))));
        }
        let media = parse(Some("text/plain; charset=utf-8"), "{}");
        assert!(
            matches!(media, Err(ApiError::UnsupportedMediaType(name)) if name == "text/plain; charset=utf-8")
        );
        assert!(matches!(parse(None, "{}"), Err(ApiError::UnsupportedMediaType(_))));
        let json = Some("application/json; charset=utf-8");
        assert!(matches!(parse(json, "{"), Err(ApiError::Malformed(_))));
        assert!(matches!(parse(json, "[]"), Err(ApiError::Service(_))));
        assert_eq!(parse(json, r#"{"a":"1","a":"2"}"#).unwrap().raw_text("a"), Some("2"));
    }

    #[derive(Debug, PartialEq)]
    struct Named(String);

    impl Input for Named {
        fn read(fields: &Fields) -> Result<Self, FieldError> {
            fields.required_text("name", 3).map(Self)
        }
    }

    #[test]
    fn a_list_names_the_item_and_the_field() {
        let items = |body: &str| {
            let body = Bytes::copy_from_slice(body.as_bytes());
            Items::parse(Some("application/json"), &body).now_or_never().unwrap()
        };
        let read = |body: &str| match items(body) {
            Ok(Items::Many(items)) => read_items::<Named>(&items).map_err(|fault| fault.attr),
            other => panic!("no list: {other:?}"),
        };
        assert_eq!(read(r#"[{"name": "a"}, {"name": 7}]"#).unwrap().len(), 2);
        for (body, attr) in [
            (r#"[{"name": "a"}, {}]"#, "1__name"),
            (r#"[{"name": "abcd"}, 7]"#, "0__name"),
            (r#"[{"name": "a"}, 7]"#, "1__non_field_errors"),
        ] {
            assert_eq!(read(body), Err(Some(attr.to_owned())), "{body}");
        }
        assert!(matches!(items(r#"{"name": "a"}"#), Ok(Items::One(_))));
        assert!(matches!(items("7"), Ok(Items::Neither)));
        assert!(matches!(items("["), Err(ApiError::Malformed(_))));
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

    #[test]
    fn depth_is_limited() {
        let nested =
            |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert!(!is_too_deep(nested(64).as_bytes()));
        assert!(is_too_deep(nested(65).as_bytes()));
        assert!(!is_too_deep(br#"{"a":"[[[[\"[["}"#));
    }
}
