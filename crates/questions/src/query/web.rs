//! The web overview: visitors, views and sessions of a site (QRY-61 to QRY-65).

mod scope;

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use weir_model::errors::FieldError;

use super::common::{CompareFilter, interval, is_false, without};
use super::input::{Fields, Input};
use crate::choices::choices;
use crate::time::Interval;

pub use scope::{SESSION_FILTERS_MAX, SessionFilter, SessionProperty, WebScope};

/// Rows of a table by default.
pub const WEB_ROWS: u32 = 100;
/// Most rows of a table.
pub const WEB_ROWS_MAX: u32 = 10_000;

/// Which view of a session has the value that the session belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebView {
    /// Each of them: a session can belong to several values.
    Each,
    /// The first one.
    First,
    /// The last one.
    Last,
}

choices! {
    /// What a table has a row for.
    WebBreakdown {
        /// The path of a page.
        Page = "Page",
        /// The path of the first page of a session.
        InitialPage = "InitialPage",
        /// The path of the last page of a session.
        ExitPage = "ExitPage",
        /// The domain of the site that led to a session.
        InitialReferringDomain = "InitialReferringDomain",
        /// The source of the campaign that led to a session.
        InitialUtmSource = "InitialUTMSource",
        /// The medium of the campaign that led to a session.
        InitialUtmMedium = "InitialUTMMedium",
        /// The campaign that led to a session.
        InitialUtmCampaign = "InitialUTMCampaign",
        /// The key words of the campaign that led to a session.
        InitialUtmTerm = "InitialUTMTerm",
        /// The ad or the link of the campaign that led to a session.
        InitialUtmContent = "InitialUTMContent",
        /// The browser.
        Browser = "Browser",
        /// The operating system.
        Os = "OS",
        /// Whether it is a computer, a phone or a tablet.
        DeviceType = "DeviceType",
        /// The code of the country.
        Country = "Country",
    }
}

impl WebBreakdown {
    /// The property of a view with the value.
    pub const fn property(self) -> &'static str {
        match self.session_property() {
            Some(of_session) => of_session.property(),
            None => match self {
                Self::Browser => "$browser",
                Self::Os => "$os",
                Self::DeviceType => "$device_type",
                Self::Country => "$geoip_country_code",
                _ => "$pathname",
            },
        }
    }

    /// The property of a session with the value. `None`: each view has a value.
    pub const fn session_property(self) -> Option<SessionProperty> {
        Some(match self {
            Self::InitialPage => SessionProperty::EntryPath,
            Self::ExitPage => SessionProperty::EndPath,
            Self::InitialReferringDomain => SessionProperty::EntryReferrer,
            Self::InitialUtmSource => SessionProperty::EntryUtmSource,
            Self::InitialUtmMedium => SessionProperty::EntryUtmMedium,
            Self::InitialUtmCampaign => SessionProperty::EntryUtmCampaign,
            Self::InitialUtmTerm => SessionProperty::EntryUtmTerm,
            Self::InitialUtmContent => SessionProperty::EntryUtmContent,
            Self::Page | Self::Browser | Self::Os | Self::DeviceType | Self::Country => {
                return None;
            }
        })
    }

    /// The view with the value.
    pub const fn view(self) -> WebView {
        match self.session_property() {
            Some(of_session) => of_session.view(),
            None => WebView::Each,
        }
    }

    /// The view with the value whose bounces a row shows. A bounce leaves from the page on
    /// which the session began.
    pub const fn view_of_bounces(self) -> WebView {
        match self {
            Self::Page => WebView::First,
            _ => self.view(),
        }
    }

    /// Whether a table has a row for what has no value.
    pub const fn shows_missing(self) -> bool {
        matches!(
            self,
            Self::InitialUtmSource
                | Self::InitialUtmMedium
                | Self::InitialUtmCampaign
                | Self::InitialUtmTerm
                | Self::InitialUtmContent
        )
    }
}

choices! {
    /// The number that rows of a table are ordered by.
    WebColumn {
        /// Visitors.
        Visitors = "Visitors",
        /// Views.
        Views = "Views",
        /// The share of bounces.
        BounceRate = "BounceRate",
    }
}

choices! {
    /// The direction of an order.
    WebDirection {
        /// The smallest number first.
        Ascending = "ASC",
        /// The largest number first.
        Descending = "DESC",
    }
}

/// The order of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebOrder {
    /// The number.
    pub column: WebColumn,
    /// Its direction.
    pub direction: WebDirection,
}

choices! {
    /// A number for each interval.
    WebMetric {
        /// Different visitors.
        UniqueUsers = "UniqueUsers",
        /// Views.
        PageViews = "PageViews",
        /// Sessions.
        Sessions = "Sessions",
        /// Sessions that are bounces.
        Bounces = "Bounces",
        /// The average length of a session in seconds.
        SessionDuration = "SessionDuration",
    }
}

/// A question for the numbers of a site.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WebOverviewQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: WebScope,
    /// Another range.
    #[serde(rename = "compareFilter", skip_serializing_if = "Option::is_none")]
    pub compare: Option<CompareFilter>,
}

/// A question for the numbers of each page, browser, or the like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WebTableQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: WebScope,
    /// What has a row.
    #[serde(rename = "breakdownBy")]
    pub breakdown: WebBreakdown,
    /// Whether rows have the share of bounces.
    #[serde(rename = "includeBounceRate", skip_serializing_if = "is_false")]
    pub has_bounces: bool,
    /// The order. `None`: by visitors.
    #[serde(rename = "orderBy", skip_serializing_if = "Option::is_none")]
    pub order: Option<WebOrder>,
    /// Another range.
    #[serde(rename = "compareFilter", skip_serializing_if = "Option::is_none")]
    pub compare: Option<CompareFilter>,
    /// Most rows.
    pub limit: u32,
    /// Rows that are skipped.
    pub offset: u32,
}

/// A question for the numbers of a site over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WebTrendsQuery {
    /// Range and filters.
    #[serde(flatten)]
    pub scope: WebScope,
    /// The length of an interval.
    pub interval: Interval,
    /// The numbers: at least one, each once.
    pub metrics: Vec<WebMetric>,
}

/// Members that say nothing: how rows are ordered where there are none, and the tables that a
/// client wants to be read.
const IGNORED: [&str; 2] = ["orderBy", "useSessionsTable"];
/// The member that clients send with each question of a page about a site. It changes the
/// answer over time alone, and with the others only how the page is drawn.
const INTERVAL: &str = "interval";
/// Members that would change an answer.
const REFUSED: [&str; 9] = [
    "aggregation_group_type_index",
    "conversionGoal",
    "doPathCleaning",
    "fixedProperties",
    "includeAvgTimeOnPage",
    "includeHost",
    "includeRevenue",
    "includeScrollDepth",
    "samplingFactor",
];

impl WebOverviewQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        check(fields, &["compareFilter", "compare", INTERVAL])?;
        Ok(Self { scope: WebScope::read(fields)?, compare: compare(fields)? })
    }
}

impl WebTableQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let own = [
            "compareFilter",
            "compare",
            "breakdownBy",
            "includeBounceRate",
            "limit",
            "offset",
            INTERVAL,
        ];
        check(fields, &own)?;
        let has_bounces = fields.flag("includeBounceRate")?;
        let (limit, offset) = fields.page(WEB_ROWS_MAX, WEB_ROWS)?;
        Ok(Self {
            scope: WebScope::read(fields)?,
            breakdown: fields.required("breakdownBy")?.choice()?,
            has_bounces,
            order: fields.get("orderBy").map(|input| order(&input, has_bounces)).transpose()?,
            compare: compare(fields)?,
            limit,
            offset,
        })
    }
}

impl WebTrendsQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        check(fields, &["compareFilter", INTERVAL, "metrics"])?;
        without(fields, &["compareFilter"])?;
        let input = fields.required("metrics")?;
        let items = input.list(WebMetric::ALL.len())?;
        let metrics: Vec<WebMetric> =
            items.iter().map(|item| item.choice()).collect::<Result<_, FieldError>>()?;
        if metrics.is_empty() {
            return Err(input.fault("required", "This list may not be empty."));
        }
        let words: BTreeSet<&str> = metrics.iter().map(|metric| metric.word()).collect();
        if words.len() < metrics.len() {
            return Err(input.invalid("A number is asked for twice."));
        }
        Ok(Self { scope: WebScope::read(fields)?, interval: interval(fields)?, metrics })
    }
}

/// Refuses members that a question does not have, beside those that all of these have.
fn check(fields: &Fields<'_>, own: &[&'static str]) -> Result<(), FieldError> {
    let read: Vec<&str> =
        scope::MEMBERS.iter().chain(&IGNORED).chain(own).chain(&["sampling"]).copied().collect();
    fields.check(&read, &REFUSED)?;
    let Some(input) = fields.get("sampling") else { return Ok(()) };
    let sampling = input.object()?;
    sampling.check(&["enabled", "forceSamplingRate"], &[])?;
    match sampling.flag("enabled")? {
        true => {
            let detail = "Weir does not support this field.";
            Err(sampling.fault("enabled", "invalid_input", detail))
        }
        false => Ok(()),
    }
}

/// With what the range is compared. Older clients have a flag.
fn compare(fields: &Fields<'_>) -> Result<Option<CompareFilter>, FieldError> {
    let older = fields.flag("compare")?.then_some(CompareFilter { compare_to: None });
    Ok(CompareFilter::read(fields)?.or(older))
}

/// A column and its direction.
fn order(input: &Input<'_>, has_bounces: bool) -> Result<WebOrder, FieldError> {
    let items = input.list(2)?;
    let [column, direction] = items.as_slice() else {
        return Err(input.invalid("Expected a column and ASC or DESC."));
    };
    let order = WebOrder { column: column.choice()?, direction: direction.choice()? };
    if order.column == WebColumn::BounceRate && !has_bounces {
        return Err(column.invalid("Ask with includeBounceRate to order by it."));
    }
    Ok(order)
}

impl Serialize for WebOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.column, self.direction).serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
