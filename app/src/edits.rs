//! Concurrent edits of a form by several tabs or users. Each saves only the fields that
//! it changed.
//!
//! A form carries, in one hidden field, a fingerprint of every value that it was drawn
//! with ([`FormFingerprints`]). When the form is sent, three values of a field are compared: the
//! shown value, the sent value and the stored value ([`Edits`]). A field that the sender
//! did not change is not written. If another user changed a field of the sender in the
//! meantime, to a different value, that is a conflict: nothing is written, and the
//! message names the stored value.

use std::collections::BTreeMap;

#[cfg(any(feature = "ssr", test))]
use weir_model::Patch;

use crate::error::UiError;
use crate::local_path::encode;

/// Name of the hidden field.
pub(crate) const SEEN: &str = "seen";
/// Error code of a conflict.
pub(crate) const CHANGED_ELSEWHERE: &str = "changed_elsewhere";
/// Value that a ticked box is compared as.
pub(crate) const TICKED: &str = "on";
/// Longest stored value that a message shows, in characters.
const VALUE_SHOWN: usize = 100;
/// Limit of fields that a message names, because the message travels in an address.
const FIELDS_NAMED: usize = 5;

/// Fingerprints of the values that a form showed, by name of the field.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormFingerprints(BTreeMap<String, String>);

impl FormFingerprints {
    /// Parses the hidden field.
    pub(crate) fn read(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, print)| (name.to_owned(), print.to_owned())).collect())
    }

    /// The fingerprint of a field. `None`: the form did not show the field.
    pub(crate) fn print(&self, name: &str) -> Option<&str> {
        self.0.get(&encode(name)).map(String::as_str)
    }

    /// The value of the hidden field, for fields with these fingerprints.
    pub(crate) fn write(prints: &[(&str, String)]) -> String {
        let pairs: Vec<String> =
            prints.iter().map(|(name, print)| format!("{}={print}", encode(name))).collect();
        pairs.join("&")
    }
}

/// Fingerprint of a value (FNV-1a). A user who constructs two values with the same
/// fingerprint affects only their own form. Line ends and surrounding space are
/// normalized, because browsers change line ends.
pub(crate) fn fingerprint(value: &str) -> String {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let text = value.replace("\r\n", "\n");
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    format!("{:016x}", text.trim().bytes().fold(START, step))
}

/// Decides which fields of a form are written.
pub(crate) struct Edits {
    seen: FormFingerprints,
    conflicts: Vec<String>,
}

impl Edits {
    /// For a form with this value of the hidden field.
    pub(crate) fn of(seen: &str) -> Self {
        Self { seen: FormFingerprints::read(seen), conflicts: Vec::new() }
    }

    /// Whether the sender changed the field. If the form has no fingerprint of the field,
    /// every difference from the stored value counts as a change.
    pub(crate) fn is_own(&mut self, name: &str, label: &str, sent: &str, stored: &str) -> bool {
        let (mine, now) = (fingerprint(sent), fingerprint(stored));
        if mine == now {
            return false;
        }
        match self.seen.print(name) {
            Some(seen) if seen == mine => return false,
            Some(seen) if seen != now => self.conflicts.push(now_is(label, stored)),
            Some(_) | None => {}
        }
        true
    }

    /// The change of a text field.
    #[cfg(any(feature = "ssr", test))]
    pub(crate) fn text(
        &mut self,
        name: &str,
        label: &str,
        sent: &str,
        stored: &str,
    ) -> Patch<String> {
        match self.is_own(name, label, sent, stored) {
            true => Patch::Set(sent.to_owned()),
            false => Patch::Keep,
        }
    }

    /// The change of a box.
    #[cfg(any(feature = "ssr", test))]
    pub(crate) fn tick(
        &mut self,
        name: &str,
        label: &str,
        sent: bool,
        stored: bool,
    ) -> Patch<bool> {
        let word = |is_ticked: bool| if is_ticked { TICKED } else { "" };
        match self.is_own(name, label, word(sent), word(stored)) {
            true => Patch::Set(sent),
            false => Patch::Keep,
        }
    }

    /// Refuses the form if others changed the same fields.
    ///
    /// # Errors
    ///
    /// `changed_elsewhere` with the stored values.
    pub(crate) fn check(&self) -> Result<(), UiError> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        let more = self.conflicts.len().saturating_sub(FIELDS_NAMED);
        let mut now = self.conflicts.clone();
        now.truncate(FIELDS_NAMED);
        if more > 0 {
            now.push(format!("{more} more fields are different"));
        }
        Err(changed_elsewhere(&format!(
            "{}. What you entered is still in the form: save again to replace that.",
            now.join("; ")
        )))
    }
}

/// The refusal of a form that another user or tab saved in the meantime.
pub(crate) fn changed_elsewhere(now: &str) -> UiError {
    let detail = format!(
        "This was saved in another tab or by another user while you had the form open, so nothing was changed here. {now}"
    );
    UiError::form(CHANGED_ELSEWHERE, &detail)
}

fn now_is(label: &str, stored: &str) -> String {
    let stored = stored.trim();
    match stored {
        "" => format!("{label} is empty now"),
        TICKED => format!("{label} is switched on now"),
        long if long.contains('\n') || long.chars().count() > VALUE_SHOWN => {
            format!("{label} has another text now")
        }
        short => format!("{label} is now \u{201c}{short}\u{201d}"),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::Patch;

    use super::{CHANGED_ELSEWHERE, Edits, FormFingerprints, fingerprint};
    use crate::error::UiError;

    fn seen(values: &[(&str, &str)]) -> String {
        let prints: Vec<_> =
            values.iter().map(|(name, value)| (*name, fingerprint(value))).collect();
        FormFingerprints::write(&prints)
    }

    #[test]
    fn a_form_sends_its_original_values_back() {
        let text = seen(&[("name", "Mill race"), ("config[host]", "a=b&c")]);
        let read = FormFingerprints::read(&text);
        assert_eq!(read.print("name"), Some(fingerprint("Mill race").as_str()));
        assert_eq!(read.print("config[host]"), Some(fingerprint(" a=b&c\r\n").as_str()));
        assert_eq!(read.print("config"), None);
        assert_eq!(FormFingerprints::read("&=&x").print("x"), None);
        assert_ne!(fingerprint("a\r\nb"), fingerprint("ab"));
        assert_eq!(fingerprint("a\r\nb"), fingerprint("a\nb"));
    }

    #[test]
    fn an_unchanged_field_is_not_written() {
        // The other tab changed the zone. This one changes the name.
        let mut edits = Edits::of(&seen(&[("name", "Shop"), ("zone", "UTC"), ("ips", "")]));
        assert_eq!(edits.text("name", "Name", "Store", "Shop"), Patch::Set("Store".to_owned()));
        assert_eq!(edits.text("zone", "Zone", "UTC", "Europe/Berlin"), Patch::Keep);
        assert_eq!(edits.tick("ips", "Addresses", false, true), Patch::Keep);
        edits.check().unwrap();
    }

    #[test]
    fn two_changes_of_one_field_are_reported_unless_they_are_equal() {
        let mut edits = Edits::of(&seen(&[("name", "Shop"), ("ips", "on")]));
        assert_eq!(edits.text("name", "Name", "Store", "Store"), Patch::Keep);
        assert_eq!(edits.tick("ips", "Addresses", true, false), Patch::Keep);
        edits.check().unwrap();
        assert!(edits.is_own("name", "Name", "Store", "Mill"));
        let UiError::Field(fault) = edits.check().unwrap_err() else { panic!() };
        assert_eq!((fault.code.as_str(), fault.attr), (CHANGED_ELSEWHERE, None));
        assert!(fault.detail.contains("Name is now \u{201c}Mill\u{201d}."), "{}", fault.detail);
    }

    #[test]
    fn messages_have_a_bound() {
        let names: Vec<String> = (0..9).map(|at| format!("f{at}")).collect();
        let shown: Vec<_> = names.iter().map(|name| (name.as_str(), "a")).collect();
        let mut edits = Edits::of(&seen(&shown));
        for name in &names {
            assert!(edits.is_own(name, name, "mine", &"x".repeat(5_000)));
        }
        let text = edits.check().unwrap_err().sentence();
        assert!(text.len() < 500 && text.contains("4 more fields"), "{text}");
        let mut edits = Edits::of(&seen(&[("a", "1"), ("b", "")]));
        edits.is_own("a", "A", "2", "");
        edits.is_own("b", "B", "", "on");
        edits.is_own("a", "A", "2", "on");
        let text = edits.check().unwrap_err().sentence();
        assert!(text.contains("A is empty now; A is switched on now."), "{text}");
    }

    #[test]
    fn a_form_without_original_values_writes_the_differences() {
        let mut edits = Edits::of("");
        assert!(edits.is_own("name", "Name", "Store", "Shop"));
        assert!(!edits.is_own("name", "Name", "Shop", "Shop"));
        edits.check().unwrap();
    }
}
