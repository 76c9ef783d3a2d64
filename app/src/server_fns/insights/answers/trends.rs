//! Answers to questions of trends.

use weir_questions::results::{CompareLabel, TrendsResult};
use weir_service::{ProjectCtx, Services};

use super::{
    AnswerView, NumbersView, ResultsView, SeriesView, TrendsView, ask, check_intervals, label, read,
};
use crate::error::UiError;
use crate::questions::trends::TrendsForm;

pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &TrendsForm,
) -> Result<AnswerView, UiError> {
    let found = ask::<Vec<TrendsResult>>(services, project, read(&form.query())?).await?;
    let intervals = found.results.first().map(|first| first.labels.clone()).unwrap_or_default();
    check_intervals(&intervals)?;
    let is_sum = form.math().is_some_and(|math| math.is_sum);
    let whole = match is_sum {
        true => Vec::new(),
        false => {
            let query = read(&form.query_of_range())?;
            ask::<Vec<TrendsResult>>(services, project, query).await?.results
        }
    };
    let numbers = |one: &TrendsResult, is_drawn: bool| NumbersView {
        data: match is_drawn {
            true => one.data.iter().map(|amount| amount.value()).collect(),
            false => Vec::new(),
        },
        whole: match is_sum {
            true => Some(one.count.value()),
            false => {
                let same = whole.iter().find(|other| is_same(one, other));
                same.and_then(|other| other.aggregated_value).map(|amount| amount.value())
            }
        },
    };
    let is_before = |one: &&TrendsResult| one.compare_label == Some(CompareLabel::Previous);
    let results = &found.results;
    let series = results.iter().filter(|one| !is_before(one)).enumerate().map(|(at, one)| {
        let is_drawn = at < form.drawn();
        let before = results
            .iter()
            .find(|other| is_before(other) && other.breakdown_value == one.breakdown_value);
        SeriesView {
            label: label(&one.label),
            numbers: numbers(one, is_drawn),
            before: before.map(|before| numbers(before, is_drawn)),
        }
    });
    let series = series.collect();
    let results = TrendsView { series, intervals, has_others: found.has_others };
    Ok(AnswerView { results: ResultsView::Trends(results), computed_at: found.computed_at })
}

/// Whether two results are about the same events.
fn is_same(one: &TrendsResult, other: &TrendsResult) -> bool {
    one.compare_label == other.compare_label && one.breakdown_value == other.breakdown_value
}
