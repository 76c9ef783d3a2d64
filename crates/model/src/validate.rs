//! Checks of single values, with codes and texts of API-7. Forms and the API use the same
//! rules.

use crate::errors::FieldError;

/// Most characters of a question in SQL.
pub const SQL_MAX: usize = 20_000;

/// Validates a required text of 1 to `max` characters; removes blanks around it.
///
/// # Errors
/// `blank`, `max_length` or `null_characters_not_allowed` at `attr`.
pub fn text(attr: &str, value: &str, max: usize) -> Result<String, FieldError> {
    let trimmed = optional_text(attr, value, max)?;
    if trimmed.is_empty() {
        return Err(FieldError::new(attr, "blank", "This field may not be blank."));
    }
    Ok(trimmed)
}

/// Validates a text of at most `max` characters that may be empty.
///
/// # Errors
/// `max_length` or `null_characters_not_allowed` at `attr`.
pub fn optional_text(attr: &str, value: &str, max: usize) -> Result<String, FieldError> {
    text_as_sent(attr, value.trim(), max)
}

/// Validates a text of at most `max` characters that may be empty; keeps blanks around it.
///
/// # Errors
/// `max_length` or `null_characters_not_allowed` at `attr`.
pub fn text_as_sent(attr: &str, value: &str, max: usize) -> Result<String, FieldError> {
    if value.contains('\0') {
        return Err(FieldError::new(
            attr,
            "null_characters_not_allowed",
            "Null characters are not allowed.",
        ));
    }
    if value.chars().count() > max {
        return Err(FieldError::new(
            attr,
            "max_length",
            format!("Ensure this field has no more than {max} characters."),
        ));
    }
    Ok(value.to_owned())
}

/// Validates a list of at most `most` texts of 1 to `max` characters each.
///
/// # Errors
/// `max_length` at `attr`, or the fault of an item, at `attr__index`.
pub fn texts(
    attr: &str,
    items: &[String],
    most: usize,
    max: usize,
) -> Result<Vec<String>, FieldError> {
    list_length(attr, items.len(), most)?;
    let items = items.iter().enumerate();
    items.map(|(at, item)| text(&format!("{attr}__{at}"), item, max)).collect()
}

/// Checks the length of a list.
///
/// # Errors
/// `max_length` at `attr`.
pub fn list_length(attr: &str, length: usize, most: usize) -> Result<(), FieldError> {
    if length > most {
        let detail = format!("Ensure this field has no more than {most} elements.");
        return Err(FieldError::new(attr, "max_length", detail));
    }
    Ok(())
}

/// Checks that a number is within bounds (inclusive).
///
/// # Errors
/// `max_value` or `min_value` at `attr`.
pub fn within(attr: &str, number: i64, least: i64, most: i64) -> Result<(), FieldError> {
    if number > most {
        let detail = format!("Ensure this value is less than or equal to {most}.");
        return Err(FieldError::new(attr, "max_value", detail));
    }
    if number < least {
        let detail = format!("Ensure this value is greater than or equal to {least}.");
        return Err(FieldError::new(attr, "min_value", detail));
    }
    Ok(())
}

/// The fault of a value that is not among the choices.
pub fn invalid_choice(attr: &str, value: &dyn std::fmt::Display) -> FieldError {
    FieldError::new(attr, "invalid_choice", format!("\"{value}\" is not a valid choice."))
}

/// Validates an e-mail address: one `@`, a local part of ASCII atoms, a domain with a
/// dot. The domain becomes lower case; the local part is kept.
///
/// # Errors
/// `blank`, `max_length` or `invalid_input` at `attr`.
pub fn email(attr: &str, value: &str) -> Result<String, FieldError> {
    let value = text(attr, value, 254)?;
    let wrong = || FieldError::new(attr, "invalid_input", "Enter a valid email address.");
    let (local, domain) = value.rsplit_once('@').ok_or_else(wrong)?;
    let local_ok = !local.is_empty()
        && local.len() <= 64
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
        && local.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c));
    let label_ok = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let last_ok = domain.rsplit('.').next().is_some_and(|l| l.len() >= 2);
    if !local_ok || !domain.contains('.') || !last_ok || !domain.split('.').all(label_ok) {
        return Err(wrong());
    }
    Ok(format!("{local}@{}", domain.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::{email, text};

    #[test]
    fn texts() {
        assert_eq!(text("name", "  Acme ", 64), Ok("Acme".to_owned()));
        let code = |value: &str| text("name", value, 4).err().map(|e| e.code);
        assert_eq!(code("   ").as_deref(), Some("blank"));
        assert_eq!(code("abcde").as_deref(), Some("max_length"));
        assert_eq!(code("äöüß"), None);
        assert_eq!(code("a\0").as_deref(), Some("null_characters_not_allowed"));
    }

    #[test]
    fn lists() {
        let list = |items: &[&str]| {
            let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
            super::texts("urls", &items, 2, 3).map_err(|error| (error.attr.unwrap(), error.code))
        };
        assert_eq!(list(&[" a ", "b"]), Ok(vec!["a".to_owned(), "b".to_owned()]));
        let fault = |attr: &str, code: &str| Err((attr.to_owned(), code.to_owned()));
        assert_eq!(list(&["a", " "]), fault("urls__1", "blank"));
        assert_eq!(list(&["abcd"]), fault("urls__0", "max_length"));
        assert_eq!(list(&["", "", ""]), fault("urls", "max_length"));
    }

    #[test]
    fn emails() {
        assert_eq!(email("email", "Ada.L@Mail.Example"), Ok("Ada.L@mail.example".to_owned()));
        for bad in [
            "a",
            "@b.co",
            "a@b",
            "a b@c.de",
            "a@b..de",
            "a@b.de,c@d.ef",
            "a@b.de\r\nBcc: x@y.zz",
            ".a@b.de",
        ] {
            assert!(email("email", bad).is_err(), "{bad}");
        }
    }
}
