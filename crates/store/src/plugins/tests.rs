//! Deleted plugins leave no records, on a store in memory.

use weir_model::{MembershipId, PluginConfigId, ProjectId, UserId};

use super::*;
use crate::organizations::{self, NewOrganization, OrganizationRow};
use crate::projects::ProjectRow;
use crate::update::tests::replace;
use crate::{Location, Settings};

const HOME: OrganizationId = OrganizationId(Uuid::from_u128(1));
const NOW: Timestamp = Timestamp::EPOCH;

fn organization() -> NewOrganization {
    let project = ProjectRow::new(ProjectId(1), HOME, "Shop".to_owned(), "phc_1".to_owned(), NOW);
    NewOrganization {
        row: OrganizationRow {
            name: "Acme".to_owned(),
            slug: "acme".to_owned(),
            ..OrganizationRow::new(HOME, NOW)
        },
        owner: UserId(Uuid::from_u128(2)),
        membership: MembershipId(Uuid::from_u128(3)),
        project,
    }
}

fn plugin(number: i64, is_global: bool) -> PluginRow {
    PluginRow {
        id: PluginId(number),
        organization: HOME,
        created_group: Some(Group::Destinations),
        is_analysed: false,
        plugin_type: None,
        name: None,
        description: None,
        url: Some(format!("https://github.com/acme/tea{number}")),
        private_token: None,
        icon: None,
        config_schema: None,
        tag: None,
        latest_tag: None,
        latest_tag_checked_at: None,
        is_global,
        was_global: is_global,
        capabilities: None,
        metrics: None,
        public_jobs: None,
        created_at: NOW,
        updated_at: NOW,
        revision: Uuid::from_u128(u128::try_from(number).unwrap()),
    }
}

/// A config that is deleted by now.
fn config() -> ConfigBrief {
    ConfigBrief {
        id: PluginConfigId(1),
        organization: HOME,
        project: ProjectId(1),
        name: None,
        enabled: false,
        deleted: false,
        revision: Uuid::from_u128(5),
    }
}

fn build() -> build::Build {
    build::Build {
        frontend: None,
        site: Some("function inject() {}".to_owned()),
        server: Some("{}".to_owned()),
        faults: [("index.js".to_owned(), "1:2: no".to_owned())].into(),
    }
}

const COUNTS: Statement = Statement::read(
    "counts",
    "RETURN [
         count((SELECT VALUE id FROM plugin)), count((SELECT VALUE id FROM org_plugin)),
         count((SELECT VALUE id FROM global_plugin)), count((SELECT VALUE id FROM plugin_url)),
         count((SELECT VALUE id FROM plugin_file)), count((SELECT VALUE id FROM plugin_build)),
     ];",
);

/// The number of records of each table.
async fn counts(store: &Store) -> Vec<i64> {
    store.db.run(COUNTS, bind! {}).await.unwrap().rows(0).unwrap()
}

/// A store with two plugins with source. The second one is offered to all.
async fn two() -> Store {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    organizations::create(&store, &organization(), &[]).await.unwrap();
    for (number, is_global) in [(1, false), (2, true)] {
        let before = plugin(number, is_global);
        assert_eq!(
            create(&store, &before, &NewSource::default(), 9, &[]).await.unwrap(),
            Created::Yes
        );
        let after = PluginRow { revision: Uuid::from_u128(9), ..before.clone() };
        let source = NewSource {
            change: vec![("index.js".to_owned(), Some("1".to_owned()))],
            build: Some(build()),
        };
        replace(&store, after.id, &after, source).await;
    }
    assert_eq!(counts(&store).await, [2, 2, 1, 2, 2, 2]);
    store
}

#[test]
fn groups_follow_the_code_once_it_was_checked() {
    let groups = |methods: &[&str], is_analysed| {
        let capabilities = serde_json::json!({"methods": methods, "scheduled_tasks": []});
        let capabilities = capabilities.as_object().cloned();
        PluginRow { is_analysed, capabilities, ..plugin(1, false) }.groups()
    };
    assert_eq!(groups(&[], false), [Group::Destinations, Group::ImportApps]);
    assert_eq!(groups(&[], true), [Group::ImportApps]);
    assert_eq!(groups(&["onEvent"], true), [Group::Destinations]);
    // Its code belongs to no group.
    assert_eq!(groups(&["processEvent"], true), [Group::Destinations]);
}

#[tokio::test]
async fn what_was_made_of_source_reads_back() {
    let store = two().await;
    let made = || build::get(&store, PluginId(1));
    assert_eq!(made().await.unwrap(), Some(build()));
    assert_eq!(build::get(&store, PluginId(3)).await.unwrap(), None);
    let with_site = build::with_site(&store, &[PluginId(1), PluginId(3)]).await.unwrap();
    assert_eq!(with_site, [PluginId(1)].into());
    // A change of the record alone does not change it.
    let row = rows(&store, &[PluginId(1)]).await.unwrap().remove(0);
    let after = PluginRow { revision: Uuid::from_u128(10), ..row.clone() };
    let mut changes = store.plugin_changes();
    let none = NewSource::default();
    replace(&store, after.id, &after, none).await;
    assert_eq!(made().await.unwrap(), Some(build()));
    assert_eq!(changes.try_recv(), Ok(PluginChange::Plugin(PluginId(1))));
}

#[tokio::test]
async fn the_newest_version_is_noted_beside_changes() {
    let store = two().await;
    let row = async || rows(&store, &[PluginId(1)]).await.unwrap().remove(0);
    let before = row().await;
    for tag in [Some("2"), None] {
        note_latest(&store, HOME, PluginId(1), tag, NOW).await.unwrap();
        let latest_tag = Some("2".to_owned());
        let expected = PluginRow { latest_tag, latest_tag_checked_at: Some(NOW), ..before.clone() };
        assert_eq!(row().await, expected);
    }
    let elsewhere = OrganizationId(Uuid::from_u128(99));
    note_latest(&store, elsewhere, PluginId(1), Some("3"), NOW).await.unwrap();
    assert_eq!(row().await.latest_tag.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_plugin_that_is_gone_leaves_nothing() {
    let store = two().await;
    let read = config();
    assert_eq!(delete(&store, HOME, PluginId(1), &[read], &[]).await.unwrap(), Deleted::Stale);
    let offered = delete(&store, HOME, PluginId(2), &[], &[]).await.unwrap();
    assert_eq!(offered, Deleted::IsGlobal);
    assert_eq!(counts(&store).await, [2, 2, 1, 2, 2, 2]);
    assert_eq!(delete(&store, HOME, PluginId(1), &[], &[]).await.unwrap(), Deleted::Yes);
    assert_eq!(counts(&store).await, [1, 1, 1, 1, 1, 1]);
    // Once more, as after a lost answer.
    assert_eq!(delete(&store, HOME, PluginId(1), &[], &[]).await.unwrap(), Deleted::Yes);
}

#[tokio::test]
async fn an_organization_that_is_gone_leaves_nothing_either() {
    let store = two().await;
    let mut changes = store.plugin_changes();
    organizations::delete(&store, HOME, UserId(Uuid::from_u128(2)), NOW, &[]).await.unwrap();
    assert_eq!(counts(&store).await, [0, 0, 0, 0, 0, 0]);
    // Tasks that run the plugins in other organizations are notified.
    for expected in [
        PluginChange::Project(ProjectId(1)),
        PluginChange::Plugin(PluginId(1)),
        PluginChange::Plugin(PluginId(2)),
    ] {
        assert_eq!(changes.try_recv(), Ok(expected));
    }
}

#[tokio::test]
async fn an_organization_has_a_maximum_of_plugins() {
    let store = two().await;
    for (number, expected) in [(3, Created::Yes), (4, Created::TooMany), (3, Created::Yes)] {
        // The last run is a retry after a lost answer.
        let outcome = create(&store, &plugin(number, false), &NewSource::default(), 3, &[]).await;
        assert_eq!(outcome.unwrap(), expected, "{number}");
    }
    assert_eq!(counts(&store).await, [3, 3, 1, 3, 2, 2]);
}
