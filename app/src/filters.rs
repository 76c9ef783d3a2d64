//! Filters of lists: from the values in the address of a page to the queries of services.
//! The page and its CSV file use the same.

use std::collections::BTreeMap;

use weir_model::dashboards::DashboardQuery;
use weir_model::errors::FieldError;
use weir_model::exports::lists::{LogQuery, RunQuery};
use weir_model::exports::{LogLevel, Status};
use weir_model::insights::InsightQuery;
use weir_model::members::MemberQuery;
use weir_model::warnings::AffectedQuery;
use weir_model::{ProjectId, Timestamp};
use weir_questions::Query;
use weir_service::exports::{Condition, OverviewQuery};

use crate::server_fns::insights::answers::number;

/// Longest search text in a log, in characters.
const LOG_TEXT_MAX: usize = 200;

/// A text to search for. `None`: everything is found.
pub fn text(value: &str) -> Option<String> {
    Some(value.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The filter of members.
pub fn members(search: &str) -> MemberQuery {
    MemberQuery { search: text(search), ..MemberQuery::default() }
}

/// The filter of saved insights.
pub fn insights(search: &str) -> InsightQuery {
    InsightQuery { search: text(search), ..InsightQuery::default() }
}

/// The question for the persons behind the number that the parameters of an address name.
///
/// # Errors
/// The fault of the question.
pub fn persons_of_number(
    parameters: &BTreeMap<String, String>,
    limit: u32,
    offset: u32,
) -> Result<Query, FieldError> {
    number::question(parameters, limit, offset)
}

/// The filter of dashboards.
pub fn dashboards(search: &str) -> DashboardQuery {
    DashboardQuery { search: text(search), ..DashboardQuery::default() }
}

/// The filter of exports.
pub fn exports(name: &str, state: &str, destination: &str, project: &str) -> OverviewQuery {
    OverviewQuery {
        name: text(name),
        kind: text(destination),
        condition: Condition::of(state),
        project: project.parse().ok().map(ProjectId),
    }
}

/// The filter of runs. Without times: those of the last days.
pub fn runs(state: &str, after: &str, before: &str) -> RunQuery {
    let before = Timestamp::parse_lenient(before);
    RunQuery {
        // The last days can exclude all runs before a given time.
        after: Timestamp::parse_lenient(after).or(before.map(|_| Timestamp::EPOCH)),
        before,
        statuses: statuses(state),
        ..RunQuery::default()
    }
}

/// The statuses for a value of the filter. Empty: all.
fn statuses(state: &str) -> Vec<Status> {
    let wanted = |status: &Status| match state {
        "active" => status.is_active(),
        "completed" => *status == Status::Completed,
        "failed" => status.is_failure(),
        "cancelled" => *status == Status::Cancelled,
        _ => false,
    };
    Status::ALL.into_iter().filter(wanted).collect()
}

/// The filter of log lines: those of this level and of more severe levels, before the line of
/// this time.
pub fn logs(level: &str, search: &str, before: Option<Timestamp>, limit: usize) -> LogQuery {
    let least = LogLevel::of(level);
    let graver = LogLevel::ALL.into_iter().skip_while(|level| Some(*level) != least);
    LogQuery {
        levels: graver.collect(),
        search: text(search).map(|search| search.chars().take(LOG_TEXT_MAX).collect()),
        before: before.map(just_before),
        limit,
        ..LogQuery::default()
    }
}

/// The filter of dropped and altered events that were received between two times.
pub fn affected(code: &str, from: &str, to: &str) -> AffectedQuery {
    AffectedQuery {
        code: text(code),
        // The range includes its start.
        after: Timestamp::parse_lenient(from).map(just_before),
        before: Timestamp::parse_lenient(to),
        ..AffectedQuery::default()
    }
}

fn just_before(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.micros().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use weir_model::exports::{LogLevel, Status};

    use super::{logs, runs, text};

    #[test]
    fn values_become_queries() {
        assert_eq!((text(" a "), text(" ")), (Some("a".to_owned()), None));
        assert!(logs("", "", None, 1).levels.is_empty());
        let levels = logs("WARNING", "", None, 1).levels;
        assert!(levels.contains(&LogLevel::Error) && !levels.contains(&LogLevel::Info));
        assert_eq!(runs("completed", "", "").statuses, [Status::Completed]);
        assert!(runs("", "", "").after.is_none());
        assert!(runs("", "", "2026-08-21T00:00").after.is_some());
    }
}
