//! The functions (their descriptions are in `functions.rs`).

use std::borrow::Cow;

use super::{QueryInput, boolean_or_null, equal, text, time};
use crate::functions::Function;
use crate::path::{self, Step};
use crate::tree::Expression;
use crate::value::Value;

/// The value of a function.
pub(super) fn call<'a>(
    function: Function,
    arguments: &'a [Expression],
    row: &'a dyn QueryInput,
) -> Value<'a> {
    let call = Call { arguments, row };
    call.value(function).unwrap_or(Value::Null)
}

struct Call<'a> {
    arguments: &'a [Expression],
    row: &'a dyn QueryInput,
}

impl<'a> Call<'a> {
    /// `None` is null. Arguments are evaluated when they are needed.
    fn value(&self, function: Function) -> Option<Value<'a>> {
        match function {
            Function::Lower => self.made(0, |text| text.to_lowercase()),
            Function::Upper => self.made(0, |text| text.to_uppercase()),
            Function::Trim => text::bounded(text::trimmed(self.text(0)?)),
            Function::Length => Some(text::length(&self.text(0)?)),
            Function::Concat => self.concat(),
            Function::Substring => self.substring(),
            Function::ReplaceAll => text::replaced(self.text(0)?, &self.text(1)?, &self.text(2)?),
            Function::StartsWith => {
                Some(Value::Boolean(self.text(0)?.starts_with(&*self.text(1)?)))
            }
            Function::EndsWith => Some(Value::Boolean(self.text(0)?.ends_with(&*self.text(1)?))),
            Function::Coalesce | Function::IfNull => {
                (0..self.arguments.len()).map(|at| self.at(at)).find(|value| !value.is_null())
            }
            Function::NullIf => {
                let value = self.at(0);
                (!equal(&value, &self.at(1))).then_some(value)
            }
            Function::If | Function::MultiIf => Some(self.choice()),
            Function::IsNull => Some(Value::Boolean(self.at(0).is_null())),
            Function::IsNotNull => Some(Value::Boolean(!self.at(0).is_null())),
            Function::Empty => Some(Value::Boolean(self.text(0)?.is_empty())),
            Function::NotEmpty => Some(Value::Boolean(!self.text(0)?.is_empty())),
            Function::ToString => self.text(0).map(Value::Text),
            Function::ToInt => self.at(0).integer().map(Value::Integer),
            Function::ToFloat => self.at(0).float().map(Value::Float),
            Function::ToBool => Some(boolean_or_null(self.at(0).boolean())),
            Function::ToDateTime => self.time().map(Value::Timestamp),
            Function::ToDate => time::day(self.time()?).map(Value::Date),
            Function::ToStartOfHour => Some(Value::Timestamp(time::start_of_hour(self.time()?))),
            Function::ToStartOfDay => Some(Value::Timestamp(time::start_of_day(self.time()?))),
            Function::ToStartOfMonth => time::start_of_month(self.time()?).map(Value::Timestamp),
            Function::ToUnixTimestamp => self.time().map(time::seconds).map(Value::Integer),
            Function::JsonExtractString => self.json()?.into_text().map(Value::Text),
            Function::JsonExtractInt => self.json()?.integer().map(Value::Integer),
            Function::JsonExtractFloat => self.json()?.float().map(Value::Float),
            Function::JsonExtractBool => Some(boolean_or_null(self.json()?.boolean())),
            Function::JsonExtractRaw => self.raw()?.filter(|json| json != "null").map(Value::Json),
            Function::JsonHas => Some(Value::Boolean(self.raw()?.is_some())),
        }
    }

    /// An argument; null if there are fewer.
    fn at(&self, at: usize) -> Value<'a> {
        self.arguments.get(at).map_or(Value::Null, |argument| argument.evaluate(self.row))
    }

    fn text(&self, at: usize) -> Option<Cow<'a, str>> {
        self.at(at).into_text()
    }

    fn time(&self) -> Option<i64> {
        self.at(0).timestamp()
    }

    fn made(&self, at: usize, make: impl FnOnce(&str) -> String) -> Option<Value<'a>> {
        text::bounded(Cow::Owned(make(&self.text(at)?)))
    }

    fn concat(&self) -> Option<Value<'a>> {
        let mut whole = String::new();
        for at in 0..self.arguments.len() {
            whole.push_str(&self.text(at)?);
            if whole.len() > super::TEXT_MAX {
                return None;
            }
        }
        Some(Value::Text(Cow::Owned(whole)))
    }

    fn substring(&self) -> Option<Value<'a>> {
        let (text, from) = (self.text(0)?, self.at(1).integer()?);
        let length = match self.arguments.len() {
            2 => None,
            _ => Some(self.at(2).integer()?),
        };
        Some(text::part(&text, from, length))
    }

    /// The value after the first true condition, otherwise the last value.
    fn choice(&self) -> Value<'a> {
        let last = self.arguments.len().saturating_sub(1);
        let taken = (0..last)
            .step_by(2)
            .find(|at| self.at(*at).boolean() == Some(true))
            .map_or(last, |at| at + 1);
        self.at(taken)
    }

    /// The JSON text at the path of the arguments after the first one; the inner `None`:
    /// there is none.
    fn raw(&self) -> Option<Option<Cow<'a, str>>> {
        let steps: Option<Vec<Step<'a>>> = (1..self.arguments.len())
            .map(|at| match self.at(at) {
                Value::Null => None,
                Value::Integer(index) => Some(Step::Index(index)),
                name => name.into_text().map(Step::Name),
            })
            .collect();
        let (steps, whole) = (steps?, self.text(0)?);
        // Each step may lead to a text of the same length.
        self.row.work_limit().charge(steps.len().saturating_mul(whole.len()));
        if self.row.work_limit().is_used_up() {
            return None;
        }
        Some(match whole {
            Cow::Borrowed(whole) => path::find(whole, &steps).map(Cow::Borrowed),
            Cow::Owned(whole) => {
                path::find(&whole, &steps).map(|found| Cow::Owned(found.to_owned()))
            }
        })
    }

    fn json(&self) -> Option<Value<'a>> {
        Some(match self.raw()?? {
            Cow::Borrowed(found) => Value::of_json(found),
            Cow::Owned(found) => Value::of_json(&found).into_owned(),
        })
    }
}
