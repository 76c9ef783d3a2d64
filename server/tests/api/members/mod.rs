//! `/api/organizations/{organization_id}/members/` (API-31, API-32).

mod delete;
mod keys;
mod list;
mod update;

use weir_testkit::{Caller, Person, TestApp};

async fn writer(person: &Person) -> Caller {
    person.key(&["organization_member:write"]).await
}

fn path(app: &TestApp, person: &Person) -> String {
    format!("/api/organizations/{}/members/{}/", app.organization(), person.id())
}
