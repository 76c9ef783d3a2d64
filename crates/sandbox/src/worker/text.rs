//! Text from a script with any content.

use rquickjs::{Ctx, FromJs, Result, Value};

use crate::json::mend_surrogates;

/// A string of a script. Single surrogates, which UTF-8 does not have, become U+FFFD.
pub(super) struct Text(pub(super) String);

impl<'js> FromJs<'js> for Text {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let string = rquickjs::String::from_js(ctx, value.clone())?;
        if let Ok(text) = string.to_string() {
            return Ok(Self(text));
        }
        let escaped = ctx.json_stringify(value)?.map(|text| text.to_string()).transpose()?;
        let text = escaped.and_then(|text| serde_json::from_str(&mend_surrogates(text)).ok());
        Ok(Self(text.unwrap_or_default()))
    }
}

/// Truncates a text to at most this many bytes, at a character boundary.
pub(super) fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
