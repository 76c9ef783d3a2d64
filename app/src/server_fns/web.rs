//! The numbers of a site, for its page.
//!
//! What belongs here: what the address of the page can say, the questions for it, and what the
//! page shows of their answers. What does not: what visitors, views and sessions are
//! (`weir-questions`).

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
#[cfg(feature = "ssr")]
use weir_questions::results::{WebOverviewItem, WebTrendsItem};
#[cfg(feature = "ssr")]
use weir_service::{ProjectCtx, Services};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;
#[cfg(feature = "ssr")]
use crate::server_fns::asking::{ask, read};

/// The name of the range in the address.
pub(crate) const RANGE: &str = "range";
/// The ranges: the date of their beginning, and label.
pub(crate) const RANGES: [(&str, &str); 5] = [
    ("dStart", "Today"),
    ("-7d", "7 days"),
    ("-30d", "30 days"),
    ("-90d", "90 days"),
    ("mStart", "This month"),
];
/// The range without one in the address.
pub(crate) const USUAL_RANGE: &str = "-7d";
/// The range whose chart has hours.
const TODAY: &str = "dStart";
/// Rows of a table.
const ROWS: u32 = 10;
/// The labels of the numbers on top, in the order of answers.
pub(crate) const NUMBERS: [&str; 5] =
    ["Visitors", "Views", "Sessions", "Session duration", "Bounce rate"];

/// A table: one row for each value.
pub(crate) struct WebTable {
    /// Its word in the address, which is also that of the filter for its values.
    pub(crate) word: &'static str,
    /// The label of its tab.
    pub(crate) tab: &'static str,
    /// The heading of the column with the values, and the label of the filter.
    pub(crate) label: &'static str,
    /// What questions call it.
    pub(crate) breakdown: &'static str,
    /// The property that the filter is about, and whose it is.
    property: &'static str,
    owner: &'static str,
}

/// Tables of which a card shows one.
pub(crate) struct WebCard {
    /// The name of the choice in the address, and the id of the card.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) tables: &'static [WebTable],
}

const fn of_views(
    word: &'static str,
    tab: &'static str,
    label: &'static str,
    breakdown: &'static str,
    property: &'static str,
) -> WebTable {
    WebTable { word, tab, label, breakdown, property, owner: "event" }
}

const fn of_sessions(
    word: &'static str,
    tab: &'static str,
    label: &'static str,
    breakdown: &'static str,
    property: &'static str,
) -> WebTable {
    WebTable { word, tab, label, breakdown, property, owner: "session" }
}

/// The cards of the page.
pub(crate) static CARDS: [WebCard; 4] = [
    WebCard {
        name: "pages",
        title: "Pages",
        tables: &[
            of_views("page", "All pages", "Page", "Page", "$pathname"),
            of_sessions("entry", "Entry", "Entry page", "InitialPage", "$entry_pathname"),
            of_sessions("exit", "Exit", "Exit page", "ExitPage", "$end_pathname"),
        ],
    },
    WebCard {
        name: "sources",
        title: "Sources",
        tables: &[
            of_sessions(
                "referrer",
                "Referrers",
                "Referrer",
                "InitialReferringDomain",
                "$entry_referring_domain",
            ),
            of_sessions(
                "source",
                "UTM source",
                "UTM source",
                "InitialUTMSource",
                "$entry_utm_source",
            ),
            of_sessions(
                "medium",
                "UTM medium",
                "UTM medium",
                "InitialUTMMedium",
                "$entry_utm_medium",
            ),
            of_sessions(
                "campaign",
                "UTM campaign",
                "UTM campaign",
                "InitialUTMCampaign",
                "$entry_utm_campaign",
            ),
        ],
    },
    WebCard {
        name: "devices",
        title: "Devices",
        tables: &[
            of_views("device", "Devices", "Device", "DeviceType", "$device_type"),
            of_views("browser", "Browsers", "Browser", "Browser", "$browser"),
            of_views("os", "Systems", "System", "OS", "$os"),
        ],
    },
    WebCard {
        name: "countries",
        title: "Countries",
        tables: &[of_views("country", "Countries", "Country", "Country", "$geoip_country_code")],
    },
];

/// The tables of all cards, each of which has a filter.
pub(crate) fn tables() -> impl Iterator<Item = &'static WebTable> {
    CARDS.iter().flat_map(|card| card.tables)
}

/// What the address of the page says: names and values. Empty ones are missing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct WebSelection(BTreeMap<String, String>);

impl WebSelection {
    /// Reads all that the page knows.
    pub(crate) fn read(value: impl Fn(&str) -> String) -> Self {
        let cards = CARDS.iter().map(|card| card.name);
        let names = std::iter::once(RANGE).chain(cards).chain(tables().map(|table| table.word));
        let pairs = names.map(|name| (name.to_owned(), value(name)));
        Self(pairs.filter(|(_, value)| !value.is_empty()).collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The date of the beginning of the range.
    pub(crate) fn range(&self) -> &'static str {
        let wanted = self.get(RANGE);
        let known = RANGES.into_iter().find(|(date, _)| *date == wanted);
        known.map_or(USUAL_RANGE, |(date, _)| date)
    }

    /// Whether the chart has hours.
    pub(crate) fn has_hours(&self) -> bool {
        self.range() == TODAY
    }

    /// The table that a card shows.
    pub(crate) fn table(&self, card: &WebCard) -> &'static WebTable {
        let wanted = self.get(card.name);
        card.tables.iter().find(|table| table.word == wanted).unwrap_or(&card.tables[0])
    }

    /// The filters: the table of each, and the value.
    pub(crate) fn filters(&self) -> impl Iterator<Item = (&'static WebTable, &str)> {
        let filters = tables().map(move |table| (table, self.get(table.word)));
        filters.filter(|(_, value)| !value.is_empty())
    }

    /// The question for the numbers on top.
    pub(crate) fn overview(&self) -> Value {
        self.question(json!({ "kind": "WebOverviewQuery", "compareFilter": { "compare": true } }))
    }

    /// The question for the chart.
    #[cfg(feature = "ssr")]
    fn visitors_over_time(&self) -> Value {
        let interval = if self.has_hours() { "hour" } else { "day" };
        self.question(json!({ "kind": "WebTrendsQuery", "interval": interval,
            "metrics": ["UniqueUsers"] }))
    }

    /// The question for the table that a card shows.
    #[cfg(feature = "ssr")]
    fn rows(&self, card: &WebCard) -> Value {
        self.question(json!({ "kind": "WebStatsTableQuery",
            "breakdownBy": self.table(card).breakdown, "includeBounceRate": true, "limit": ROWS }))
    }

    /// A question with the range and the filters.
    fn question(&self, mut question: Value) -> Value {
        question["dateRange"] = json!({ "date_from": self.range() });
        let filter = |(table, value): (&WebTable, &str)| {
            json!({ "type": table.owner, "key": table.property, "operator": "exact",
                "value": value })
        };
        question["properties"] = self.filters().map(filter).collect();
        question
    }
}

/// The numbers of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WebView {
    /// Visitors, views, sessions, the average length of a session in seconds, and bounces in
    /// percent.
    pub(crate) numbers: Vec<WebNumber>,
    /// Persons with an event in the last five minutes.
    pub(crate) live: u64,
    /// Whether there may be more such persons.
    pub(crate) is_least: bool,
    /// The texts of the intervals, in the zone of the project, with the visitors of each.
    pub(crate) visitors: Vec<(String, u64)>,
    /// The tables of the cards.
    pub(crate) tables: Vec<WebRows>,
    /// When the numbers were computed.
    pub(crate) computed_at: String,
}

/// A number, and that of the period before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct WebNumber {
    pub(crate) value: Option<f64>,
    pub(crate) before: Option<f64>,
    /// The change in percent.
    pub(crate) change: Option<i64>,
}

/// The rows of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WebRows {
    pub(crate) rows: Vec<WebRow>,
    /// Whether there are more.
    pub(crate) has_more: bool,
}

/// The numbers of a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WebRow {
    /// The value. `None`: there is none.
    pub(crate) value: Option<String>,
    pub(crate) visitors: u64,
    pub(crate) views: u64,
    /// The share of bounces, from 0 to 1.
    pub(crate) bounce_rate: Option<f64>,
}

/// Returns the numbers of a site.
#[server(prefix = "/_fn", endpoint = "get_web")]
pub(crate) async fn get_web(
    project: i64,
    #[server(default)] selection: WebSelection,
) -> Result<WebView, UiError> {
    use futures::future::{try_join, try_join3};

    let (services, project) = enter_project(project).await?;
    let rows = |card: usize| rows(&services, &project, selection.rows(&CARDS[card]));
    let live = async { services.overview.active(&project).await.map_err(ui_error) };
    // A question has several threads of its own, so few are asked at the same time.
    let (numbers, visitors, live) = try_join3(
        ask::<Vec<WebOverviewItem>>(&services, &project, read(&selection.overview())?),
        ask::<Vec<WebTrendsItem>>(&services, &project, read(&selection.visitors_over_time())?),
        live,
    )
    .await?;
    let (pages, sources) = try_join(rows(0), rows(1)).await?;
    let (devices, countries) = try_join(rows(2), rows(3)).await?;
    let number = |item: WebOverviewItem| WebNumber {
        value: item.value.map(weir_questions::results::Amount::value),
        before: item.previous.map(weir_questions::results::Amount::value),
        change: item.change,
    };
    let of_interval = |item: WebTrendsItem| {
        let visitors = item.metrics.get("UniqueUsers").map_or(0.0, |amount| amount.value());
        (crate::days::interval(&item.bucket), visitors as u64)
    };
    Ok(WebView {
        numbers: numbers.results.into_iter().map(number).collect(),
        live: live.count,
        is_least: live.is_least,
        visitors: visitors.results.into_iter().map(of_interval).collect(),
        tables: vec![pages, sources, devices, countries],
        computed_at: numbers.computed_at,
    })
}

/// The rows of a table.
#[cfg(feature = "ssr")]
async fn rows(
    services: &Services,
    project: &ProjectCtx,
    question: Value,
) -> Result<WebRows, UiError> {
    let found = ask::<Vec<Vec<Value>>>(services, project, read(&question)?).await?;
    let row = |cells: Vec<Value>| {
        // A number, and that of the period before, which was not asked for.
        let number = |at: usize| cells.get(at).map(|pair| &pair[0]);
        WebRow {
            value: cells.first().and_then(Value::as_str).map(str::to_owned),
            visitors: number(1).and_then(Value::as_u64).unwrap_or_default(),
            views: number(2).and_then(Value::as_u64).unwrap_or_default(),
            bounce_rate: number(3).and_then(Value::as_f64),
        }
    };
    Ok(WebRows { rows: found.results.into_iter().map(row).collect(), has_more: found.has_more })
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use weir_questions::Query;

    use super::*;

    fn selection(pairs: &[(&str, &str)]) -> WebSelection {
        WebSelection::read(|name| {
            let value = pairs.iter().find(|(known, _)| *known == name);
            value.map_or_else(String::new, |(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_question_of_the_page_is_one() {
        let all: Vec<(&str, &str)> = tables().map(|table| (table.word, "a")).collect();
        for chosen in [selection(&[]), selection(&[(RANGE, TODAY)]), selection(&all)] {
            for question in [chosen.overview(), chosen.visitors_over_time()] {
                assert!(Query::read(&question).is_ok(), "{question}");
            }
            for card in &CARDS {
                for table in card.tables {
                    let shown = selection(&[(card.name, table.word)]);
                    assert_eq!(shown.table(card).word, table.word);
                    let question = shown.rows(card);
                    assert!(Query::read(&question).is_ok(), "{question}");
                }
            }
        }
    }

    #[test]
    fn the_filter_of_a_table_is_about_its_values() {
        use weir_questions::query::WebBreakdown;

        for table in tables() {
            let found = WebBreakdown::ALL.iter().find(|known| known.word() == table.breakdown);
            let breakdown = found.unwrap();
            let (owner, property) = match breakdown.session_property() {
                Some(property) => ("session", property.word()),
                None => ("event", breakdown.property()),
            };
            assert_eq!((table.owner, table.property), (owner, property), "{}", table.word);
        }
    }

    #[test]
    fn other_values_of_the_address_are_the_usual_ones() {
        let odd = selection(&[(RANGE, "-9y"), ("pages", "country"), ("nothing", "a")]);
        assert_eq!(odd.range(), USUAL_RANGE);
        assert_eq!(odd.table(&CARDS[0]).word, "page");
        assert_eq!(odd.filters().count(), 0);
        let filtered = selection(&[("entry", "/a")]);
        let expected = json!([{ "type": "session", "key": "$entry_pathname", "operator": "exact",
            "value": "/a" }]);
        assert_eq!(filtered.overview()["properties"], expected);
    }
}
