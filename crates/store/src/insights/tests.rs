//! Insights and their tiles, on a store in memory.

use super::*;
use crate::dashboards::{self, DashboardRow, Dependents, LinkRow};
use crate::update::tests::replace;
use crate::update::{Updated, update_with};
use crate::{Error, Location, Settings, ids};

const HOME: OrganizationId = OrganizationId(Uuid::from_u128(1));
const SHOP: ProjectId = ProjectId(7);
const USER: UserId = UserId(Uuid::from_u128(2));

const PROJECT: Statement = Statement::write(
    "test project",
    "UPSERT type::record('project', $project) CONTENT { organization: $organization };",
);

const COUNTS: Statement = Statement::read(
    "test counts",
    "SELECT VALUE [insights, dashboards] FROM type::record('project', $project);",
);

const FULL: Statement = Statement::write(
    "test full",
    "UPDATE type::record('project', $project)
         SET insights = $most, dashboards = $most RETURN NONE;",
);

async fn store() -> Store {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    let vars = bind! { project: SHOP.0, organization: HOME.0 };
    store.db.run(PROJECT, vars).await.unwrap();
    store
}

async fn insight(store: &Store, short_id: &str) -> InsightRow {
    let row = InsightRow {
        id: next_number(store).await.unwrap(),
        project: SHOP,
        short_id: short_id.to_owned(),
        name: None,
        derived_name: None,
        description: None,
        query: "{}".to_owned(),
        tags: Vec::new(),
        favorited: false,
        saved: true,
        deleted: false,
        dashboards: Vec::new(),
        created_by: USER,
        created_at: Timestamp::EPOCH,
        last_modified_by: USER,
        last_modified_at: Timestamp::EPOCH,
    };
    assert_eq!(create(store, HOME, &row, &[], &[]).await.unwrap(), Created::Yes);
    row
}

async fn dashboard(store: &Store) -> DashboardRow {
    let row = DashboardRow {
        id: dashboards::next_number(store).await.unwrap(),
        project: SHOP,
        name: "Sales".to_owned(),
        description: String::new(),
        pinned: false,
        deleted: false,
        tags: Vec::new(),
        filters: "{}".to_owned(),
        tiles: Vec::new(),
        next_tile: 1,
        links: Vec::new(),
        next_link: 1,
        created_by: USER,
        created_at: Timestamp::EPOCH,
        revision: Uuid::from_u128(3),
    };
    let made = dashboards::create(store, HOME, &row, &[]).await.unwrap();
    assert_eq!(made, Created::Yes);
    row
}

fn with_tiles(row: &DashboardRow, insights: &[InsightId]) -> DashboardRow {
    let tile = |(number, insight): (i64, &InsightId)| TileRow::new(number, *insight);
    DashboardRow { tiles: (1..).zip(insights).map(tile).collect(), ..row.clone() }
}

async fn put(store: &Store, before: &DashboardRow, insights: &[InsightId]) -> DashboardRow {
    let mut after = with_tiles(before, insights);
    after.revision = ids::time_ordered(Timestamp::from_micros(9));
    let with = Dependents::between(before, &after);
    replace(store, dashboards::key(SHOP, before.id), &after, with).await;
    after
}

async fn read(store: &Store, id: InsightId) -> InsightRow {
    rows(store, SHOP, &[id]).await.unwrap().pop().unwrap()
}

async fn read_dashboard(store: &Store, id: DashboardId) -> DashboardRow {
    dashboards::rows(store, SHOP, &[id]).await.unwrap().pop().unwrap()
}

fn insights_of(row: &DashboardRow) -> Vec<InsightId> {
    row.tiles.iter().map(|tile| tile.insight).collect()
}

#[tokio::test]
async fn insights_are_listed_by_number_and_found_by_short_id() {
    let store = store().await;
    let (one, other) = (insight(&store, "aaaaaaaa").await, insight(&store, "bbbbbbbb").await);
    assert_eq!(read(&store, one.id).await, one);
    let listed = briefs(&store, SHOP).await.unwrap();
    assert_eq!(listed.iter().map(|brief| brief.id).collect::<Vec<_>>(), [one.id, other.id]);
    assert_eq!(by_short_id(&store, SHOP, "bbbbbbbb").await.unwrap(), Some(other.id));
    for (project, short_id) in [(SHOP, "cccccccc"), (ProjectId(8), "bbbbbbbb")] {
        assert_eq!(by_short_id(&store, project, short_id).await.unwrap(), None);
    }
    assert!(rows(&store, ProjectId(8), &[one.id]).await.unwrap().is_empty());
    let taken = InsightRow { id: InsightId(99), ..one.clone() };
    assert_eq!(
        create(&store, HOME, &taken, &[], &[]).await.unwrap(),
        Created::Refused("taken".to_owned())
    );
    let elsewhere = OrganizationId(Uuid::from_u128(5));
    let new = InsightRow { id: InsightId(99), short_id: "dddddddd".to_owned(), ..one.clone() };
    assert_eq!(create(&store, elsewhere, &new, &[], &[]).await.unwrap(), Created::Gone);
    // The same one again, as after a lost answer.
    assert_eq!(create(&store, HOME, &one, &[], &[]).await.unwrap(), Created::Yes);
    let mut counts = store.db.run(COUNTS, bind! { project: SHOP.0 }).await.unwrap();
    assert_eq!(counts.rows::<Vec<Option<i64>>>(0).unwrap(), [vec![Some(2), None]]);
}

#[tokio::test]
async fn no_more_are_added_than_a_project_may_have() {
    let store = store().await;
    let (one, board) = (insight(&store, "aaaaaaaa").await, dashboard(&store).await);
    let most = i64::try_from(INSIGHTS_MAX).unwrap();
    store.db.run(FULL, bind! { project: SHOP.0, most: most }).await.unwrap();
    let new = InsightRow { id: InsightId(99), short_id: "bbbbbbbb".to_owned(), ..one.clone() };
    assert_eq!(create(&store, HOME, &new, &[], &[]).await.unwrap(), Created::TooMany);
    let new_board = DashboardRow { id: DashboardId(99), ..board };
    let refused = dashboards::create(&store, HOME, &new_board, &[]).await.unwrap();
    assert_eq!(refused, Created::TooMany);
    assert_eq!(by_short_id(&store, SHOP, "bbbbbbbb").await.unwrap(), None);
    // A deletion makes room.
    delete(&store, &one, Uuid::from_u128(60), &[]).await.unwrap();
    assert_eq!(create(&store, HOME, &new, &[], &[]).await.unwrap(), Created::Yes);
}

#[tokio::test]
async fn tiles_and_insights_agree_whichever_of_them_is_changed() {
    let store = store().await;
    let (one, other) = (insight(&store, "aaaaaaaa").await, insight(&store, "bbbbbbbb").await);
    let (sales, visits) = (dashboard(&store).await, dashboard(&store).await);
    let sales = put(&store, &sales, &[one.id, other.id]).await;
    let visits = put(&store, &visits, &[one.id]).await;
    assert_eq!(read(&store, one.id).await.dashboards, [sales.id, visits.id]);
    assert_eq!(read(&store, other.id).await.dashboards, [sales.id]);

    // From the side of the insight: it leaves one dashboard.
    let row = read(&store, one.id).await;
    let boards = vec![ChangedTiles {
        dashboard: sales.id,
        before: sales.revision,
        after: Uuid::from_u128(40),
        tiles: with_tiles(&sales, &[other.id]).tiles,
        next_tile: sales.next_tile,
    }];
    let left = InsightRow { dashboards: vec![visits.id], ..row };
    replace(&store, key(SHOP, one.id), &left, boards.clone()).await;
    assert_eq!(insights_of(&read_dashboard(&store, sales.id).await), [other.id]);

    // Another change of the dashboard was faster.
    let stale = vec![ChangedTiles { after: Uuid::from_u128(41), ..boards[0].clone() }];
    let change = |row: InsightRow| {
        let change = crate::update::Change {
            row: InsightRow { name: Some("late".to_owned()), ..row },
            entries: Vec::new(),
            with: stale.clone(),
        };
        std::future::ready(Ok::<_, Error>((change, ())))
    };
    let refused = update_with(&store, key(SHOP, one.id), (), change).await.unwrap();
    assert!(matches!(refused, Updated::Refused(reason) if reason == STALE));

    let gone = with_tiles(&visits, &[one.id, InsightId(99)]);
    let with = Dependents::between(&visits, &gone);
    let change = |_: DashboardRow| {
        let (row, with) = (gone.clone(), with.clone());
        let change = crate::update::Change { row, entries: Vec::new(), with };
        std::future::ready(Ok::<_, Error>((change, ())))
    };
    let refused = update_with(&store, dashboards::key(SHOP, visits.id), (), change).await.unwrap();
    assert!(matches!(refused, Updated::Refused(reason) if reason == dashboards::NO_INSIGHT));
}

#[tokio::test]
async fn a_share_link_leads_to_its_dashboard_until_it_is_removed() {
    let store = store().await;
    let (sales, visits) = (dashboard(&store).await, dashboard(&store).await);
    let link = |hash: &str| LinkRow {
        id: 1,
        hash: hash.to_owned(),
        created_by: USER,
        created_at: Timestamp::EPOCH,
        expires_at: Timestamp::EPOCH,
    };
    let with_links = async |before: &DashboardRow, hashes: &[&str]| {
        let links = hashes.iter().map(|hash| link(hash)).collect();
        let after = DashboardRow { links, ..before.clone() };
        let with = Dependents::between(before, &after);
        replace(&store, dashboards::key(SHOP, before.id), &after, with).await;
        after
    };
    let found = async |hash: &str| dashboards::by_link(&store, SHOP, hash).await.unwrap();
    let sales = with_links(&sales, &["a", "b"]).await;
    with_links(&visits, &["c"]).await;
    assert_eq!([found("a").await, found("c").await], [Some(sales.id), Some(visits.id)]);
    with_links(&sales, &["b"]).await;
    assert_eq!([found("a").await, found("b").await], [None, Some(sales.id)]);
    dashboards::delete(&store, SHOP, sales.id, &[]).await.unwrap();
    assert_eq!(found("b").await, None);
    dashboards::purge(&store, SHOP).await.unwrap();
    assert_eq!(found("c").await, None);
}

#[tokio::test]
async fn a_deleted_insight_or_dashboard_leaves_nothing_behind() {
    let store = store().await;
    let (one, other) = (insight(&store, "aaaaaaaa").await, insight(&store, "bbbbbbbb").await);
    let (sales, visits) = (dashboard(&store).await, dashboard(&store).await);
    let sales = put(&store, &sales, &[one.id, other.id]).await;
    let visits = put(&store, &visits, &[other.id]).await;
    delete(&store, &read(&store, one.id).await, Uuid::from_u128(50), &[]).await.unwrap();
    delete(&store, &one, Uuid::from_u128(51), &[]).await.unwrap();
    let left = read_dashboard(&store, sales.id).await;
    assert_eq!((insights_of(&left), left.revision), (vec![other.id], Uuid::from_u128(50)));
    assert_eq!(left.tiles, sales.tiles[1..]);
    assert_eq!(by_short_id(&store, SHOP, "aaaaaaaa").await.unwrap(), None);
    assert_eq!(briefs(&store, SHOP).await.unwrap().len(), 1);

    dashboards::delete(&store, SHOP, visits.id, &[]).await.unwrap();
    dashboards::delete(&store, SHOP, visits.id, &[]).await.unwrap();
    assert_eq!(read(&store, other.id).await.dashboards, [sales.id]);
    assert_eq!(dashboards::briefs(&store, SHOP).await.unwrap().len(), 1);
    let mut counts = store.db.run(COUNTS, bind! { project: SHOP.0 }).await.unwrap();
    assert_eq!(counts.rows::<Vec<i64>>(0).unwrap(), [vec![1, 1]]);

    purge(&store, SHOP).await.unwrap();
    dashboards::purge(&store, SHOP).await.unwrap();
    assert!(rows(&store, SHOP, &[other.id]).await.unwrap().is_empty());
    assert!(briefs(&store, SHOP).await.unwrap().is_empty());
    assert!(dashboards::briefs(&store, SHOP).await.unwrap().is_empty());
    assert_eq!(by_short_id(&store, SHOP, "bbbbbbbb").await.unwrap(), None);
}
