//! Bodies of another media type, and bodies that are broken.

use super::fixtures::World;
use super::operations::guarded;

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_json_or_a_form() {
    let world = World::new().await;
    for operation in guarded().filter(|operation| operation.body().is_some()) {
        let ids = world.ids(&operation).await;
        let call = |media_type: &str, body: &'static str| {
            let path = operation.path_with(&ids);
            let call = world.owner.call(operation.method.clone(), &path);
            call.header("content-type", media_type).body(body).send()
        };
        call("text/plain", "{}").await.assert_error(
            415,
            "invalid_request",
            "unsupported_media_type",
            "Unsupported media type \"text/plain\" in request.",
        );
        for broken in ["{", "{\"name\": }", "nonsense", "{\"name\": \"\u{1}\"}"] {
            let answer = call("application/json", broken).await;
            let (status, kind, code, detail, attr) = answer.error();
            assert_eq!((status, kind.as_str()), (400, "invalid_request"), "{}", operation.id);
            assert_eq!((code.as_str(), attr), ("parse_error", None), "{}", operation.id);
            assert!(detail.starts_with("JSON parse error - "), "{detail}");
        }
        let answer = call("application/json", "7").await;
        assert_eq!(answer.status, 400, "{}: {:?}", operation.id, answer.body);
    }
}
