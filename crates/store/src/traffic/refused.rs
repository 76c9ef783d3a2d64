//! The last refused requests of each project: kept in memory as they are refused, written
//! once a minute, and read from both.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue};
use weir_model::traffic::RefusedRequest;
use weir_model::{ProjectId, Timestamp};

use super::{READ, WRITE, signed, unsigned};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// The number of refused requests that are kept per project.
const KEPT: usize = 50;
/// The largest number of projects with requests that wait to be written.
const PROJECTS: usize = 1_000;

const DELETE: Statement =
    Statement::delete("refused requests of a project that goes", "DELETE $requests RETURN NONE;");

/// Refused requests that are not written yet. Each takes one short lock. Accepted
/// requests take none.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<BTreeMap<ProjectId, VecDeque<RefusedRequest>>>);

impl Refusals {
    /// Adds a request. If the project has too many, its oldest request is dropped.
    pub fn note(&self, project: ProjectId, request: RefusedRequest) {
        let mut noted = self.lock();
        if noted.len() >= PROJECTS && !noted.contains_key(&project) {
            return;
        }
        let requests = noted.entry(project).or_default();
        if requests.len() >= KEPT {
            requests.pop_front();
        }
        requests.push_back(request);
    }

    fn of(&self, project: ProjectId) -> Vec<RefusedRequest> {
        self.lock()
            .get(&project)
            .map(|requests| requests.iter().cloned().collect())
            .unwrap_or_default()
    }

    fn all(&self) -> Vec<(ProjectId, Vec<RefusedRequest>)> {
        let noted = self.lock();
        noted.iter().map(|(of, requests)| (*of, requests.iter().cloned().collect())).collect()
    }

    /// Removes written requests. Until then they are read from here.
    fn written(&self, project: ProjectId, written: &[RefusedRequest]) {
        let mut noted = self.lock();
        if let Some(requests) = noted.get_mut(&project) {
            requests.retain(|request| !written.iter().any(|other| other.key == request.key));
            if requests.is_empty() {
                noted.remove(&project);
            }
        }
    }

    /// Drops the requests of a deleted project. Otherwise they would be written after its
    /// purge, and never removed.
    pub(super) fn forget(&self, project: ProjectId) {
        self.lock().remove(&project);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProjectId, VecDeque<RefusedRequest>>> {
        // Every change leaves consistent lists, so a poisoned lock does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(SurrealValue)]
struct StoredRequest {
    key: String,
    at: i64,
    code: String,
    detail: Option<String>,
    route: String,
    library: Option<String>,
    bytes: i64,
    project_key: Option<String>,
}

#[derive(SurrealValue)]
struct RequestsRow {
    id: RecordId,
    requests: Vec<StoredRequest>,
}

impl From<RefusedRequest> for StoredRequest {
    fn from(request: RefusedRequest) -> Self {
        let RefusedRequest { key, at, code, detail, route, library, bytes, project_key } = request;
        let (at, bytes) = (at.micros(), signed(bytes));
        Self { key, at, code, detail, route, library, bytes, project_key }
    }
}

impl From<StoredRequest> for RefusedRequest {
    fn from(stored: StoredRequest) -> Self {
        let StoredRequest { key, at, code, detail, route, library, bytes, project_key } = stored;
        let (at, bytes) = (Timestamp::from_micros(at), unsigned(bytes));
        Self { key, at, code, detail, route, library, bytes, project_key }
    }
}

/// The last refused requests of a project, written or not, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn refused(store: &Store, project: ProjectId) -> Result<Vec<RefusedRequest>> {
    // First those in memory, because they stay there until they are written.
    let noted = store.traffic().refusals().of(project);
    Ok(unite(kept(store, project).await?, noted))
}

/// Writes the requests that were added since the last call.
///
/// # Errors
/// When the store cannot be read or written; a further call continues.
pub async fn write_refused(store: &Store) -> Result<()> {
    let refusals = store.traffic().refusals();
    for (project, noted) in refusals.all() {
        let united = unite(kept(store, project).await?, noted.clone());
        let requests = united.into_iter().map(StoredRequest::from).collect();
        let row = RequestsRow { id: id(project), requests };
        store.db.run(WRITE, bind! { rows: vec![row] }).await?;
        refusals.written(project, &noted);
    }
    Ok(())
}

/// Removes the refused requests of a project.
pub(super) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    store.db.run(DELETE, bind! { requests: id(project) }).await.map(drop)
}

async fn kept(store: &Store, project: ProjectId) -> Result<Vec<RefusedRequest>> {
    let row: Option<RequestsRow> =
        store.db.run(READ, bind! { ids: vec![id(project)] }).await?.row(0)?;
    Ok(row.map(|row| row.requests.into_iter().map(Into::into).collect()).unwrap_or_default())
}

/// Merges both lists, newest first, up to the number that is kept.
fn unite(mut requests: Vec<RefusedRequest>, more: Vec<RefusedRequest>) -> Vec<RefusedRequest> {
    let present: HashSet<String> = requests.iter().map(|request| request.key.clone()).collect();
    requests.extend(more.into_iter().filter(|request| !present.contains(&request.key)));
    requests.sort_by_key(|request| Reverse(request.at));
    requests.truncate(KEPT);
    requests
}

fn id(project: ProjectId) -> RecordId {
    RecordId::new("refused_requests", RecordIdKey::Number(project.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Location, Settings};

    const PROJECT: ProjectId = ProjectId(7);

    fn request(number: i64) -> RefusedRequest {
        RefusedRequest {
            key: format!("refused-{number}"),
            at: Timestamp::from_micros(number),
            code: "invalid_payload".to_owned(),
            detail: Some("The body is no JSON.".to_owned()),
            route: "/batch/".to_owned(),
            library: None,
            bytes: 12,
            project_key: Some("phc_abcd...".to_owned()),
        }
    }

    #[tokio::test]
    async fn requests_are_read_written_or_not_once_each() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let refusals = store.traffic().refusals();
        refusals.note(PROJECT, request(1));
        write_refused(&store).await.unwrap();
        assert!(refusals.all().is_empty());
        refusals.note(PROJECT, request(2));
        assert_eq!(refused(&store, PROJECT).await.unwrap(), [request(2), request(1)]);
        // Written, but still in memory too.
        write_refused(&store).await.unwrap();
        refusals.note(PROJECT, request(2));
        assert_eq!(refused(&store, PROJECT).await.unwrap().len(), 2);
        assert!(refused(&store, ProjectId(8)).await.unwrap().is_empty());
        purge(&store, PROJECT).await.unwrap();
        refusals.written(PROJECT, &[request(2)]);
        assert!(refused(&store, PROJECT).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_last_ones_are_kept() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        for round in 0..3 {
            for number in 0..40 {
                store.traffic().refusals().note(PROJECT, request(round * 40 + number));
            }
            write_refused(&store).await.unwrap();
        }
        let found = refused(&store, PROJECT).await.unwrap();
        assert_eq!((found.len(), found[0].at.micros(), found[49].at.micros()), (50, 119, 70));
    }

    #[test]
    fn memory_has_a_bound() {
        let refusals = Refusals::default();
        for number in 0..200 {
            refusals.note(PROJECT, request(number));
        }
        for number in 0..2_000 {
            refusals.note(ProjectId(100 + number), request(1));
        }
        let all = refusals.all();
        assert_eq!(all.len(), PROJECTS);
        assert_eq!(refusals.of(PROJECT).first().unwrap().key, "refused-150");
    }
}
