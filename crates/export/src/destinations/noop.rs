//! NoOp: accepts all rows and stores none, for trying a schedule.

use async_trait::async_trait;
use serde_json::{Map, Value};
use weir_model::exports::ExportModel;

use crate::columns::{Columns, Source};
use crate::destination::{Destination, Failure, Job, Writer};
use crate::destinations::Dependencies;
use crate::rows::{Batch, Kind};

/// A destination that stores nothing. Its one setting, `arg`, is a note for users.
pub(crate) struct NoOp;

impl NoOp {
    /// Opens the destination.
    pub(crate) fn new(_: &Map<String, Value>, _: &Dependencies) -> Result<Self, Failure> {
        Ok(Self)
    }
}

#[async_trait]
impl Destination for NoOp {
    fn columns(&self) -> Columns {
        Columns::of(&[("uuid", Kind::Uuid, Source::Uuid)])
    }

    async fn begin(&self, _: Job) -> Result<Box<dyn Writer>, Failure> {
        Ok(Box::new(Nothing))
    }

    fn steps(&self) -> &'static [&'static str] {
        &[]
    }

    async fn test(&self, _: usize, _: ExportModel) -> Result<(), Failure> {
        Ok(())
    }
}

struct Nothing;

#[async_trait]
impl Writer for Nothing {
    async fn write(&mut self, _: Batch) -> Result<(), Failure> {
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn abort(&mut self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;
    use weir_egress::{Egress, Rules};
    use weir_model::{BatchExportId, ProjectId, RunId, Timestamp};

    use super::*;
    use crate::destinations::open;
    use crate::rows::Cell;

    #[tokio::test]
    async fn it_takes_everything_and_needs_no_way_out() {
        let egress = Egress::new(Rules::default()).unwrap();
        let config = serde_json::json!({"arg": "a note", "include_events": null});
        let dependencies = Dependencies::new(egress, None);
        let destination = open("NoOp", config.as_object().unwrap(), &dependencies).unwrap();
        let job = Job {
            export: BatchExportId(Uuid::from_u128(1)),
            run: RunId(Uuid::from_u128(2)),
            project: ProjectId(3),
            start: None,
            end: Timestamp::EPOCH,
            by_time: false,
            model: ExportModel::Events,
            columns: Arc::new(destination.columns()),
            cursor: None,
        };
        let mut writer = destination.begin(job).await.unwrap();
        let rows = vec![vec![Cell::Uuid(Uuid::from_u128(7))]];
        let batch = Batch { rows, arrivals: Some(vec![1]) };
        assert_eq!(writer.write(batch).await, Ok(()));
        assert_eq!(writer.finish().await, Ok(()));
        // An interrupted attempt starts over.
        assert_eq!(writer.delivered(), None);
        assert!(destination.steps().is_empty());
    }
}
