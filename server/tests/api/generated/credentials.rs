//! No key, a key without the scope, a key of somebody else.

use weir_model::scopes::ScopeObject;

use super::fixtures::World;
use super::operations::guarded;

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_for_a_key() {
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
async fn a_scope_to_read_does_not_write_and_one_to_write_reads() {
    let world = World::new().await;
    let key = async |action: &str| {
        let objects = ScopeObject::OFFERED.iter();
        let scopes: Vec<String> =
            objects.map(|object| format!("{}:{action}", object.text())).collect();
        world.app.owner().key(&scopes.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let (reader, writer) = (key("read").await, key("write").await);
    for operation in guarded() {
        let Some(scope) = operation.scopes().into_iter().next() else { continue };
        let ids = world.ids(&operation).await;
        if scope.ends_with(":write") {
            operation.call(&reader, &ids).send().await.assert_error(
                403,
                "authentication_error",
                "permission_denied",
                &format!("API key missing required scope '{scope}'"),
            );
        } else {
            for caller in [&reader, &writer] {
                let answer = operation.call(caller, &ids).send().await;
                let expected = operation.good();
                assert_eq!(Some(answer.status), expected, "{}: {:?}", operation.id, answer.body);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_is_not_there() {
    let world = World::new().await;
    let outsider = world.app.stranger("mallory").await.key(&["*"]).await;
    for operation in guarded() {
        let ids = world.ids(&operation).await;
        if !ids.iter().any(|(name, _)| ["organization_id", "project_id"].contains(&name.as_str())) {
            continue;
        }
        let answer = operation.call(&outsider, &ids).send().await;
        assert_eq!(answer.status, 404, "{}: {:?}", operation.id, answer.body);
    }
}
