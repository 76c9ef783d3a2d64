//! Methods that a path does not have, and callers that accept no media type of the
//! answer.

use std::collections::BTreeSet;

use http::Method;

use super::fixtures::World;
use super::operations::{Operation, guarded, methods};

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
async fn put_works_wherever_patch_does() {
    let world = World::new().await;
    for operation in guarded().filter(|operation| operation.method == Method::PATCH) {
        let ids = world.ids(&operation).await;
        let (path, body) = (operation.path_with(&ids), operation.body());
        let read = async |method: Method| {
            let call = world.owner.call(method, &path);
            match &body {
                Some(body) => call.json(body).send().await,
                None => call.send().await,
            }
        };
        let (patched, put) = (read(Method::PATCH).await, read(Method::PUT).await);
        let shared = format!("put_{}", operation.id);
        match guarded().any(|other| other.id == shared) {
            true => assert_eq!(put.status, patched.status, "{path}: {:?}", put.body),
            false => assert!([200, 400].contains(&put.status), "{path}: {:?}", put.body),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn environments_answer_as_projects() {
    let world = World::new().await;
    let below = |operation: &Operation| operation.path.starts_with("/api/projects/");
    for operation in guarded().filter(below) {
        let ids = world.ids(&operation).await;
        let path = operation.path_with(&ids);
        let other = path.replacen("/api/projects/", "/api/environments/", 1);
        let allowed = world.owner.call(Method::OPTIONS, &other).send().await;
        let expected = world.owner.call(Method::OPTIONS, &path).send().await;
        assert_eq!((allowed.status, allowed.header("allow")), (200, expected.header("allow")));
        if operation.method != Method::GET {
            continue;
        }
        let here = world.owner.get(&path).await;
        let there = world.owner.get(&other).await;
        // Links contain the path of the request.
        let text = String::from_utf8_lossy(&there.body);
        let text = text.replace("/api/environments/", "/api/projects/");
        assert_eq!(there.status, here.status, "{other}");
        assert_eq!(text, String::from_utf8_lossy(&here.body), "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unacceptable_accept_header_is_refused_first() {
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
