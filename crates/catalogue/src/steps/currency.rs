//! Converts amounts into one currency.

use std::collections::HashMap;

use serde_json::Value;
use weir_json::quoted;

use crate::config::{Config, ConfigError, shown};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, Object, StepEvent};

const RATES: &str = "rates";
/// Maximum rates of a config.
const RATES_MAX: usize = 500;

pub(crate) const ENTRY: Entry = Entry {
    id: "currency",
    name: "Currency",
    description: "Converts amounts into one currency, with rates that you enter.",
    icon: Some("plus"),
    direction: Direction::In,
    items: &[
        Item::text("currency", "Currency", "Into which amounts are converted, as in EUR.").required(),
        Item::text("amountProperty", "Property of the amount", "A name or a dotted path.")
            .or("amount")
            .required(),
        Item::text("currencyProperty", "Property of the currency", "A name or a dotted path.")
            .or("currency")
            .required(),
        Item::json(
            RATES,
            "Rates",
            "An object: what one unit of a currency is worth in the one above, as in {\"USD\": 0.92}.",
        )
        .required(),
        Item::text("resultProperty", "Property of the result", "Where the converted amount goes.")
            .or("converted_amount")
            .required(),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let target = config.needed("currency")?.to_uppercase();
    if !is_currency(&target) {
        return Err(ConfigError::new("currency", "This must be three letters, as in EUR."));
    }
    let wrong = |text: &str| ConfigError::new(RATES, text);
    let Some(Value::Object(sent)) = config.json(RATES)? else {
        return Err(wrong("This must be an object with a number by currency."));
    };
    if sent.len() > RATES_MAX {
        return Err(wrong("These are too many rates."));
    }
    let mut rates = HashMap::new();
    for (currency, rate) in sent {
        let rate = rate.as_f64().or_else(|| rate.as_str()?.trim().parse().ok());
        let currency = currency.trim().to_uppercase();
        match rate {
            Some(rate) if is_currency(&currency) && rate.is_finite() && rate > 0.0 => {
                rates.insert(currency, rate);
            }
            _ => {
                return Err(wrong(&format!(
                    "{} must be three letters with a number above 0.",
                    shown(&currency)
                )));
            }
        }
    }
    if rates.is_empty() {
        return Err(wrong("There must be at least one rate."));
    }
    rates.insert(target.clone(), 1.0);
    Ok(Box::new(Convert {
        target,
        amount: config.needed("amountProperty")?,
        currency: config.needed("currencyProperty")?,
        result: config.needed("resultProperty")?,
        rates,
    }))
}

fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

struct Convert {
    target: String,
    amount: String,
    currency: String,
    result: String,
    rates: HashMap<String, f64>,
}

impl Step for Convert {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let properties = event.properties_mut();
        if let Some(converted) = self.converted(properties) {
            properties.set_raw(&self.result, converted.to_string());
            properties.set_raw(&format!("{}_currency", self.result), quoted(&self.target));
        }
        Flow::Keep
    }
}

impl Convert {
    /// Rounded to hundredths.
    fn converted(&self, properties: &mut Object<'_>) -> Option<f64> {
        let (holder, key) = properties.at(&self.currency)?;
        let currency = holder.text(key)?.trim().to_uppercase();
        let rate = self.rates.get(&currency)?;
        let (holder, key) = properties.at(&self.amount)?;
        let amount = match holder.value(key)? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        let converted = (amount * rate * 100.0).round() / 100.0;
        converted.is_finite().then_some(converted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{after, assert_same, fault};

    fn config() -> Value {
        json!({"currency": "eur", "rates": {"USD": 0.92, "gbp": "1.17"}})
    }

    #[test]
    fn amounts_are_converted() {
        for (sent, expected) in [
            (
                r#"{"amount":10,"currency":"USD"}"#,
                r#"{"amount":10,"currency":"USD","converted_amount":9.2,"converted_amount_currency":"EUR"}"#,
            ),
            (
                r#"{"amount":"-1.555","currency":" gbp "}"#,
                r#"{"amount":"-1.555","currency":" gbp ","converted_amount":-1.82,"converted_amount_currency":"EUR"}"#,
            ),
            (
                r#"{"amount":12.5,"currency":"EUR","n":12345678901234567890}"#,
                r#"{"amount":12.5,"currency":"EUR","n":12345678901234567890,"converted_amount":12.5,"converted_amount_currency":"EUR"}"#,
            ),
        ] {
            assert_eq!(after("currency", &config(), sent).unwrap(), expected);
        }
        let nested = json!({
            "currency": "EUR", "rates": "{\"USD\": 2}", "amountProperty": "order.sum",
            "currencyProperty": "order.unit", "resultProperty": "sum",
        });
        assert_eq!(
            after("currency", &nested, r#"{"order":{"sum":3,"unit":"USD"}}"#).unwrap(),
            r#"{"order":{"sum":3,"unit":"USD"},"sum":6,"sum_currency":"EUR"}"#
        );
    }

    #[test]
    fn what_cannot_be_converted_stays() {
        assert_same(
            "currency",
            &config(),
            &[
                "{}",
                r#"{"amount": 1}"#,
                r#"{"currency": "USD"}"#,
                r#"{"amount": null, "currency": "USD"}"#,
                r#"{"amount": [1], "currency": "USD"}"#,
                r#"{"amount": "1,5", "currency": "USD"}"#,
                r#"{"amount": "inf", "currency": "USD"}"#,
                r#"{"amount": 1, "currency": "JPY"}"#,
                r#"{"amount": 1, "currency": {"USD": 1}}"#,
                r#"{"amount": 1, "currency": "ü"}"#,
            ],
        );
    }

    #[test]
    fn faults() {
        assert_eq!(fault("currency", &json!({"rates": {"USD": 1}})).0, "currency");
        assert_eq!(
            fault("currency", &json!({"currency": "euro", "rates": {"USD": 1}})).0,
            "currency"
        );
        for rates in [
            json!(null),
            json!({}),
            json!([]),
            json!("x"),
            json!({"USD": 0}),
            json!({"USD": "x"}),
            json!({"USD": "inf"}),
            json!({"dollar": 1}),
        ] {
            let config = json!({"currency": "EUR", "rates": rates});
            assert_eq!(fault("currency", &config).0, "rates", "{rates}");
        }
    }
}
