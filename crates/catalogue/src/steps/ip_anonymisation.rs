//! Truncates IP addresses to their network.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::with_person;
use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

pub(crate) const ENTRY: Entry = Entry {
    id: "ip-anonymisation",
    name: "IP anonymisation",
    description: "Sets the last part of IPv4 addresses to 0, and cuts IPv6 addresses to /48.",
    icon: Some("alter"),
    direction: Direction::Filtering,
    items: &[],
    code: Code::Native(Native(make)),
};

fn make(_: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    Ok(Box::new(IpAnonymisation))
}

struct IpAnonymisation;

impl Step for IpAnonymisation {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        if let Some(ip) = event.ip() {
            let network = network_of(ip);
            event.set_ip(network);
        }
        with_person(event.properties_mut(), |object| {
            let Some(sent) = object.text("$ip").map(Cow::into_owned) else { return };
            match network_of(&sent) {
                Some(network) => object.set_text("$ip", &network),
                // An unreadable address cannot be truncated.
                None => {
                    object.remove("$ip");
                }
            }
        });
        Flow::Keep
    }
}

fn network_of(text: &str) -> Option<String> {
    let text = text.trim();
    let address = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.ip()))
        .ok()?;
    let cut = |address: Ipv4Addr| {
        let [a, b, c, _] = address.octets();
        Ipv4Addr::new(a, b, c, 0)
    };
    Some(match address {
        IpAddr::V4(address) => cut(address).to_string(),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(inner) => cut(inner).to_ipv6_mapped().to_string(),
            None => {
                let [a, b, c, ..] = address.segments();
                Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).to_string()
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_model::time::Timestamp;

    use crate::event::StepEvent;
    use crate::testing::{after, assert_same, step};

    #[test]
    fn addresses_are_cut() {
        for (ip, expected) in [
            ("203.0.113.99", r#"{"$ip":"203.0.113.0"}"#),
            ("2001:db8:1:2:3:4:5:6", r#"{"$ip":"2001:db8:1::"}"#),
            ("::ffff:203.0.113.99", r#"{"$ip":"::ffff:203.0.113.0"}"#),
            ("203.0.113.99:443", r#"{"$ip":"203.0.113.0"}"#),
            ("[2001:db8:1::9]:443", r#"{"$ip":"2001:db8:1::"}"#),
            ("203.0.113.99, 10.0.0.1", "{}"),
            ("", "{}"),
        ] {
            let sent = format!(r#"{{"$ip":"{ip}"}}"#);
            assert_eq!(after("ip-anonymisation", &json!({}), &sent).unwrap(), expected);
        }
    }

    #[test]
    fn beside_the_properties_and_at_persons_too() {
        let step = step("ip-anonymisation", &json!({})).unwrap();
        let properties = r#"{"$set":{"$ip":"203.0.113.99"},"n":12345678901234567890}"#;
        let when = Timestamp::EPOCH;
        let mut event = StepEvent::new("e", "d", Some("203.0.113.98"), when, properties).unwrap();
        let _ = step.apply(&mut event);
        assert_eq!(event.ip(), Some("203.0.113.0"));
        assert_eq!(
            event.properties_text(),
            r#"{"$set":{"$ip":"203.0.113.0"},"n":12345678901234567890}"#
        );
    }

    #[test]
    fn other_values_stay() {
        assert_same(
            "ip-anonymisation",
            &json!({}),
            &[
                "{}",
                r#"{"$ip": null}"#,
                r#"{"$ip": 7, "ip": "203.0.113.99"}"#,
                r#"{"$ip": "203.0.113.0"}"#,
            ],
        );
    }
}
