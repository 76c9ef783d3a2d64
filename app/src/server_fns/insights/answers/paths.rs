//! Answers to questions about paths.

use weir_questions::results::PathResult;
use weir_service::{ProjectCtx, Services};

use super::{AnswerView, EdgeView, PathsView, ResultsView, ask, read};
use crate::error::UiError;
use crate::questions::paths::PathsForm;

pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &PathsForm,
) -> Result<AnswerView, UiError> {
    let query = read(&form.query())?;
    let found = ask::<Vec<PathResult>>(services, project, query).await?;
    let edges = found.results.iter().filter_map(edge).collect();
    let results = ResultsView::Paths(PathsView { edges, has_others: found.has_more });
    Ok(AnswerView { results, computed_at: found.computed_at })
}

/// `None`: its steps have no numbers.
fn edge(result: &PathResult) -> Option<EdgeView> {
    let (step, from) = result.source.split_once('_')?;
    let (_, to) = result.target.split_once('_')?;
    Some(EdgeView {
        step: step.parse().ok()?,
        from: from.to_owned(),
        to: to.to_owned(),
        count: result.value,
        average: result.average_conversion_time.value(),
    })
}
