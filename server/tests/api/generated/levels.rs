//! The rights of members, administrators and owners: every operation with a valid body
//! and keys with all scopes. The table is in the repository.

use std::fmt::Write as _;

use weir_model::organizations::Level;

use super::fixtures::World;
use super::operations::{Operation, guarded};
use crate::snapshot;

#[tokio::test(flavor = "multi_thread")]
async fn levels_are_as_in_the_table() {
    let mut operations: Vec<Operation> = guarded().collect();
    operations.sort_by_key(|operation| {
        (operation.place(), operation.path.clone(), operation.method.to_string())
    });
    let mut columns = Vec::new();
    for level in [Level::Member, Level::Administrator, Level::Owner] {
        let world = World::new().await;
        let person = world.app.outsider("grace").await;
        world.app.join(&person, level).await;
        let caller = person.key(&["*"]).await;
        let mut column = Vec::new();
        for operation in &operations {
            let ids = world.ids(operation).await;
            let body = world.good_body(operation, &caller).await;
            let answer = operation.call_with(&caller, &ids, body).send().await;
            assert!(
                operation.statuses().contains(&answer.status),
                "{} answered {}, which the document does not name: {:?}",
                operation.id,
                answer.status,
                answer.body,
            );
            column.push(answer.status);
        }
        columns.push(column);
    }
    let mut table = String::from(
        "# Status of every operation by level, with a key of scope *.\n# member administrator owner\n",
    );
    for (at, operation) in operations.iter().enumerate() {
        for column in &columns {
            write!(table, "{} ", column[at]).unwrap();
        }
        writeln!(table, "{} {}", operation.method, operation.path).unwrap();
    }
    snapshot::assert_same("server/tests/api/generated/levels.txt", &table, "levels");
}
