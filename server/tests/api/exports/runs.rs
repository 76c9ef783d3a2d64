//! Runs, as their export shows them.

use super::*;
use weir_model::RunId;
use weir_model::exports::{Run, Status};
use weir_store::exports::add_run;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_one_of_ten_statuses() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let (export, path) = made(&app, &owner, &s3()).await;
    let id = weir_model::BatchExportId(export["id"].as_str().unwrap().parse().unwrap());
    for status in Status::ALL {
        clock.advance(1);
        let now = app.app().services.clock.now();
        let run = Run {
            id: RunId(weir_store::ids::time_ordered(now)),
            status,
            records_completed: None,
            latest_error: None,
            data_interval_start: None,
            data_interval_end: now,
            cursor: None,
            created_at: now,
            finished_at: None,
            last_updated_at: now,
            records_total_count: None,
            batch_export: id,
        };
        assert!(add_run(app.store(), &run).await.unwrap());
    }
    let shown = owner.get(&path).await.json();
    let runs = shown["latest_runs"].as_array().unwrap();
    let newest_first: Vec<&str> = runs.iter().map(|run| run["status"].as_str().unwrap()).collect();
    assert_eq!(
        newest_first,
        [
            "ContinuedAsNew",
            "Terminated",
            "TimedOut",
            "Cancelled",
            "FailedBilling",
            "FailedRetryable",
            "Failed",
            "Completed",
            "Running",
            "Starting",
        ]
    );
}
