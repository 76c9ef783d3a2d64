//! `/api/organizations/{organization_id}/members/` (management-api 6, 9).

mod delete;
mod keys;
mod list;
mod update;

use weir_model::organizations::Level;
use weir_testkit::{Caller, Person, TestApp};

/// Somebody of this level in the owner's organization.
async fn member(app: &TestApp, name: &str, level: Level) -> Person {
    let person = app.stranger(name).await;
    app.join(&person, level).await;
    person
}

async fn writer(person: &Person) -> Caller {
    person.key(&["organization_member:write"]).await
}

fn path(app: &TestApp, person: &Person) -> String {
    format!("/api/organizations/{}/members/{}/", app.organization(), person.id())
}
