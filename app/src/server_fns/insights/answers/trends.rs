//! Answers to questions of trends. Their series are also for tiles.

use std::collections::HashMap;

use weir_questions::Query;
use weir_questions::query::{Display, Math, PropertyMath, TrendsQuery};
use weir_questions::results::{BreakdownValue, CompareLabel, TrendsResult};
use weir_service::{Error, ProjectCtx, Services};

use super::{
    AnswerView, NumbersView, ResultsView, SeriesView, TrendsView, ask, check_intervals, label, read,
};
use crate::context::ui_error;
use crate::days;
use crate::error::UiError;
use crate::questions::trends::TrendsForm;

pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &TrendsForm,
) -> Result<AnswerView, UiError> {
    let Query::Trends(query) = read(&form.query())? else {
        return Err(ui_error(Error::Internal("the question has another kind".to_owned())));
    };
    let of_intervals = Query::Trends(query.clone());
    let found = ask::<Vec<TrendsResult>>(services, project, of_intervals).await?;
    let intervals = intervals(&found.results);
    check_intervals(&intervals)?;
    let wholes = match of_range(&query) {
        Some(of_range) => {
            ask::<Vec<TrendsResult>>(services, project, Query::Trends(of_range)).await?.results
        }
        None => Vec::new(),
    };
    let mut series = series(&query, &found.results, &wholes);
    // The chart does not draw the others.
    for one in series.iter_mut().skip(form.drawn()) {
        for numbers in std::iter::once(&mut one.numbers).chain(&mut one.before) {
            numbers.data.clear();
        }
    }
    let results = TrendsView { series, intervals, has_others: found.has_more };
    Ok(AnswerView { results: ResultsView::Trends(results), computed_at: found.computed_at })
}

/// The question for one number for the whole range. `None`: the numbers of the intervals are
/// enough, or the question has no intervals.
pub(in crate::server_fns) fn of_range(query: &TrendsQuery) -> Option<TrendsQuery> {
    if query.filter.display.is_total() || is_sum(query) {
        return None;
    }
    let mut query = query.clone();
    query.filter.display = Display::Table;
    Some(query)
}

/// Whether the number of the whole range follows from those of the intervals.
fn is_sum(query: &TrendsQuery) -> bool {
    let adds = |math: &Math| matches!(math, Math::Total | Math::Property(PropertyMath::Sum, _));
    let mut series = query.series.iter();
    query.filter.formulas.is_empty()
        && series.all(|series| adds(&series.math) || query.counts_once(series))
}

/// The texts of the intervals.
pub(in crate::server_fns) fn intervals(found: &[TrendsResult]) -> Vec<String> {
    let now = found.iter().find(|one| !is_before(one));
    now.map(|one| days::intervals(&one.labels)).unwrap_or_default()
}

/// The series of an answer, each with that of the period before. `wholes`: the answer to the
/// question of [`of_range`].
pub(in crate::server_fns) fn series(
    query: &TrendsQuery,
    found: &[TrendsResult],
    wholes: &[TrendsResult],
) -> Vec<SeriesView> {
    let is_sum = is_sum(query);
    let wholes: HashMap<_, _> = wholes.iter().map(|one| (key(one, is_before(one)), one)).collect();
    let befores = found.iter().filter(|one| is_before(one));
    let befores: HashMap<_, _> = befores.map(|one| (key(one, true), one)).collect();
    let whole = |one: &TrendsResult| {
        let of_range = || wholes.get(&key(one, is_before(one)))?.aggregated_value;
        match one.aggregated_value.or_else(of_range) {
            Some(number) => Some(number.value()),
            None => is_sum.then(|| one.count.value()),
        }
    };
    let numbers = |one: &TrendsResult| NumbersView {
        data: one.data.iter().map(|amount| amount.value()).collect(),
        whole: whole(one),
    };
    let now = found.iter().filter(|one| !is_before(one)).map(|one| {
        let before = befores.get(&key(one, true)).map(|before| numbers(before));
        let value = one.breakdown_value.as_ref().map(BreakdownValue::label);
        SeriesView { label: label(&one.label), value, numbers: numbers(one), before }
    });
    now.collect()
}

fn is_before(one: &TrendsResult) -> bool {
    one.compare_label == Some(CompareLabel::Previous)
}

/// What a result is about: its period, its series, and its value of the breakdown.
fn key(one: &TrendsResult, is_before: bool) -> (bool, usize, String) {
    (is_before, one.order, format!("{:?}", one.breakdown_value))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use weir_questions::Query;

    use super::{Display, TrendsQuery, of_range};

    fn query(more: Value) -> TrendsQuery {
        let mut query = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
        if let Value::Object(more) = more {
            query.as_object_mut().unwrap().extend(more);
        }
        match Query::read(&query).unwrap() {
            Query::Trends(query) => query,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_number_of_a_range_is_asked_for_where_it_is_no_sum() {
        let unique = json!([{"event": "paid", "math": "dau"}]);
        for more in [
            json!({}),
            json!({"series": [{"event": "paid", "math": "sum", "math_property": "price"}]}),
            json!({"series": unique, "trendsFilter": {"display": "ActionsLineGraphCumulative"}}),
            json!({"series": unique, "trendsFilter": {"display": "BoldNumber"}}),
        ] {
            assert_eq!(of_range(&query(more.clone())), None, "{more}");
        }
        for more in [
            json!({"series": unique}),
            json!({"series": [{"event": "paid", "math": "avg", "math_property": "price"}]}),
            json!({"trendsFilter": {"formula": "A / 2"}}),
        ] {
            let asked = of_range(&query(more.clone())).map(|query| query.filter.display);
            assert_eq!(asked, Some(Display::Table), "{more}");
        }
    }
}
