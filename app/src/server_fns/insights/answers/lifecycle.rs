//! Answers to questions about lifecycles.

use weir_questions::results::LifecycleResult;
use weir_service::{ProjectCtx, Services};

use super::{AnswerView, LifecycleView, ResultsView, StatusView, ask, check_intervals, read};
use crate::days;
use crate::error::UiError;
use crate::questions::lifecycle::LifecycleForm;

pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &LifecycleForm,
) -> Result<AnswerView, UiError> {
    let query = read(&form.query())?;
    let found = ask::<Vec<LifecycleResult>>(services, project, query).await?;
    let first = found.results.first();
    let intervals = first.map(|first| days::intervals(&first.labels)).unwrap_or_default();
    check_intervals(&intervals)?;
    let status = |result: LifecycleResult| StatusView {
        data: result.data.iter().map(|amount| amount.value()).collect(),
        sum: result.count.value(),
        status: result.status,
    };
    let statuses = found.results.into_iter().map(status).collect();
    let results = ResultsView::Lifecycle(LifecycleView { intervals, statuses });
    Ok(AnswerView { results, computed_at: found.computed_at })
}
