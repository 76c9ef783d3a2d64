//! Methods that a path does not have, and answers that nobody could read.

use std::collections::BTreeSet;

use http::Method;

use super::fixtures::World;
use super::operations::{guarded, methods};

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_a_path_lacks_are_named_with_those_that_it_has() {
    let world = World::new().await;
    let mut seen = BTreeSet::new();
    for operation in guarded().filter(|operation| seen.insert(operation.path.clone())) {
        let there = methods(&operation.path);
        let ids = world.ids(&operation).await;
        let path = operation.path_with(&ids);
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            if there.contains(&method) {
                continue;
            }
            let answer = world.owner.call(method.clone(), &path).send().await;
            let detail = format!("Method \"{method}\" not allowed.");
            answer.assert_error(405, "invalid_request", "method_not_allowed", &detail);
            let allow: BTreeSet<&str> = answer.header("allow").unwrap().split(", ").collect();
            for method in &there {
                assert!(allow.contains(method.as_str()), "{path}: {allow:?}");
            }
            assert!(!allow.contains(method.as_str()), "{path}: {allow:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_no_json_is_told_before_anything_else() {
    let world = World::new().await;
    for operation in guarded() {
        let ids = world.ids(&operation).await;
        for caller in [&world.owner, &world.app.anonymous()] {
            let call = operation.call(caller, &ids).header("accept", "text/html");
            call.send().await.assert_error(
                406,
                "invalid_request",
                "not_acceptable",
                "Could not satisfy the request Accept header.",
            );
        }
    }
}
