//! From an error of the engine to an error for the author.

use rquickjs::{Ctx, Error, Object, Value};

use super::clock::Clock;
use super::text::{Text, cut};
use crate::error::{ErrorKind, ScriptError};

/// Maximum length of a message, and of a stack.
const LONGEST: usize = 2_000;

/// Why a function of a script has no result.
#[derive(Debug)]
pub(super) enum ScriptFailure {
    /// An error of the script.
    Script(Box<ScriptError>),
    /// The parent process has ended.
    Gone(std::io::Error),
}

impl ScriptFailure {
    pub(super) fn plain(kind: ErrorKind, message: &str) -> Self {
        Self::Script(Box::new(ScriptError::plain(kind, message)))
    }

    /// The error of the script; the end of the parent process is passed on as `Err`.
    pub(super) fn script(self) -> std::io::Result<ScriptError> {
        match self {
            Self::Script(error) => Ok(*error),
            Self::Gone(error) => Err(error),
        }
    }
}

impl From<std::io::Error> for ScriptFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Gone(error)
    }
}

/// The error of a failed call into the engine. `file` is the name of the script.
pub(super) fn trouble(ctx: &Ctx<'_>, clock: &Clock, file: &str, error: &Error) -> ScriptFailure {
    let thrown = ctx.catch();
    if clock.met() {
        return timed_out(ctx, clock, file, &thrown);
    }
    if !error.is_exception() && thrown.is_null() {
        let message = match error {
            Error::Unknown | Error::Allocation => {
                return ScriptFailure::plain(
                    ErrorKind::OutOfMemory,
                    "the script uses too much memory",
                );
            }
            other => other.to_string(),
        };
        return ScriptFailure::plain(ErrorKind::Threw, &cut(message, LONGEST));
    }
    ScriptFailure::Script(Box::new(describe(clock, file, &thrown)))
}

fn timed_out(ctx: &Ctx<'_>, clock: &Clock, file: &str, thrown: &Value<'_>) -> ScriptFailure {
    let mut error = describe(clock, file, thrown);
    error.kind = ErrorKind::TimedOut;
    error.name = "TimeoutError".to_owned();
    error.message = "the script runs longer than it may".to_owned();
    ctx.catch();
    ScriptFailure::Script(Box::new(error))
}

/// Reads a thrown value. Its properties may run code of the script.
pub(super) fn describe(clock: &Clock, file: &str, thrown: &Value<'_>) -> ScriptError {
    clock.last_words(|| {
        let Some(object) = thrown.as_object() else {
            return primitive(thrown);
        };
        let name = property(object, "name").unwrap_or_else(|| "Error".to_owned());
        let message = property(object, "message")
            .unwrap_or_else(|| "something was thrown that is no error".to_owned());
        let stack = property(object, "stack").filter(|stack| !stack.trim().is_empty());
        let place = stack.as_deref().and_then(|stack| place(stack, file));
        let kind = kind(&name, &message);
        let mut error = ScriptError::plain(kind, message);
        error.retry = name == "RetryError";
        error.name = cut(name, 100);
        if let Some((line, column)) = place {
            error.file = Some(file.to_owned());
            error.line = Some(line);
            error.column = Some(column);
        }
        error.stack = stack.map(|stack| cut(stack.trim_end().to_owned(), LONGEST));
        error.message = cut(error.message, LONGEST);
        error
    })
}

fn primitive(thrown: &Value<'_>) -> ScriptError {
    // The engine throws null if it has no memory left for an error.
    if thrown.is_null() {
        return ScriptError::plain(ErrorKind::OutOfMemory, "the script uses too much memory");
    }
    let text = match thrown.get::<Text>() {
        Ok(text) => text.0,
        Err(_) if thrown.is_number() => thrown.as_number().unwrap_or_default().to_string(),
        Err(_) => format!("a value of type {} was thrown", thrown.type_name()),
    };
    ScriptError::plain(ErrorKind::Threw, cut(text, LONGEST))
}

fn property(object: &Object<'_>, name: &str) -> Option<String> {
    let value = object.get::<_, Value<'_>>(name);
    let text = value.ok().filter(Value::is_string).and_then(|value| value.get::<Text>().ok());
    if text.is_none() {
        object.ctx().catch();
    }
    text.map(|text| text.0)
}

fn kind(name: &str, message: &str) -> ErrorKind {
    match (name, message) {
        ("InternalError", text) if text.starts_with("out of memory") => ErrorKind::OutOfMemory,
        ("RangeError", "Maximum call stack size exceeded") => ErrorKind::StackOverflow,
        ("InternalError", "stack overflow") => ErrorKind::StackOverflow,
        _ => ErrorKind::Threw,
    }
}

/// The first `file:line:column` of a stack.
fn place(stack: &str, file: &str) -> Option<(u32, u32)> {
    stack.match_indices(file).find_map(|(at, _)| {
        let mut numbers = stack[at + file.len()..].strip_prefix(':')?.splitn(2, ':');
        let line = numbers.next()?.parse().ok()?;
        let rest = numbers.next()?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some((line, rest[..digits].parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn the_first_place_in_the_script_counts() {
        let stack =
            "    at parse (native)\n    at f (index.ts:3:15)\n    at <eval> (index.ts:9:1)\n";
        assert_eq!(place(stack, "index.ts"), Some((3, 15)));
        assert_eq!(place("    at index.ts:1:2\n", "index.ts"), Some((1, 2)));
        assert_eq!(place("    at f (other.js:1:2)", "index.ts"), None);
    }
}
