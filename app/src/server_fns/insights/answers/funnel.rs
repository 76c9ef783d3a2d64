//! Answers to questions about funnels.

use weir_questions::results::{BreakdownValue, FunnelStepResult};
use weir_service::{ProjectCtx, Services};

use super::{AnswerView, FunnelValue, FunnelView, ResultsView, StepView, ask, read, value_label};
use crate::error::UiError;
use crate::questions::funnel::{FunnelForm, STEPS, STEPS_MIN};

pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &FunnelForm,
) -> Result<AnswerView, UiError> {
    if !form.is_complete() {
        let field = STEPS.get(STEPS_MIN - 1).copied().unwrap_or_default();
        let detail = format!("Enter at least {STEPS_MIN} steps.");
        return Err(UiError::field(field, "required", &detail));
    }
    let query = read(&form.query())?;
    // Only a breakdown has a list of steps for each value.
    let (values, has_others, computed_at) = match form.breakdown.is_empty() {
        true => {
            let found = ask::<Vec<FunnelStepResult>>(services, project, query).await?;
            (vec![found.results], false, found.computed_at)
        }
        false => {
            let found = ask::<Vec<Vec<FunnelStepResult>>>(services, project, query).await?;
            (found.results, found.has_more, found.computed_at)
        }
    };
    let first = values.first().into_iter().flatten();
    let results = FunnelView {
        names: first.map(|step| step.name.clone()).collect(),
        values: values.iter().map(|steps| value(steps)).collect(),
        has_others,
    };
    Ok(AnswerView { results: ResultsView::Funnel(results), computed_at })
}

/// The persons of the value that these steps have.
fn value(steps: &[FunnelStepResult]) -> FunnelValue {
    let of_steps = steps.first().and_then(|step| step.breakdown_value.as_ref());
    FunnelValue {
        label: value_label(of_steps),
        value: of_steps.map(BreakdownValue::label),
        steps: steps
            .iter()
            .map(|step| StepView {
                count: step.count,
                median: step.median_conversion_time.map(|amount| amount.value()),
            })
            .collect(),
    }
}
