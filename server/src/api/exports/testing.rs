//! Testing a destination step by step (EXP-7). `…/batch_exports/test/` lists the steps,
//! the other operations run one.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use weir_export::destinations::steps;
use weir_model::errors::FieldError;
use weir_model::exports::ExportModel;
use weir_model::exports::destinations::{self, DestinationType};
use weir_model::{Patch, validate};
use weir_service::exports::{ExportScope, NewTrial, SentDestination, Trial};
use weir_service::unchecked::Unchecked;

use super::ID;
use super::body::{destination, model, required};
use crate::app::App;
use crate::exports::{STEP_TIME, try_step};
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, InProject, PathParams};
use crate::http::guards::{ExportsRead, ExportsWrite};
use crate::http::input::{Fields, Input};
use crate::http::pagination::Params;

/// Limit for the index of a step. No destination has as many steps.
const STEPS_MAX: i64 = 100;
const DESTINATION: &str = "destination";

filters! {
    /// Selects the destination type.
    TestFilters {
        "destination": RequiredOneOf(&destinations::NAMES), "The type of destination.";
    }
}

/// The steps for testing a destination.
#[derive(Debug, Serialize, ToSchema)]
pub struct DestinationTest {
    /// The steps, in the order in which to run them.
    pub steps: Vec<TestStep>,
}

/// A step of the test of a destination.
#[derive(Debug, Serialize, ToSchema)]
pub struct TestStep {
    /// What the step does; null when the destination has no steps.
    pub name: Option<String>,
    /// Result of the step; null before it has run.
    pub result: Option<StepResult>,
}

/// Result of a step.
#[derive(Debug, Serialize, ToSchema)]
pub struct StepResult {
    /// Whether the step passed.
    pub status: StepStatus,
    /// The reason of a failure, as text for people; null otherwise.
    pub message: Option<String>,
}

/// Outcome of a step.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub enum StepStatus {
    /// The step succeeded.
    Passed,
    /// The step failed.
    Failed,
    /// The step had nothing to do.
    Skipped,
}

below_organization_and_project! {
    /// The test steps of a destination type.
    ExportsRead list_batch_export_test_steps list_project_batch_export_test_steps
        (params: Params<TestFilters>) -> Json<DestinationTest> = list;

    /// Run a test step with a destination that no export has yet.
    ExportsWrite run_batch_export_test_step_new run_project_batch_export_test_step_new
        (body: ApiJson<NewTest>) -> Json<TestStep> = run_new;

    /// Run a test step with the destination of an export, including the changes in the
    /// body. Omitted secrets are taken from the export, unless the address or the user of
    /// the destination changes.
    ExportsWrite run_batch_export_test_step run_project_batch_export_test_step
        (path: PathParams, body: ApiJson<StoredTest>) -> Json<TestStep> = run_stored;
}

async fn list(
    app: &App,
    within: ExportScope<'_>,
    params: &Params<TestFilters>,
) -> ApiResult<Json<DestinationTest>> {
    app.services.exports.may_see_tests(within)?;
    let kind = kind(params.param(DESTINATION))?;
    let step = |name: &&str| TestStep { name: Some((*name).to_owned()), result: None };
    Ok(Json(DestinationTest { steps: steps(kind.name).iter().map(step).collect() }))
}

fn kind(word: Option<&str>) -> Result<&'static DestinationType, FieldError> {
    let word = word.filter(|word| !word.is_empty()).ok_or_else(|| required(DESTINATION))?;
    DestinationType::of(word).ok_or_else(|| {
        let shown: String = word.chars().take(64).collect();
        validate::invalid_choice(DESTINATION, &shown)
    })
}

async fn run_new(
    app: &App,
    within: ExportScope<'_>,
    body: &ApiJson<NewTest>,
) -> ApiResult<Json<TestStep>> {
    let mut step = 0;
    let input = Unchecked::new(|| {
        let NewTest { step: chosen, destination, model } = body.read()?;
        step = chosen;
        let kind = destination.kind.ok_or_else(|| required("destination__type"))?;
        let config = destination.config.ok_or_else(|| required("destination__config"))?;
        Ok(NewTrial { kind, config, model })
    });
    let trial = app.services.exports.trial_of_new(within, input)?;
    run(app, trial, step).await
}

async fn run_stored(
    app: &App,
    within: ExportScope<'_>,
    path: &PathParams,
    body: &ApiJson<StoredTest>,
) -> ApiResult<Json<TestStep>> {
    let mut step = 0;
    let input = body.unchecked_as(|StoredTest { step: chosen, destination }| {
        step = chosen;
        destination
    });
    let trial = app.services.exports.trial_of_stored(within, path.get(ID)?, input).await?;
    run(app, trial, step).await
}

async fn run(app: &App, trial: Trial, step: usize) -> ApiResult<Json<TestStep>> {
    let result = |status, message| Some(StepResult { status, message });
    let names = steps(trial.kind.name);
    if names.is_empty() {
        let message = "There is nothing to test.".to_owned();
        let result = result(StepStatus::Skipped, Some(message));
        return Ok(Json(TestStep { name: None, result }));
    }
    let Some(name) = names.get(step) else {
        let detail = format!("This test has the steps 0 to {}.", names.len() - 1);
        return Err(FieldError::new("step", "invalid_input", detail).into());
    };
    let result = match try_step(app, &trial, step, STEP_TIME).await {
        Ok(()) => result(StepStatus::Passed, None),
        Err(failure) => result(StepStatus::Failed, Some(failure.to_string())),
    };
    Ok(Json(TestStep { name: Some((*name).to_owned()), result }))
}

/// The body of `run_test_step_new/`: the destination, the model and the step. It may
/// contain other fields of an export.
#[derive(Debug)]
pub struct NewTest {
    step: usize,
    destination: SentDestination,
    model: ExportModel,
}

impl Input for NewTest {
    const EXAMPLE: &'static str =
        r#"{"step": 0, "destination": {"type": "NoOp", "config": {"arg": "x"}}}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let destination = destination(fields, true)?.ok_or_else(|| required(DESTINATION))?;
        let model = match model(fields)? {
            Patch::Set(model) => model,
            Patch::Keep | Patch::Clear => ExportModel::default(),
        };
        Ok(Self { step: step(fields)?, destination, model })
    }
}

/// The body of `run_test_step/`.
#[derive(Debug)]
pub struct StoredTest {
    step: usize,
    destination: SentDestination,
}

impl Input for StoredTest {
    const EXAMPLE: &'static str =
        r#"{"step": 0, "destination": {"type": "NoOp", "config": {"arg": "x"}}}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let destination = destination(fields, false)?.unwrap_or_default();
        Ok(Self { step: step(fields)?, destination })
    }
}

/// Steps are counted from 0. Without a number it is the first.
fn step(fields: &Fields) -> Result<usize, FieldError> {
    let step = match fields.nullable_integer("step", 0, STEPS_MAX)? {
        Patch::Set(step) => step,
        Patch::Keep | Patch::Clear => 0,
    };
    fields.refine("step", || json!({"default": 0}));
    Ok(usize::try_from(step).unwrap_or_default())
}
