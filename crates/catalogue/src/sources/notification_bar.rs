//! A notification bar on the pages of visitors.

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Source, SourceFile};

pub(crate) const ENTRY: Entry = Entry {
    id: "notification-bar",
    name: "Notification bar",
    description: "Shows a bar with a text and a link on your pages.",
    icon: Some("info"),
    direction: Direction::Frontend,
    items: &[
        Item::text("text", "Text", "What the bar says.").required(),
        Item::text("link", "Link", "An address with https://, or a path that begins with /."),
        Item::text("linkText", "Text of the link", "What the link says."),
        Item::choice("position", "Position", &["top", "bottom"], "top", "Where the bar is."),
        Item::text("backgroundColour", "Background", "A colour, as in #1d3557.").or("#1d3557"),
        Item::text("textColour", "Colour of the text", "A colour, as in #ffffff.").or("#ffffff"),
        Item::yes_no(
            "closable",
            "Can be closed",
            "Yes",
            "A visitor who closes it does not see it again.",
        ),
        Item::text("label", "Name for screen readers", "What the bar is called.")
            .or("Notification"),
        Item::text("closeLabel", "Name of the button", "What closing is called.").or("Close"),
    ],
    code: Code::Source(Source {
        files: &[SourceFile {
            name: "site.ts",
            text: include_str!("../../sources/notification-bar/site.ts"),
        }],
        methods: &[],
        check,
    }),
};

fn check(config: &Config<'_>) -> Result<(), ConfigError> {
    config.needed("text")?;
    if let Some(link) = config.text("link")? {
        let begins = |start: &str| {
            link.get(..start.len()).is_some_and(|part| part.eq_ignore_ascii_case(start))
        };
        let is_path = link.starts_with('#') || (link.starts_with('/') && !link.starts_with("//"));
        if !is_path && !begins("https://") && !begins("http://") {
            return Err(ConfigError::new(
                "link",
                "This must begin with https://, http://, / or #.",
            ));
        }
    }
    for key in ["backgroundColour", "textColour"] {
        if config.text(key)?.is_some_and(|text| !is_colour(&text)) {
            return Err(ConfigError::new(key, "This must be a colour, as in #1d3557."));
        }
    }
    if !["top", "bottom"].contains(&config.needed("position")?.as_str()) {
        return Err(ConfigError::new("position", "This must be \"top\" or \"bottom\"."));
    }
    config.yes("closable").map(drop)
}

/// Whether it is `#` and 3 to 8 hexadecimal digits, or a name.
fn is_colour(text: &str) -> bool {
    match text.strip_prefix('#') {
        Some(digits) => {
            (3..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        None => {
            (3..=30).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphabetic())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::sources::engine::Running;
    use crate::testing::fault;

    /// The body of a page with the bar, and the captured events.
    fn shown(config: &Value, clicks: &[&str]) -> Value {
        Running::new("notification-bar", config).show(clicks)
    }

    #[test]
    fn the_bar_says_what_it_should() {
        let config = json!({
            "text": "<b>Hällo</b>", "link": "/news", "linkText": "<i>More</i>", "backgroundColour": "#000",
        });
        let page = shown(&config, &[]);
        let bar = &page["body"][0];
        assert_eq!(bar["attributes"], json!({"role": "region", "aria-label": "Notification"}));
        assert_eq!(bar["style"]["background"], "#000");
        assert_eq!(bar["children"][0]["text"], "<b>Hällo</b>");
        assert_eq!(bar["children"][1]["attributes"], json!({"href": "/news"}));
        assert_eq!(bar["children"][1]["text"], "<i>More</i>");
        assert_eq!(
            bar["children"][2]["attributes"],
            json!({"type": "button", "aria-label": "Close"})
        );
        // Before the content of the page.
        assert_eq!(page["body"][1]["tag"], "main");
    }

    #[test]
    fn clicks_are_captured_and_closing_lasts() {
        let config = json!({"text": "Hällo", "link": "https://e.org", "position": "bottom"});
        let page = shown(&config, &["a", "button"]);
        assert_eq!(
            page["captured"],
            json!(["notification bar clicked", "notification bar closed"])
        );
        assert_eq!(page["body"].as_array().unwrap().len(), 1);
        assert_eq!(page["again"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn odd_configs_do_no_harm() {
        let page = shown(
            &json!({"text": "x", "link": "javascript:alert(1)", "textColour": "red;position:fixed", "closable": "No"}),
            &[],
        );
        let bar = &page["body"][0];
        assert_eq!(bar["children"].as_array().unwrap().len(), 1);
        assert_eq!(bar["style"]["color"], "#ffffff");
        for text in [json!(null), json!(""), json!(7), json!(["x"])] {
            assert_eq!(shown(&json!({"text": text}), &[])["body"].as_array().unwrap().len(), 1);
        }
    }

    #[test]
    fn faults() {
        assert_eq!(fault("notification-bar", &json!({})).0, "text");
        for link in ["javascript:alert(1)", "//e.org", "data:,x", "e.org", "ü"] {
            assert_eq!(fault("notification-bar", &json!({"text": "x", "link": link})).0, "link");
        }
        for colour in ["url(x)", "#12", "#1234567g", "r;"] {
            let config = json!({"text": "x", "textColour": colour});
            assert_eq!(fault("notification-bar", &config).0, "textColour");
        }
        assert_eq!(
            fault("notification-bar", &json!({"text": "x", "position": "left"})).0,
            "position"
        );
    }
}
