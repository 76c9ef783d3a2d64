//! Reading the arguments of tools: the project, a page of a list, a search.

use weir_model::Patch;
use weir_model::errors::FieldError;
use weir_model::pagination::{DEFAULT_LIMIT, MAX_LIMIT, Page};
use weir_service::{Ctx, ProjectCtx};

use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract;
use crate::http::input::Fields;

/// Most characters of a text that names are searched for.
const SEARCH_MAX: usize = 400;

/// Refuses arguments that the tool does not have. An answer that ignores one would be to
/// another question.
pub(super) fn check_names(fields: &Fields, known: &[&str]) -> Result<(), FieldError> {
    match fields.names().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().take(64).collect();
            Err(FieldError::new(&shown, "invalid_input", "There is no such argument."))
        }
    }
}

/// The project that is named, or the only one of the caller.
pub(super) async fn project(app: &App, ctx: &Ctx, fields: &Fields) -> ApiResult<ProjectCtx> {
    if let Patch::Set(id) = fields.nullable_integer("project_id", 1, i64::MAX)? {
        return extract::enter_project(app, ctx, &id.to_string()).await;
    }
    let only = app.services.projects.only(ctx).await?;
    only.ok_or_else(|| {
        let detail = "This key has no project, or several: say which one. list_projects has them.";
        FieldError::new("project_id", "required", detail).into()
    })
}

/// The page of a list.
pub(super) fn page(fields: &Fields) -> Result<Page, FieldError> {
    let number = |name: &str, least: u64, most: u64, usual: u64| {
        let bound = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let read = fields.nullable_integer(name, bound(least), bound(most))?;
        let read = read.apply(bound(usual), bound(usual));
        Ok::<u64, FieldError>(u64::try_from(read).unwrap_or(usual))
    };
    Ok(Page {
        limit: number("limit", 1, MAX_LIMIT, DEFAULT_LIMIT)?,
        offset: number("offset", 0, u64::from(u32::MAX), 0)?,
    })
}

/// The text that names must contain. `None`: all of them.
pub(super) fn search(fields: &Fields) -> Result<Option<String>, FieldError> {
    let text = fields.nullable_text("search", SEARCH_MAX)?.over(None);
    Ok(text.filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(sent: Value) -> Fields {
        let Value::Object(members) = sent else { panic!("no object") };
        Fields::of_object(members)
    }

    #[test]
    fn a_page_has_bounds() {
        for (sent, expected) in [
            (json!({}), Some((100, 0))),
            (json!({"limit": null, "offset": null}), Some((100, 0))),
            (json!({"limit": 7, "offset": "14"}), Some((7, 14))),
            (json!({"limit": 0}), None),
            (json!({"limit": 1001}), None),
            (json!({"offset": -1}), None),
            (json!({"offset": 1e30}), None),
            (json!({"limit": []}), None),
        ] {
            let found = page(&fields(sent.clone())).ok();
            assert_eq!(found.map(|page| (page.limit, page.offset)), expected, "{sent}");
        }
    }

    #[test]
    fn an_unknown_argument_is_refused() {
        let known = ["limit", "search"];
        assert!(check_names(&fields(json!({"limit": 1})), &known).is_ok());
        let fault = check_names(&fields(json!({"limit": 1, "projekt": 2})), &known).unwrap_err();
        assert_eq!(fault.attr.as_deref(), Some("projekt"));
        let long = check_names(&fields(json!({"x".repeat(1000): 1})), &known).unwrap_err();
        assert_eq!(long.attr.unwrap().len(), 64);
    }
}
