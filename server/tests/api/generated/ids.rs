//! Ids of missing objects, and texts that are not ids.

use super::fixtures::World;
use super::operations::guarded;

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_nothing_and_texts_that_are_no_ids_lead_nowhere() {
    let world = World::new().await;
    for operation in guarded().filter(|operation| !operation.is_refused()) {
        let good = world.ids(&operation).await;
        for at in 0..good.len() {
            for id in
                ["00000000-0000-7000-8000-000000000007", "987654321", "junk", "%FF", "0", "-1"]
            {
                let mut ids = good.clone();
                id.clone_into(&mut ids[at].1);
                let answer = operation.call(&world.owner, &ids).send().await;
                assert_eq!(answer.status, 404, "{} with {ids:?}: {:?}", operation.id, answer.body);
                let (_, kind, code, ..) = answer.error();
                assert_eq!((kind.as_str(), code.as_str()), ("invalid_request", "not_found"));
            }
        }
    }
}
