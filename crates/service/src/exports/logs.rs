//! The log of an export's runs (EXP-26).

use weir_model::RunId;
use weir_model::exports::LogLine;
use weir_model::exports::lists::LogQuery;
use weir_store::exports::logs as rows;

use super::{ExportScope, Exports};
use crate::Result;
use crate::policy::{self, Action};

impl Exports {
    /// Log lines of an export, newest first; of one run when the query names one.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn logs(
        &self,
        within: ExportScope<'_>,
        export: &str,
        run: Option<RunId>,
        query: LogQuery,
    ) -> Result<Vec<LogLine>> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        Ok(rows::page(&self.core.store, row.id, run, wanted(query)).await?)
    }

    /// Log lines of a run, newest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn run_logs(
        &self,
        within: ExportScope<'_>,
        export: &str,
        run: &str,
        query: LogQuery,
    ) -> Result<Vec<LogLine>> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        let run = self.find_run(&row, run).await?;
        Ok(rows::page(&self.core.store, row.id, Some(run.id), wanted(query)).await?)
    }
}

fn wanted(query: LogQuery) -> rows::Logs {
    let LogQuery { after, before, levels, search, offset, limit } = query;
    rows::Logs { after, before, levels, search, offset, limit }
}
