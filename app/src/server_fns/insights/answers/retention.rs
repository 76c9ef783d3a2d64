//! Answers to questions about retention.

use weir_questions::Query;
use weir_questions::query::DateRange;
use weir_questions::results::RetentionResult;
use weir_questions::time::{Buckets, Calendar, Interval, WeekStart};
use weir_service::{Error, ProjectCtx, Services};

use super::{AnswerView, CohortView, ResultsView, ServiceAnswer, ask, read};
use crate::context::ui_error;
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
    let found: ServiceAnswer<Vec<RetentionResult>> = ask(services, project, query).await?;
    let periods = periods(services, project, period, total, &found).await?;
    let cohort = |result: RetentionResult| {
        let period = periods.as_ref().and_then(|periods| {
            let at = periods.index(result.date.micros())?;
            periods.labels().get(at).cloned()
        });
        CohortView {
            label: period.unwrap_or_else(|| result.date.minute_text()),
            counts: result.values.iter().map(|value| value.count).collect(),
        }
    };
    let results = ResultsView::Retention(found.results.into_iter().map(cohort).collect());
    Ok(AnswerView { results, computed_at: found.computed_at })
}

/// The periods of an answer, whose texts the page shows. `None`: the project has another
/// calendar meanwhile.
async fn periods(
    services: &Services,
    project: &ProjectCtx,
    period: Interval,
    total: u32,
    found: &ServiceAnswer<Vec<RetentionResult>>,
) -> Result<Option<Buckets>, UiError> {
    let of = services.projects.get(project).await.map_err(ui_error)?;
    let week_start = WeekStart::of_project(of.week_start_day);
    let calendar = Calendar::new(&of.brief.timezone, week_start);
    let (Some(calendar), Some(until)) = (calendar, found.until) else { return Ok(None) };
    let periods = calendar.periods(&DateRange::default(), period, total, until, None);
    let periods = periods.map_err(|fault| ui_error(fault.into()))?;
    let first = found.results.first().map(|first| first.date.micros());
    Ok(Some(periods).filter(|periods| first == Some(periods.begin())))
}
