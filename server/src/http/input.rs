//! Reading the fields of a request body with the leniency that API clients rely on
//! (API-7, API-9): JSON or forms, numbers for texts, words for booleans. Unknown and
//! read-only keys are ignored.
//!
//! What belongs here: turning bytes into fields. `values` turns fields into values. What
//! does not: which fields a resource has (`api`), and rules for a value beyond its type
//! and length (`weir-model`).

mod value_budget;
mod values;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use weir_model::errors::FieldError;
use weir_model::json;

use crate::http::error::ApiError;

pub use value_budget::ValueBudget;
pub(crate) use values::{kind, missing, no_list, no_object, no_text, null, to_integer};

/// Most fields of a form.
const FIELDS: usize = 1_000;

/// A resource's input, read from fields in the order in which the resource declares them:
/// the first invalid field is reported. The API document runs [`read`](Self::read) to
/// list the fields.
pub trait Input: Sized {
    /// A body that is accepted, as JSON text: the example of the API document.
    /// Must have every required field.
    const EXAMPLE: &'static str = "{}";

    /// Most bytes of a form with files, if that is more than the limit of other bodies.
    const FORM_MAX: usize = 0;

    /// Reads and checks the fields.
    ///
    /// # Errors
    /// The fault of the first invalid field.
    fn read(fields: &Fields) -> Result<Self, FieldError>;
}

/// The fields of a request body.
#[derive(Debug, Clone, Default)]
pub struct Fields(Map<String, Value>, Option<Recorder>, Vec<Upload>);

/// A file of a form.
#[derive(Clone, PartialEq, Eq)]
pub struct Upload {
    /// Name of the form field.
    pub field: String,
    /// Name of the file, as sent.
    pub file_name: String,
    /// Media type, if the client sent one.
    pub media_type: Option<String>,
    /// The bytes of the file.
    pub contents: Bytes,
}

/// Without the contents, which may be a key.
impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("field", &self.field).finish_non_exhaustive()
    }
}

/// Records the fields that an input reads, with their schemas.
type Recorder = Arc<Mutex<Vec<InputField>>>;

/// A field that an input reads.
#[derive(Debug, Clone, PartialEq)]
pub struct InputField {
    /// Name of the field.
    pub name: String,
    /// JSON Schema of its values.
    pub schema: Value,
    /// Whether the field is required.
    pub required: bool,
}

impl Fields {
    /// Reads a body. An empty body has no fields, whatever its media type.
    ///
    /// # Errors
    /// [`ApiError::UnsupportedMediaType`], [`ApiError::Malformed`], [`ApiError::Busy`], or
    /// the body is JSON but not an object.
    pub async fn parse(
        content_type: Option<&str>,
        body: &Bytes,
        budget: &mut ValueBudget,
    ) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let content_type = content_type.unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Self::from_json(body, budget)
        } else if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            take_fields(1 + body.iter().filter(|byte| **byte == b'&').count(), budget)?;
            let pairs = form_urlencoded::parse(body);
            let field = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
                (name.into_owned(), Value::String(value.into_owned()))
            };
            Ok(Self(pairs.map(field).collect(), None, Vec::new()))
        } else if essence.eq_ignore_ascii_case("multipart/form-data") {
            Self::from_multipart(content_type, body, budget).await
        } else {
            Err(ApiError::UnsupportedMediaType(content_type.to_owned()))
        }
    }

    /// The members of a JSON object.
    #[must_use]
    pub const fn of_object(members: Map<String, Value>) -> Self {
        Self(members, None, Vec::new())
    }

    async fn from_multipart(
        content_type: &str,
        body: &Bytes,
        budget: &mut ValueBudget,
    ) -> Result<Self, ApiError> {
        let fault = |error: multer::Error| {
            ApiError::Malformed(format!("Multipart form parse error - {error}"))
        };
        let boundary = multer::parse_boundary(content_type).map_err(fault)?;
        let all = futures::stream::iter([Ok::<_, Infallible>(body.clone())]);
        let mut parts = multer::Multipart::new(all, boundary);
        let (mut fields, mut uploads) = (Map::new(), Vec::new());
        let mut count = 0;
        while let Some(part) = parts.next_field().await.map_err(fault)? {
            count += 1;
            take_fields(count, budget)?;
            let Some(field) = part.name().map(str::to_owned) else { continue };
            match part.file_name().map(str::to_owned) {
                Some(file_name) => {
                    let media_type = part.content_type().map(ToString::to_string);
                    let contents = part.bytes().await.map_err(fault)?;
                    uploads.push(Upload { field, file_name, media_type, contents });
                }
                None => {
                    let text = part.text().await.map_err(fault)?;
                    fields.insert(field, Value::String(text));
                }
            }
        }
        Ok(Self(fields, None, uploads))
    }

    fn from_json(body: &[u8], budget: &mut ValueBudget) -> Result<Self, ApiError> {
        Ok(Self::of_value(parse_json(body, budget)?)?)
    }

    fn of_value(value: Value) -> Result<Self, FieldError> {
        match value {
            Value::Object(members) => Ok(Self::of_object(members)),
            other => Err(FieldError::body(
                "invalid_input",
                format!("Invalid data. Expected a dictionary, but got {}.", kind(&other)),
            )),
        }
    }

    /// The fields that an input reads, in its order.
    ///
    /// # Errors
    /// The example of the input is not accepted.
    pub fn fields_of<T: Input>() -> Result<Vec<InputField>, ApiError> {
        let recorder = Recorder::default();
        let Self(example, ..) =
            Self::from_json(T::EXAMPLE.as_bytes(), &mut ValueBudget::uncounted())?;
        T::read(&Self(example, Some(Arc::clone(&recorder)), Vec::new()))?;
        let recorded = recorder.lock().clone();
        Ok(recorded)
    }

    /// Adds to the schema of a field in the API document: checks beyond its type and
    /// length, such as `{"format": "email"}`. Call it after the field was read.
    pub fn refine(&self, name: &str, more: impl FnOnce() -> Value) {
        let Some(recorder) = &self.1 else { return };
        let mut recorded = recorder.lock();
        let Some(found) = recorded.iter_mut().find(|recorded| recorded.name == name) else {
            return;
        };
        if let (Value::Object(schema), Value::Object(more)) = (&mut found.schema, more()) {
            schema.extend(more);
        }
    }

    /// The first record of a field counts, because readers call each other.
    fn note(&self, name: &str, required: bool, schema: impl FnOnce() -> Value) {
        let Some(recorder) = &self.1 else { return };
        let mut recorded = recorder.lock();
        if recorded.iter().all(|recorded| recorded.name != name) {
            recorded.push(InputField { name: name.to_owned(), schema: schema(), required });
        }
    }

    /// Whether there is a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The names of all fields that were sent, without files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The files of a form.
    pub fn uploads(&self) -> &[Upload] {
        &self.2
    }

    /// A text as it was sent, for keys that are read before the body is validated.
    pub fn raw_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A value as it was sent, for an input that validates it itself. `schema` is its
    /// JSON Schema.
    pub fn value(
        &self,
        name: &str,
        is_required: bool,
        schema: impl FnOnce() -> Value,
    ) -> Option<&Value> {
        self.note(name, is_required, schema);
        self.0.get(name)
    }
}

/// A body that is one object or a list of them.
#[derive(Debug)]
pub enum Items {
    /// One object.
    One(Fields),
    /// A list. Its items are not validated yet.
    Many(Vec<Value>),
    /// JSON of another type.
    Neither,
}

impl Items {
    /// Reads a body. A list is JSON; one object may be a form as well.
    ///
    /// # Errors
    /// As [`Fields::parse`].
    pub async fn parse(
        content_type: Option<&str>,
        body: &Bytes,
        budget: &mut ValueBudget,
    ) -> Result<Self, ApiError> {
        if body.is_empty() || !is_json(content_type) {
            return Fields::parse(content_type, body, budget).await.map(Self::One);
        }
        Ok(match parse_json(body, budget)? {
            Value::Object(members) => Self::One(Fields::of_object(members)),
            Value::Array(items) => Self::Many(items),
            _ => Self::Neither,
        })
    }
}

/// The inputs of a list, or the fault of the first invalid item: `attr` is
/// `<index>__<field>` (API-8).
///
/// # Errors
/// The fault of the first invalid item.
pub fn read_items<T: Input>(items: Vec<Value>) -> Result<Vec<T>, FieldError> {
    let read = |(index, item): (usize, Value)| {
        let read = Fields::of_value(item).and_then(|fields| T::read(&fields));
        read.map_err(|fault| {
            let field = fault.attr.as_deref().unwrap_or("non_field_errors");
            FieldError { attr: Some(format!("{index}__{field}")), ..fault }
        })
    };
    items.into_iter().enumerate().map(read).collect()
}

/// A text of a body whose sender is not known yet. `None` if the body cannot be read. The
/// values of JSON are not built.
pub(crate) async fn text_in(
    content_type: Option<&str>,
    body: &Bytes,
    name: &str,
) -> Option<String> {
    if is_json(content_type) {
        return json::string_member(body, name);
    }
    let fields = Fields::parse(content_type, body, &mut ValueBudget::uncounted()).await.ok()?;
    fields.raw_text(name).map(str::to_owned)
}

/// The JSON of a body, whatever its type.
///
/// # Errors
/// [`ApiError::UnsupportedMediaType`], [`ApiError::Malformed`], [`ApiError::Busy`].
pub(crate) fn parse_value(
    content_type: Option<&str>,
    body: &[u8],
    budget: &mut ValueBudget,
) -> Result<Value, ApiError> {
    if is_json(content_type) {
        return parse_json(body, budget);
    }
    Err(ApiError::UnsupportedMediaType(content_type.unwrap_or_default().to_owned()))
}

fn is_json(content_type: Option<&str>) -> bool {
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Takes the memory for this many fields of a form.
fn take_fields(count: usize, budget: &mut ValueBudget) -> Result<(), ApiError> {
    let most = FIELDS.min(budget.values());
    if count > most {
        return Err(ApiError::Malformed(format!("A form may have {most} fields.")));
    }
    budget.grow_to(json::size(1, count))
}

fn parse_json(body: &[u8], budget: &mut ValueBudget) -> Result<Value, ApiError> {
    let fault =
        |text: &dyn std::fmt::Display| ApiError::Malformed(format!("JSON parse error - {text}"));
    budget.grow_to(json::measure(body, budget.values()).map_err(|unparsed| fault(&unparsed))?)?;
    serde_json::from_slice(body).map_err(|error| fault(&error))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn parse(content_type: Option<&str>, body: &str) -> Result<Fields, ApiError> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        // The bytes are in memory, so the future never waits.
        Fields::parse(content_type, &body, &mut ValueBudget::uncounted()).now_or_never().unwrap()
    }

    #[test]
    fn bodies_are_read_by_their_type() {
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

    #[test]
    fn forms_have_a_bounded_number_of_fields() {
        let form = Some("application/x-www-form-urlencoded");
        assert!(parse(form, &"a&".repeat(FIELDS - 1)).is_ok());
        assert!(matches!(parse(form, &"a&".repeat(FIELDS)), Err(ApiError::Malformed(_))));
        let part = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n";
        let parts = |count: usize| format!("{}--x--\r\n", part.repeat(count));
        let form = Some("multipart/form-data; boundary=x");
        assert!(parse(form, &parts(FIELDS)).is_ok());
        assert!(matches!(parse(form, &parts(FIELDS + 1)), Err(ApiError::Malformed(_))));
    }

    #[test]
    fn json_has_a_bounded_number_of_values() {
        let json = Some("application/json");
        // An object with a list of objects, each with a number.
        let body = |objects: usize| {
            let objects = vec![r#"{"":0}"#; objects].join(",");
            format!(r#"{{"a":[{objects}]}}"#)
        };
        let most = json::VALUES / 2 - 1;
        assert!(parse(json, &body(most)).is_ok());
        let refused = parse(json, &body(most + 1)).unwrap_err();
        let detail = format!("JSON parse error - more than {} values", json::VALUES);
        assert!(matches!(refused, ApiError::Malformed(text) if text == detail));
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
            let json = Some("application/json");
            Items::parse(json, &body, &mut ValueBudget::uncounted()).now_or_never().unwrap()
        };
        let read = |body: &str| match items(body) {
            Ok(Items::Many(items)) => read_items::<Named>(items).map_err(|fault| fault.attr),
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
}
