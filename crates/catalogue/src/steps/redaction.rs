//! Replaces values, or mail addresses and card numbers within them.

use regex::Regex;

use super::with_person;
use crate::config::{Config, ConfigError, pattern};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

/// Only characters that cannot be part of an address in texts and URLs end it, so letters
/// of all scripts are accepted.
const EMAIL: &str = r#"[^\s@%<>"'(),:;&=?/\\]+(?:@|%40)[^\s@%<>"'(),:;&=?/\\!.]+(?:\.[^\s@%<>"'(),:;&=?/\\!.]+)*\.[^\s@%<>"'(),:;&=?/\\!.]{2,}"#;
/// 13 to 19 digits in groups, with the first digit of an issuer. The check sum decides
/// which of them are card numbers.
const CARD: &str = r"\b[2-6](?:[ -]?\d){12,18}\b";

pub(crate) const ENTRY: Entry = Entry {
    id: "redaction",
    name: "Redaction",
    description: "Replaces chosen properties, and e-mail addresses and card numbers in any text.",
    icon: Some("alter"),
    direction: Direction::Filtering,
    items: &[
        Item::text("fields", "Properties", "Names or dotted paths whose values are replaced."),
        Item::yes_no("emails", "E-mail addresses", "Yes", "Replace them in all texts."),
        Item::yes_no("cards", "Card numbers", "Yes", "Replace them in all texts."),
        Item::text("pattern", "Pattern", "A regular expression for more text to replace."),
        Item::text("mask", "Replace with", "The text that replaces them.").or("[REDACTED]"),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let own = config.text("pattern")?.map(|text| pattern("pattern", &text)).transpose()?;
    if own.as_ref().is_some_and(|own| own.is_match("")) {
        return Err(ConfigError::new("pattern", "This pattern finds something in every text."));
    }
    let step = Redaction {
        fields: config.list("fields")?,
        emails: config.yes("emails")?.then(|| pattern("emails", EMAIL)).transpose()?,
        cards: config.yes("cards")?.then(|| pattern("cards", CARD)).transpose()?,
        own,
        mask: config.text("mask")?.unwrap_or_default(),
    };
    if step.fields.is_empty() && !step.looks_into_texts() {
        return Err(ConfigError::new("fields", "There must be something to replace."));
    }
    Ok(Box::new(step))
}

struct Redaction {
    fields: Vec<String>,
    emails: Option<Regex>,
    cards: Option<Regex>,
    own: Option<Regex>,
    mask: String,
}

impl Step for Redaction {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let properties = event.properties_mut();
        with_person(properties, |object| {
            for field in &self.fields {
                if let Some((holder, key)) = object.at(field)
                    && holder.raw(key).is_some_and(|json| json != "null")
                {
                    holder.set_text(key, &self.mask);
                }
            }
        });
        if self.looks_into_texts() {
            properties.change_all_texts(|text| self.masked(text));
        }
        Flow::Keep
    }
}

impl Redaction {
    fn looks_into_texts(&self) -> bool {
        self.emails.is_some() || self.cards.is_some() || self.own.is_some()
    }

    fn masked(&self, text: &str) -> Option<String> {
        let mut masked = None;
        // Most texts contain no address: searching for `@` first is much cheaper.
        let emails = self.emails.as_ref().filter(|_| text.contains('@') || text.contains("%40"));
        let patterns = [emails, self.own.as_ref()].into_iter().flatten();
        for pattern in patterns {
            let now = masked.as_deref().unwrap_or(text);
            let next = pattern.replace_all(now, regex::NoExpand(&self.mask));
            if next != now {
                masked = Some(next.into_owned());
            }
        }
        let Some(cards) = &self.cards else { return masked };
        let now = masked.as_deref().unwrap_or(text);
        let next = cards.replace_all(now, |found: &regex::Captures<'_>| {
            let number = found.get(0).map_or("", |number| number.as_str());
            if is_card(number) { self.mask.clone() } else { number.to_owned() }
        });
        if next == now { masked } else { Some(next.into_owned()) }
    }
}

/// Whether the check sum of the digits is that of a card number (Luhn).
fn is_card(number: &str) -> bool {
    let digits = number.chars().rev().filter_map(|c| c.to_digit(10));
    let sum: u32 = digits
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit) {
            (0, digit) => digit,
            (_, digit @ 0..=4) => digit * 2,
            (_, digit) => digit * 2 - 9,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{after, assert_same, fault};

    #[test]
    fn chosen_values_are_replaced() {
        let config = json!({"fields": "name,a.b", "emails": "No", "cards": "No", "mask": "x"});
        let sent = r#"{"name":"Änn","a":{"b":[1],"c":12345678901234567890},"$set":{"name":{"first":"A"}},"t":"a@example.org"}"#;
        assert_eq!(
            after("redaction", &config, sent).unwrap(),
            r#"{"name":"x","a":{"b":"x","c":12345678901234567890},"$set":{"name":"x"},"t":"a@example.org"}"#
        );
    }

    #[test]
    fn addresses_and_card_numbers_are_found_in_texts() {
        let config = json!({"pattern": "tok_[a-z]+"});
        let sent = r#"{"a":"Write to a.b+c@mail.example.org, or ännë@exämple.org!","u":"/x?m=a%40b.example.org&y=1","n":{"card":"4111 1111 1111 1111","k":[12345678901234567890,["tok_abc$1"]]}}"#;
        assert_eq!(
            after("redaction", &config, sent).unwrap(),
            r#"{"a":"Write to [REDACTED], or [REDACTED]!","u":"/x?m=[REDACTED]&y=1","n":{"card":"[REDACTED]","k":[12345678901234567890,["[REDACTED]$1"]]}}"#
        );
    }

    #[test]
    fn what_only_looks_like_it_stays() {
        assert_same(
            "redaction",
            &json!({"fields": "a.b.c,missing"}),
            &[
                "{}",
                r#"{"missing": null, "a": {"b": 1}}"#,
                r#"{"order": "4111 1111 1111 1112", "n": 4111111111111111}"#,
                r#"{"t": "@ and a@b and user@localhost", "time": "1700000000000"}"#,
                r#"{"list": [{"a@example.org": "\"@"}], "u": "\u00e4"}"#,
            ],
        );
    }

    #[test]
    fn faults() {
        let nothing = json!({"emails": "No", "cards": "No"});
        assert_eq!(fault("redaction", &nothing).0, "fields");
        assert_eq!(fault("redaction", &json!({"pattern": "("})).0, "pattern");
        assert_eq!(fault("redaction", &json!({"pattern": "a*"})).0, "pattern");
    }
}
