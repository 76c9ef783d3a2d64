//! Saved insights of a project (API-63).
//!
//! What belongs here: who may save insights, which questions can be saved, and on which
//! dashboards an insight is. What does not: the answers to questions; where the tiles of a
//! dashboard are (`dashboards`).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::insights::{
    DASHBOARDS_MAX, DESCRIPTION_MAX, INSIGHTS_MAX, Insight, InsightInput, InsightPatch,
    InsightQuery, NAME_MAX, QUERY_MAX, SHORT_ID_LENGTH, TAG_MAX, TAGS_MAX,
};
use weir_model::pagination::{Page, Paged};
use weir_model::{DashboardId, InsightId, Patch, validate};
use weir_questions::Query;
use weir_store::dashboards::{self as dashboard_rows, DashboardRow, TileRow};
use weir_store::ids;
use weir_store::insights::{self as rows, ChangedTiles, InsightBrief, InsightRow, STALE};
use weir_store::numbered::Created;
use weir_store::update::{Updated, lock, update_with};

use crate::activity::{self, About, Changes};
use crate::ctx::ProjectCtx;
use crate::dashboards;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::{Core, Result, members, secrets, update};

/// How often a change begins again after its dashboards were changed.
const TRIES: usize = 8;

/// The service for saved insights.
#[derive(Clone)]
pub struct Insights {
    core: Arc<Core>,
}

/// A change whose values are valid.
#[derive(Debug, Clone)]
struct ValidPatch {
    patch: InsightPatch,
    /// The canonical form of another question.
    query: Option<String>,
    /// The dashboards that are to have a tile.
    dashboards: Option<BTreeSet<DashboardId>>,
}

impl Insights {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The insights of the project that are not hidden, in the order of their creation.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Invalid`] for a page that is too large.
    pub async fn list(
        &self,
        project: &ProjectCtx,
        query: &InsightQuery,
        page: Page,
    ) -> Result<Paged<Insight>> {
        policy::check(&project.org, Action::ReadInsights)?;
        let search = query.search.as_deref().map(str::to_lowercase);
        let found = rows::briefs(&self.core.store, project.project).await?.into_iter();
        let found = found.filter(|brief| is_wanted(brief, query, search.as_deref()));
        let ids: Vec<InsightId> = found.map(|brief| brief.id).collect();
        let count = ids.len() as u64;
        let found = rows::rows(&self.core.store, project.project, &page.slice(ids)).await?;
        Ok(Paged { count, results: shown(&self.core, project, found).await? })
    }

    /// One insight that is not hidden, by its number or its short id.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get(&self, project: &ProjectCtx, insight: &str) -> Result<Insight> {
        policy::check(&project.org, Action::ReadInsights)?;
        let row = self.find(project, insight).await?;
        if row.deleted {
            return Err(Error::NotFound(NOT_FOUND));
        }
        self.show(project, row).await
    }

    /// Saves an insight.
    ///
    /// # Errors
    /// [`Error::MissingScope`], also for dashboards without their scope; [`Error::Invalid`]
    /// for a question that cannot be read, a missing dashboard, or too many insights.
    pub async fn create(
        &self,
        project: &ProjectCtx,
        input: impl Into<Unchecked<'_, InsightInput>>,
    ) -> Result<Insight> {
        policy::check(&project.org, Action::WriteInsights)?;
        let InsightInput { query, rest } = input.into().read()?;
        let query = canonical(&query)?;
        let patch = ValidPatch::of(rest)?;
        let (store, ctx) = (&self.core.store, &project.org.ctx);
        let mut new = InsightRow {
            id: rows::next_number(store).await?,
            project: project.project,
            short_id: String::new(),
            name: None,
            derived_name: None,
            description: None,
            query,
            tags: Vec::new(),
            favorited: false,
            saved: true,
            deleted: false,
            dashboards: Vec::new(),
            created_by: ctx.user(),
            created_at: ctx.now,
            last_modified_by: ctx.user(),
            last_modified_at: ctx.now,
        };
        patch.apply(&mut new)?;
        for _ in 0..TRIES {
            let mut row = new.clone();
            row.short_id = secrets::letters::<SHORT_ID_LENGTH>()?;
            let boards = self.place(project, &mut row, patch.dashboards.as_ref()).await?;
            let entry = entry(project, &row, AuditAction::Created, created(&row));
            let organization = project.org.organization;
            match rows::create(store, organization, &row, &boards, &[entry]).await? {
                Created::Yes => return self.show(project, row).await,
                // The short id is taken, or a dashboard was changed.
                Created::Refused(_) => {}
                refused => return Err(update::not_created(refused, INSIGHTS_MAX, "insights")),
            }
        }
        Err(overtaken())
    }

    /// Changes an insight, also a hidden one.
    ///
    /// # Errors
    /// As [`create`](Self::create); [`Error::NotFound`].
    pub async fn update(
        &self,
        project: &ProjectCtx,
        insight: &str,
        patch: impl Into<Unchecked<'_, InsightPatch>>,
    ) -> Result<Insight> {
        policy::check(&project.org, Action::WriteInsights)?;
        let id = self.find(project, insight).await?.id;
        let patch = &ValidPatch::of(patch.into().read()?)?;
        let (user, now) = (project.org.ctx.user(), project.org.ctx.now);
        for _ in 0..TRIES {
            let change = |before: InsightRow| async move {
                let mut row = before.clone();
                patch.apply(&mut row)?;
                let boards = self.place(project, &mut row, patch.dashboards.as_ref()).await?;
                let changes = changes(&before, &row);
                let mut entries = Vec::new();
                if !changes.is_empty() {
                    row.last_modified_by = user;
                    entries.push(entry(project, &row, AuditAction::Updated, changes));
                }
                Ok::<_, Error>((update::change(before, row, now, entries, boards), ()))
            };
            let key = rows::key(project.project, id);
            match update_with(&self.core.store, key, (), change).await? {
                Updated::Stored((row, ())) => return self.show(project, row).await,
                Updated::Refused(reason) if reason == STALE => {}
                Updated::Gone | Updated::Refused(_) => return Err(Error::NotFound(NOT_FOUND)),
            }
        }
        Err(overtaken())
    }

    /// Deletes an insight for ever, with its tiles.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn delete(&self, project: &ProjectCtx, insight: &str) -> Result<()> {
        policy::check(&project.org, Action::WriteInsights)?;
        let id = self.find(project, insight).await?.id;
        let store = &self.core.store;
        let _permit = lock::<InsightRow>(store, &rows::key(project.project, id)).await;
        let row = self.row(project, id).await?;
        let changes = Changes::none().field("name", &name(&row), &None);
        let entry = entry(project, &row, AuditAction::Deleted, changes);
        let revision = ids::time_ordered(project.org.ctx.now);
        Ok(rows::delete(store, &row, revision, &[entry]).await?)
    }

    /// Puts an insight on the dashboards that are wanted, and removes it from all others that
    /// are not hidden. `None` keeps them. Returns the tiles of the dashboards that change.
    async fn place(
        &self,
        project: &ProjectCtx,
        row: &mut InsightRow,
        wanted: Option<&BTreeSet<DashboardId>>,
    ) -> Result<Vec<ChangedTiles>> {
        let Some(wanted) = wanted else { return Ok(Vec::new()) };
        let mut involved = wanted.clone();
        involved.extend(&row.dashboards);
        let involved: Vec<DashboardId> = involved.into_iter().collect();
        let boards = dashboard_rows::rows(&self.core.store, project.project, &involved).await?;
        for id in wanted {
            if !boards.iter().any(|board| board.id == *id && !board.deleted) {
                let detail = format!("Object with id={id} does not exist.");
                return Err(FieldError::new("dashboards", "does_not_exist", detail).into());
            }
        }
        let mut changed = Vec::new();
        for board in boards.into_iter().filter(|board| !board.deleted) {
            let is_wanted = wanted.contains(&board.id);
            if is_wanted == row.dashboards.contains(&board.id) {
                continue;
            }
            let DashboardRow { id, revision: before, mut tiles, mut next_tile, .. } = board;
            if is_wanted {
                dashboards::require_room(&tiles, "dashboards")?;
                tiles.push(TileRow::new(next_tile, row.id));
                next_tile += 1;
                row.dashboards.push(id);
            } else {
                tiles.retain(|tile| tile.insight != row.id);
                row.dashboards.retain(|other| *other != id);
            }
            let after = ids::time_ordered(project.org.ctx.now);
            changed.push(ChangedTiles { dashboard: id, before, after, tiles, next_tile });
        }
        if !changed.is_empty() {
            policy::check(&project.org, Action::WriteDashboards)?;
        }
        Ok(changed)
    }

    async fn find(&self, project: &ProjectCtx, insight: &str) -> Result<InsightRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = match InsightId::in_path(insight) {
            Some(id) => id,
            None if is_short_id(insight) => {
                let found = rows::by_short_id(&self.core.store, project.project, insight).await?;
                found.ok_or_else(missing)?
            }
            None => return Err(missing()),
        };
        self.row(project, id).await
    }

    async fn row(&self, project: &ProjectCtx, id: InsightId) -> Result<InsightRow> {
        let found = rows::rows(&self.core.store, project.project, &[id]).await?;
        found.into_iter().next().ok_or(Error::NotFound(NOT_FOUND))
    }

    async fn show(&self, project: &ProjectCtx, row: InsightRow) -> Result<Insight> {
        let shown = shown(&self.core, project, vec![row]).await?.pop();
        shown.ok_or_else(|| Error::Internal("an insight is not shown".to_owned()))
    }
}

impl ValidPatch {
    fn of(patch: InsightPatch) -> Result<Self> {
        let query = match patch.query.clone().required("query")? {
            Some(query) => Some(canonical(&query)?),
            None => None,
        };
        let dashboards = match &patch.dashboards {
            Patch::Keep => None,
            Patch::Clear => Some(BTreeSet::new()),
            Patch::Set(ids) => {
                validate::list_length("dashboards", ids.len(), DASHBOARDS_MAX)?;
                Some(ids.iter().copied().collect())
            }
        };
        Ok(Self { patch, query, dashboards })
    }

    /// Changes all fields of a row except its dashboards.
    fn apply(&self, row: &mut InsightRow) -> Result<()> {
        let patch = self.patch.clone();
        row.name = text("name", patch.name, NAME_MAX, row.name.take())?;
        row.derived_name =
            text("derived_name", patch.derived_name, NAME_MAX, row.derived_name.take())?;
        row.description =
            text("description", patch.description, DESCRIPTION_MAX, row.description.take())?;
        if let Some(query) = &self.query {
            row.query.clone_from(query);
        }
        row.tags = tags(patch.tags, std::mem::take(&mut row.tags))?;
        row.favorited = patch.favorited.required("favorited")?.unwrap_or(row.favorited);
        row.saved = patch.saved.required("saved")?.unwrap_or(row.saved);
        row.deleted = patch.deleted.required("deleted")?.unwrap_or(row.deleted);
        Ok(())
    }
}

/// A text; an empty one is none.
fn text(
    attr: &str,
    patch: Patch<String>,
    most: usize,
    present: Option<String>,
) -> Result<Option<String>, FieldError> {
    let text = patch.try_map(|text| validate::optional_text(attr, &text, most))?;
    Ok(text.over(present).filter(|text| !text.is_empty()))
}

/// The labels of an insight or a dashboard, without repetitions.
pub(crate) fn tags(
    patch: Patch<Vec<String>>,
    present: Vec<String>,
) -> Result<Vec<String>, FieldError> {
    let tags = patch.try_map(|tags| validate::texts("tags", &tags, TAGS_MAX, TAG_MAX))?;
    let mut tags = tags.apply(present, Vec::new());
    let mut seen = BTreeSet::new();
    tags.retain(|tag| seen.insert(tag.clone()));
    Ok(tags)
}

/// The canonical form of a question, as JSON text.
fn canonical(query: &Value) -> Result<String> {
    let query = Query::read(query).map_err(|fault| below("query", fault))?;
    let text = serde_json::to_string(&query)
        .map_err(|error| Error::Internal(format!("a question without a JSON form: {error}")))?;
    if text.len() > QUERY_MAX {
        let detail = format!("Ensure this question has no more than {QUERY_MAX} bytes.");
        return Err(FieldError::new("query", "max_length", detail).into());
    }
    Ok(text)
}

/// A fault of a part of a field, with the path from the body.
pub(crate) fn below(field: &str, fault: FieldError) -> FieldError {
    let attr = match &fault.attr {
        Some(attr) => format!("{field}__{attr}"),
        None => field.to_owned(),
    };
    FieldError { attr: Some(attr), ..fault }
}

fn is_short_id(text: &str) -> bool {
    text.len() == SHORT_ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// `search` is in lower case.
fn is_wanted(brief: &InsightBrief, query: &InsightQuery, search: Option<&str>) -> bool {
    let has = |name: &Option<String>, part: &str| {
        name.as_deref().is_some_and(|name| name.to_lowercase().contains(part))
    };
    !brief.deleted
        && search.is_none_or(|part| has(&brief.name, part) || has(&brief.derived_name, part))
        && query.short_id.as_deref().is_none_or(|short_id| short_id == brief.short_id)
        && query.saved.is_none_or(|saved| saved == brief.saved)
        && query.favorited.is_none_or(|favorited| favorited == brief.favorited)
        && query.created_by.is_none_or(|user| user == brief.created_by)
}

/// Insights as the API shows them, in their order.
pub(crate) async fn shown(
    core: &Core,
    project: &ProjectCtx,
    found: Vec<InsightRow>,
) -> Result<Vec<Insight>> {
    let users = found.iter().flat_map(|row| [row.created_by, row.last_modified_by]).collect();
    let users = members::users_by_id(core, project.org.organization, users).await?;
    let visible = match found.iter().all(|row| row.dashboards.is_empty()) {
        true => BTreeSet::new(),
        false => dashboards::visible(core, project.project).await?,
    };
    let show = |row: InsightRow| -> Result<Insight> {
        Ok(Insight {
            id: row.id,
            query: stored(&row.query)?,
            short_id: row.short_id,
            name: row.name,
            derived_name: row.derived_name,
            description: row.description,
            dashboards: row.dashboards.into_iter().filter(|id| visible.contains(id)).collect(),
            tags: row.tags,
            favorited: row.favorited,
            saved: row.saved,
            deleted: row.deleted,
            created_at: row.created_at,
            created_by: users.get(&row.created_by).cloned(),
            last_modified_at: row.last_modified_at,
            last_modified_by: users.get(&row.last_modified_by).cloned(),
        })
    };
    found.into_iter().map(show).collect()
}

/// The value of a stored JSON text.
pub(crate) fn stored(text: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|error| Error::Internal(format!("a stored value is not JSON: {error}")))
}

fn name(row: &InsightRow) -> Option<&str> {
    row.name.as_deref().or(row.derived_name.as_deref())
}

/// The fields of a new insight that differ from those of one without any.
fn created(row: &InsightRow) -> Changes {
    let query: Option<Value> = stored(&row.query).ok();
    let empty = InsightRow {
        name: None,
        derived_name: None,
        description: None,
        query: String::new(),
        tags: Vec::new(),
        dashboards: Vec::new(),
        favorited: false,
        saved: true,
        deleted: false,
        ..row.clone()
    };
    Changes::none().field("query", &None, &query).and(beside_query(&empty, row))
}

fn changes(before: &InsightRow, after: &InsightRow) -> Changes {
    let query = |row: &InsightRow| stored(&row.query).ok();
    Changes::none().field("query", &query(before), &query(after)).and(beside_query(before, after))
}

fn beside_query(before: &InsightRow, after: &InsightRow) -> Changes {
    Changes::none()
        .field("name", &before.name, &after.name)
        .field("derived_name", &before.derived_name, &after.derived_name)
        .field("description", &before.description, &after.description)
        .field("dashboards", &before.dashboards, &after.dashboards)
        .field("tags", &before.tags, &after.tags)
        .field("favorited", &before.favorited, &after.favorited)
        .field("saved", &before.saved, &after.saved)
        .field("deleted", &before.deleted, &after.deleted)
}

fn entry(project: &ProjectCtx, row: &InsightRow, action: AuditAction, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::Insight,
        id: row.id.to_string(),
        name: name(row),
        project: Some(row.project),
    };
    activity::entry(&project.org.ctx, project.org.organization, about, action, changes)
}

fn overtaken() -> Error {
    Error::Unavailable("other requests are changing its dashboards")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_is_kept_in_its_canonical_form() {
        let sent = json!({
            "kind": "InsightVizNode",
            "source": {"kind": "TrendsQuery", "series": [{"event": "paid", "math": null}]},
        });
        let text = canonical(&sent).unwrap();
        let kept = stored(&text).unwrap();
        assert_eq!(kept["kind"], "TrendsQuery");
        assert_eq!(canonical(&kept).unwrap(), text);
    }

    #[test]
    fn faults_of_a_question_have_their_path_from_the_body() {
        let attr = |sent: &Value| match canonical(sent) {
            Err(Error::Invalid(fault)) => fault.attr.unwrap(),
            other => panic!("{other:?}"),
        };
        let unknown = json!({"kind": "TrendsQuery", "series": [{"event": "a", "math": "most"}]});
        assert_eq!(attr(&unknown), "query__series__0__math");
        assert_eq!(attr(&json!({})), "query__kind");
        assert_eq!(attr(&json!("trends")), "query");
        // A long list is within the bounds of a filter, and too long to be kept.
        let values: Vec<String> = (0..1000).map(|n| format!("{n:0>100}")).collect();
        let filter = json!({"key": "plan", "operator": "exact", "value": values});
        let long = json!({"kind": "TrendsQuery", "series": [{"event": "a"}],
                          "properties": [filter]});
        assert_eq!(attr(&long), "query");
    }

    #[test]
    fn only_letters_are_a_short_id() {
        for (text, expected) in
            [("abcdefgh", true), ("abcdefg", false), ("ABCDEFGH", false), ("abcdefg1", false)]
        {
            assert_eq!(is_short_id(text), expected, "{text}");
        }
    }
}
