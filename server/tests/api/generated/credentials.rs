//! No key, a key without the scope, a key of another user.

use weir_model::scopes::ScopeObject;

use super::fixtures::World;
use super::operations::{Operation, guarded};

#[tokio::test(flavor = "multi_thread")]
async fn public_routes_need_no_key() {
    let world = World::new().await;
    let nobody = world.app.anonymous();
    for operation in guarded() {
        let ids = world.ids(&operation).await;
        operation.call(&nobody, &ids).send().await.assert_error(
            401,
            "authentication_error",
            "not_authenticated",
            "Authentication credentials were not provided.",
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_the_scope_hears_which() {
    let world = World::new().await;
    let other = world.app.owner().key(&["survey:write"]).await;
    for operation in guarded() {
        let Some(scope) = operation.scopes().into_iter().next() else { continue };
        let ids = world.ids(&operation).await;
        operation.call(&other, &ids).send().await.assert_error(
            403,
            "authentication_error",
            "permission_denied",
            &format!("API key missing required scope '{scope}'"),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_to_read_does_not_write_and_one_to_write_does_both() {
    let world = World::new().await;
    let key = async |action: &str| {
        let objects = ScopeObject::OFFERED.iter();
        let scopes: Vec<String> =
            objects.map(|object| format!("{}:{action}", object.text())).collect();
        world.app.owner().key(&scopes.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let (reader, writer) = (key("read").await, key("write").await);
    let mut operations: Vec<Operation> =
        guarded().filter(|one| !one.is_refused() && !one.needs_mail()).collect();
    operations.sort_by_key(Operation::place);
    for operation in operations {
        // No list of scopes is as good as `*`.
        let Some(scope) = operation.scopes().into_iter().next().filter(|scope| scope != "*") else {
            continue;
        };
        let ids = world.ids(&operation).await;
        let is_write = scope.ends_with(":write");
        if is_write {
            operation.call(&reader, &ids).send().await.assert_error(
                403,
                "authentication_error",
                "permission_denied",
                &format!("API key missing required scope '{scope}'"),
            );
        }
        for caller in if is_write { vec![&writer] } else { vec![&reader, &writer] } {
            let body = world.good_body(&operation, caller).await;
            let answer = operation.call_with(caller, &ids, body).send().await;
            let expected = operation.good();
            assert_eq!(Some(answer.status), expected, "{}: {:?}", operation.id, answer.body);
        }
    }
}

/// Answers do not show objects beyond the limits of the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_limited_key_shows_nothing_beyond_its_limits() {
    let world = World::new().await;
    let app = &world.app;
    let projects = format!("/api/organizations/{}/projects/", app.organization());
    let hidden = [("/api/organizations/", "Hidden company"), (&projects, "Hidden project")];
    for (path, name) in hidden {
        let made = world.owner.post(path, &serde_json::json!({"name": name})).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
    }
    let of_project = app.owner().limited_key(&["*"], &[], &[app.project()]).await;
    let of_organization = app.owner().limited_key(&["*"], &[app.organization()], &[]).await;
    for operation in guarded().filter(|operation| operation.method == http::Method::GET) {
        let ids = world.ids(&operation).await;
        for (caller, hidden) in [(&of_project, "Hidden "), (&of_organization, "Hidden company")] {
            let answer = operation.call(caller, &ids).send().await;
            let text = String::from_utf8_lossy(&answer.body);
            assert!(!text.contains(hidden), "{}: {text}", operation.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_is_answered_like_what_does_not_exist() {
    let world = World::new().await;
    let outsider = world.app.outsider("mallory").await.key(&["*"]).await;
    for operation in guarded() {
        let ids = world.ids(&operation).await;
        let with = |organization: &str, project: &str| -> Vec<(String, String)> {
            let mut ids = ids.clone();
            for (name, id) in &mut ids {
                match name.as_str() {
                    "organization_id" => organization.clone_into(id),
                    "project_id" => project.clone_into(id),
                    _ => {}
                }
            }
            ids
        };
        let missing = with("00000000-0000-0000-0000-000000000007", "4711");
        if missing == ids {
            continue;
        }
        let foreign = operation.call(&outsider, &ids).send().await;
        assert_eq!(foreign.status, 404, "{}: {:?}", operation.id, foreign.body);
        for other in [missing, with("junk", "junk")] {
            let answer = operation.call(&outsider, &other).send().await;
            assert_eq!((answer.status, &answer.body), (404, &foreign.body), "{}", operation.id);
            for (name, value) in &foreign.headers {
                if !["x-request-id", "date"].contains(&name.as_str()) {
                    assert_eq!(answer.headers.get(name), Some(value), "{}", operation.id);
                }
            }
        }
    }
}
