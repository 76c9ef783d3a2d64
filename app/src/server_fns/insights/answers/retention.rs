//! Answers to questions about retention. The texts of their periods are also for tiles.

use weir_model::Timestamp;
use weir_questions::Query;
use weir_questions::query::DateRange;
use weir_questions::results::RetentionResult;
use weir_questions::time::{Buckets, Calendar, Interval, WeekStart};
use weir_service::{Error, ProjectCtx, Services};

use super::{AnswerView, CohortView, ResultsView, ask, read};
use crate::context::ui_error;
use crate::days;
use crate::error::UiError;
use crate::questions::retention::{RetentionForm, TOTAL_MAX};

pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &RetentionForm,
) -> Result<AnswerView, UiError> {
    let query = read(&form.query())?;
    let Query::Retention(of_form) = &query else {
        return Err(ui_error(Error::Internal("the question has another kind".to_owned())));
    };
    let (period, total) = (of_form.filter.period, of_form.filter.total);
    if total > TOTAL_MAX {
        let detail = format!("The page shows at most {TOTAL_MAX} periods.");
        return Err(UiError::field("total", "max_value", &detail));
    }
    let found = ask::<Vec<RetentionResult>>(services, project, query).await?;
    let labels = period_labels(&found.results, period, &found.timezone, found.until);
    let cohort = |(result, label): (RetentionResult, String)| CohortView {
        label,
        counts: result.values.iter().map(|value| value.count).collect(),
    };
    let cohorts = found.results.into_iter().zip(labels).map(cohort).collect();
    Ok(AnswerView { results: ResultsView::Retention(cohorts), computed_at: found.computed_at })
}

/// The text of the period of each result, in the zone of the answer. `until`: the last instant
/// of the range.
pub(in crate::server_fns) fn period_labels(
    found: &[RetentionResult],
    period: Interval,
    zone: &str,
    until: Option<Timestamp>,
) -> Vec<String> {
    let periods = until.and_then(|until| periods(found, period, zone, until));
    let label = |one: &RetentionResult| {
        let label = periods.as_ref().and_then(|periods| {
            let at = periods.index(one.date.micros())?;
            periods.labels().get(at).map(|label| days::interval(label))
        });
        label.unwrap_or_else(|| one.date.minute_text())
    };
    found.iter().map(label).collect()
}

/// The periods of results. `None`: they do not begin like those of the zone.
fn periods(
    found: &[RetentionResult],
    period: Interval,
    zone: &str,
    until: Timestamp,
) -> Option<Buckets> {
    let first = found.first()?;
    let of_value = found.iter().filter(|one| one.breakdown_value == first.breakdown_value);
    let count = u32::try_from(of_value.count()).ok()?;
    // The answer does not say on which day weeks begin, but its periods do.
    [WeekStart::Sunday, WeekStart::Monday].into_iter().find_map(|week_start| {
        let calendar = Calendar::new(zone, week_start)?;
        let periods = calendar.periods(&DateRange::default(), period, count, until, None).ok()?;
        (periods.begin() == first.date.micros()).then_some(periods)
    })
}

#[cfg(test)]
mod tests {
    use super::{Interval, RetentionResult, Timestamp, period_labels};

    /// The texts of periods with these beginnings, in Berlin.
    fn labels(begins: &[&str], period: Interval, until: &str) -> Vec<String> {
        let result = |begin: &&str| RetentionResult {
            values: Vec::new(),
            label: String::new(),
            date: Timestamp::parse(begin).unwrap(),
            breakdown_value: None,
        };
        let found: Vec<RetentionResult> = begins.iter().map(result).collect();
        let until = Timestamp::parse(until).unwrap();
        period_labels(&found, period, "Europe/Berlin", Some(until))
    }

    #[test]
    fn periods_have_the_texts_of_their_zone() {
        let days = ["2026-08-19T22:00:00Z", "2026-08-20T22:00:00Z"];
        let end = "2026-08-21T21:59:59.999999Z";
        assert_eq!(labels(&days, Interval::Day, end), ["20 Aug 2026", "21 Aug 2026"]);
        let monday =
            labels(&["2026-08-16T22:00:00Z"], Interval::Week, "2026-08-23T21:59:59.999999Z");
        assert_eq!(monday, ["17–23 Aug"]);
        let sunday =
            labels(&["2026-08-15T22:00:00Z"], Interval::Week, "2026-08-22T21:59:59.999999Z");
        assert_eq!(sunday, ["16–22 Aug"]);
        // Those of another zone have their time.
        let other = labels(&["2026-08-20T00:00:00Z"], Interval::Day, end);
        assert_eq!(other, ["2026-08-20 00:00 UTC"]);
    }
}
