//! Answers to questions about stickiness.

use weir_questions::results::StickinessResult;
use weir_service::{ProjectCtx, Services};

use super::{AnswerView, ResultsView, StickinessView, ask, check_intervals, read};
use crate::error::UiError;
use crate::questions::stickiness::StickinessForm;

pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &StickinessForm,
) -> Result<AnswerView, UiError> {
    let query = read(&form.query())?;
    let found = ask::<Vec<StickinessResult>>(services, project, query).await?;
    let only = found.results.into_iter().next();
    let results = only.map_or_else(StickinessView::default, |only| StickinessView {
        labels: only.labels,
        counts: only.data,
        total: only.count,
    });
    check_intervals(&results.labels)?;
    Ok(AnswerView { results: ResultsView::Stickiness(results), computed_at: found.computed_at })
}
