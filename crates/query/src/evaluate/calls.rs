//! The functions (their descriptions are in `functions.rs`).

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{QueryInput, boolean_or_null, compare, equal, instant_of, number, text, text_of, time};
use crate::functions::Function;
use crate::path::{self, Step};
use crate::tree::{Expression, Literal, TimeUnit};
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
                (!equal(&value, &self.at(1), self.row)).then_some(value)
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
            Function::ToDate => time::day(self.local(0)?).map(Value::Date),
            Function::ToStartOfHour => self.start_of(TimeUnit::Hour),
            Function::ToStartOfDay => self.start_of(TimeUnit::Day),
            Function::ToStartOfMonth => self.start_of(TimeUnit::Month),
            Function::ToUnixTimestamp => self.time().map(time::seconds).map(Value::Integer),
            Function::JsonExtractString => self.json()?.into_text().map(Value::Text),
            Function::JsonExtractInt => self.json()?.integer().map(Value::Integer),
            Function::JsonExtractFloat => self.json()?.float().map(Value::Float),
            Function::JsonExtractBool => Some(boolean_or_null(self.json()?.boolean())),
            Function::JsonExtractRaw => self.raw()?.filter(|json| json != "null").map(Value::Json),
            Function::JsonHas => Some(Value::Boolean(self.raw()?.is_some())),
            Function::ToStartOfMinute => self.start_of(TimeUnit::Minute),
            Function::ToStartOfWeek => self.start_of(TimeUnit::Week),
            Function::ToYear => time::year(self.local(0)?).map(Value::Integer),
            Function::ToMonth => time::month(self.local(0)?).map(Value::Integer),
            Function::ToDayOfWeek => Some(Value::Integer(time::day_of_week(self.local(0)?))),
            Function::ToHour => Some(Value::Integer(time::hour(self.local(0)?))),
            Function::DateDiff => self.difference(),
            Function::Now => self.row.now().map(Value::Timestamp),
            Function::Today => time::day(self.row.local(self.row.now()?)?).map(Value::Date),
            Function::Match | Function::Extract => self.regular_expression(function),
            Function::Domain => {
                let url = self.text(0)?;
                let range = text::host(&url);
                Some(text::cut(url, range))
            }
            Function::Path => {
                let url = self.text(0)?;
                let range = text::path(&url);
                Some(text::cut(url, range))
            }
            Function::Round => {
                let decimals = if self.arguments.len() > 1 { self.at(1).integer()? } else { 0 };
                number::rounded(self.at(0).number()?, decimals)
            }
            Function::Floor => number::with_float(self.at(0).number()?, f64::floor),
            Function::Ceil => number::with_float(self.at(0).number()?, f64::ceil),
            Function::Abs => number::without_sign(self.at(0).number()?),
            Function::Least => self.extreme(Ordering::Less),
            Function::Greatest => self.extreme(Ordering::Greater),
        }
    }

    /// An argument; null if there are fewer.
    fn at(&self, at: usize) -> Value<'a> {
        self.arguments.get(at).map_or(Value::Null, |argument| argument.evaluate(self.row))
    }

    fn text(&self, at: usize) -> Option<Cow<'a, str>> {
        text_of(self.at(at), self.row)
    }

    fn time(&self) -> Option<i64> {
        instant_of(&self.at(0), self.row)
    }

    /// What clocks in the time zone show; a date has no time zone.
    fn local(&self, at: usize) -> Option<i64> {
        match self.at(at) {
            Value::Date(day) => Some(time::of_day(day)),
            value => self.row.local(instant_of(&value, self.row)?),
        }
    }

    fn start_of(&self, unit: TimeUnit) -> Option<Value<'a>> {
        self.row.start_of(unit, self.time()?).map(Value::Timestamp)
    }

    /// The number of units that begin after the second argument and until the third one.
    fn difference(&self) -> Option<Value<'a>> {
        let unit = TimeUnit::of(&self.text(0)?)?;
        let number = |at: usize| {
            let mut micros = instant_of(&self.at(at), self.row)?;
            let mut local = self.local(at)?;
            if unit == TimeUnit::Week {
                micros = self.row.start_of(unit, micros)?;
                local = self.row.local(micros)?;
            }
            time::number_of(unit, micros, local)
        };
        number(2)?.checked_sub(number(1)?).map(Value::Integer)
    }

    fn regular_expression(&self, function: Function) -> Option<Value<'a>> {
        let Some(Expression::Literal(Literal::RegularExpression(expression))) =
            self.arguments.get(1)
        else {
            return None;
        };
        let text = self.text(0)?;
        self.row.work_limit().charge(expression.work(&text));
        if self.row.work_limit().is_used_up() {
            return None;
        }
        if function == Function::Match {
            return Some(Value::Boolean(expression.matches(&text)));
        }
        let range = expression.first(&text).unwrap_or(0..0);
        Some(text::cut(text, range))
    }

    /// The smallest or largest argument; null if one is null or they cannot be compared.
    fn extreme(&self, wanted: Ordering) -> Option<Value<'a>> {
        let mut found = self.at(0);
        for at in 1..self.arguments.len() {
            let value = self.at(at);
            if compare(&value, &found, self.row)? == wanted {
                found = value;
            }
        }
        (!found.is_null()).then_some(found)
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
