//! Drops events of crawlers and other bots.

use std::net::IpAddr;

use ipnet::IpNet;
use regex::{Regex, RegexBuilder};

use crate::bots::TOKENS;
use crate::config::{Config, ConfigError, shown};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

const PATTERNS: &str = "customBotPatterns";
const NETWORKS: &str = "customIpPrefixes";

pub(crate) const ENTRY: Entry = Entry {
    id: "bot-filter",
    name: "Bot filter",
    description: "Drops events of known crawlers, monitors and scripts.",
    icon: Some("drop"),
    direction: Direction::Filtering,
    items: &[
        Item::text(
            "userAgent",
            "Property of the user agent",
            "The event property that has the user agent.",
        )
        .or("$raw_user_agent")
        .required(),
        Item::text(
            PATTERNS,
            "Further words",
            "Parts of user agents, separated by commas. Upper and lower case are the same.",
        ),
        Item::text(
            NETWORKS,
            "Networks",
            "Addresses and networks to drop, separated by commas, as in 203.0.113.0/24 \
             or 2001:db8::/32.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let own = config.list(PATTERNS)?;
    let words: Vec<String> =
        own.iter().map(String::as_str).chain(TOKENS.iter().copied()).map(regex::escape).collect();
    let words = RegexBuilder::new(&words.join("|"))
        .case_insensitive(true)
        .build()
        .map_err(|_| ConfigError::new(PATTERNS, "These are too many words."))?;
    let networks =
        config.list(NETWORKS)?.iter().map(|text| network(text)).collect::<Result<_, _>>()?;
    Ok(Box::new(BotFilter { property: config.needed("userAgent")?, words, networks }))
}

fn network(text: &str) -> Result<IpNet, ConfigError> {
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| {
        ConfigError::new(NETWORKS, format!("{} is neither address nor network.", shown(text)))
    })
}

struct BotFilter {
    property: String,
    words: Regex,
    networks: Vec<IpNet>,
}

impl Step for BotFilter {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        if self.is_network_of_bots(event) {
            return Flow::Drop;
        }
        let Some((holder, key)) = event.properties_mut().at(&self.property) else {
            // Servers send no user agent, so a missing one proves nothing.
            return Flow::Keep;
        };
        match holder.text(key) {
            Some(user_agent) if self.words.is_match(&user_agent) => Flow::Drop,
            _ => Flow::Keep,
        }
    }
}

impl BotFilter {
    fn is_network_of_bots(&self, event: &StepEvent<'_>) -> bool {
        if self.networks.is_empty() {
            return false;
        }
        let address = event.address().and_then(|text| text.trim().parse::<IpAddr>().ok());
        address.is_some_and(|address| {
            let address = address.to_canonical();
            self.networks.iter().any(|network| network.contains(&address))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{after, assert_same, fault};

    const CHROME: &str = r#"{"$raw_user_agent": "Mozilla/5.0 (Linux; Android 9; CUBOT_X18) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36"}"#;

    #[test]
    fn known_programs_are_dropped() {
        for user_agent in [
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/120.0.0.0",
            "GPTBOT",
            "curl/8.5.0",
            "ünknown-SPIDER",
        ] {
            let properties = json!({"$raw_user_agent": user_agent}).to_string();
            assert_eq!(after("bot-filter", &json!({}), &properties), None, "{user_agent}");
        }
    }

    #[test]
    fn people_and_servers_stay() {
        assert_same(
            "bot-filter",
            &json!({}),
            &[
                CHROME,
                "{}",
                r#"{"$raw_user_agent": null}"#,
                r#"{"$raw_user_agent": ""}"#,
                r#"{"$raw_user_agent": ["Googlebot"]}"#,
                r#"{"$raw_user_agent": "okhttp/4.12.0"}"#,
                r#"{"other": "Googlebot", "n": 12345678901234567890}"#,
            ],
        );
    }

    #[test]
    fn words_networks_and_the_property_can_be_set() {
        let config = json!({
            "userAgent": "http.agent", "customBotPatterns": "Tea.Pot, (x",
            "customIpPrefixes": "203.0.113.0/24, 2001:db8::/32,198.51.100.9",
        });
        for dropped in [
            r#"{"http": {"agent": "a tea.pot!"}}"#,
            r#"{"http.agent": "(X"}"#,
            r#"{"$ip": "203.0.113.99"}"#,
            r#"{"$ip": "::ffff:203.0.113.99"}"#,
            r#"{"$ip": "2001:db8:1::1"}"#,
            r#"{"$ip": "198.51.100.9"}"#,
        ] {
            assert_eq!(after("bot-filter", &config, dropped), None, "{dropped}");
        }
        assert_same(
            "bot-filter",
            &config,
            &[
                r#"{"http": {"agent": "a teaXpot!"}}"#,
                r#"{"$ip": "198.51.100.8"}"#,
                r#"{"$ip": "203.0.113"}"#,
                r#"{"$raw_user_agent": "Googlebot"}"#,
            ],
        );
    }

    #[test]
    fn faults() {
        assert_eq!(
            fault("bot-filter", &json!({"customIpPrefixes": "1.2.3"})).0,
            "customIpPrefixes"
        );
        assert_eq!(fault("bot-filter", &json!({"customBotPatterns": 7})).0, "customBotPatterns");
        assert_eq!(fault("bot-filter", &json!({"userAgent": ""})).0, "userAgent");
    }
}
