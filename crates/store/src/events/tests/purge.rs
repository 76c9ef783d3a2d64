//! The purge of a deleted project.

use weir_model::definitions::{EventDefinition, PropertyDefinition, PropertyKind, PropertyOwner};
use weir_model::traffic::RefusedRequest;
use weir_model::{ProjectId, Timestamp};

use super::support::{PROJECT, ada, batch, events, records, store};
use crate::events::{Span, WarningCount, apply, purge};
use crate::groups::{GroupWrite, TypesWrite};
use crate::persons::{self, PersonWrite};
use crate::traffic::write_refused;
use crate::warnings::AffectedBuilder;

#[tokio::test]
async fn a_purge_removes_everything_of_a_project_and_nothing_else() {
    const TABLES: [&str; 14] = [
        "event_block",
        "event_summary",
        "event_time",
        "event_uuid",
        "event_head",
        "person",
        "event_group",
        "group_types",
        "event_definition",
        "property_definition",
        "ingestion_warning",
        "affected_block",
        "affected_summary",
        "refused_requests",
    ];
    let store = store().await;
    let fill = async |project: ProjectId, from: u64| {
        let mut write = batch(0, from, from + 1, &events(1, 40, "a"));
        let part = &mut write.projects[0];
        part.project = project;
        part.persons = vec![PersonWrite {
            id: persons::first_id(project, "a"),
            state: ada("{}"),
            expected: None,
            version: 0,
        }];
        let seen = Span { from: 3, to: 4 };
        part.warnings =
            vec![WarningCount { code: "too_deep".to_owned(), count: 1, seen, sample: None }];
        part.groups = vec![GroupWrite {
            index: 0,
            key: "acme".to_owned(),
            properties: "{}".to_owned(),
            created_at: 5,
            expected: None,
            version: 0,
        }];
        part.group_types = Some(TypesWrite { names: vec!["company".to_owned()], expected: 0 });
        let (first_at, last_at) = (Timestamp::from_micros(1), Timestamp::from_micros(2));
        part.event_names = vec![EventDefinition { name: "buy".to_owned(), first_at, last_at }];
        part.property_names = vec![PropertyDefinition {
            owner: PropertyOwner::Event,
            name: "price".to_owned(),
            kind: PropertyKind::Number,
            first_at,
        }];
        part.head.samples = 1;
        part.affected = vec![AffectedBuilder::begin(0).finish().unwrap()];
        apply(&store, write).await.unwrap();
        let refused = RefusedRequest {
            key: "refused-1".to_owned(),
            at: first_at,
            code: "invalid_payload".to_owned(),
            detail: None,
            route: "/batch/".to_owned(),
            library: None,
            bytes: 1,
            project_key: None,
        };
        store.traffic().refusals().note(project, refused);
        write_refused(&store).await.unwrap();
    };
    let counted = async || {
        let mut counts = Vec::new();
        for table in TABLES {
            counts.push(records(&store, table).await);
        }
        counts
    };
    fill(PROJECT, 0).await;
    let one = counted().await;
    assert!(one.iter().all(|count| *count > 0), "{one:?}");
    fill(ProjectId(8), 1).await;
    purge(&store, PROJECT).await.unwrap();
    assert_eq!(counted().await, one);
    purge(&store, PROJECT).await.unwrap();
    purge(&store, ProjectId(8)).await.unwrap();
    assert_eq!(counted().await, vec![0; TABLES.len()]);
}
