//! Organizations do not share directories of the server.

use uuid::Uuid;

use super::*;
use crate::test_support::organization;

fn local(path: &str) -> BatchExportInput {
    BatchExportInput {
        destination: DestinationType::of("LocalDirectory").unwrap(),
        ..input(json!({ "path": path }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn organizations_share_no_directory() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let own = org(&services, &ctx).await;
    let mallory = outsider(&services, "mallory").await;
    let home = organization(&services, &mallory, "Home").await;
    let other = services.organizations.enter(&mallory, &home.to_string()).await.unwrap();
    let exports = &services.exports;
    let create = async |org: &OrgCtx, path: &str| exports.create(org.into(), local(path)).await;
    let refused = |outcome: Result<BatchExport>| match outcome {
        Err(Error::Invalid(fault)) => fault.attr.as_deref() == Some("destination__config__path"),
        _ => false,
    };
    create(&own, "Events/daily").await.unwrap();
    for path in [
        "Events/daily",
        "events/DAILY",
        "events/daily/",
        "events",
        "events/daily/x/y",
        "events/{table}",
        "{table}",
        "../events/daily",
        "events/../events/daily",
    ] {
        assert!(refused(create(&other, path).await), "{path}");
    }
    // Names that some disks treat as equal, and some that are different on every disk.
    create(&own, "Caf\u{e9}/Stra\u{df}e/{year}").await.unwrap();
    for path in ["cafe\u{301}/strasse/2026", "CAFE\u{301}/STRASSE", "caf\u{c9}"] {
        assert!(refused(create(&other, path).await), "{path}");
    }
    for path in ["cafe", "caf\u{e8}", "Caf\u{e9} 2/{month}"] {
        create(&other, path).await.unwrap();
    }
    // An organization may have several exports in one directory.
    create(&own, "events/daily").await.unwrap();
    let theirs = create(&other, "events/hourly").await.unwrap();
    let patch = |path: &str| BatchExportPatch {
        config: Some(config(json!({ "path": path }))),
        ..BatchExportPatch::default()
    };
    let id = theirs.id.to_string();
    assert!(refused(exports.update((&other).into(), &id, patch("events")).await));
    exports.update((&other).into(), &id, patch("events/hourly/b")).await.unwrap();
    let no_op =
        BatchExportInput { destination: DestinationType::of("NoOp").unwrap(), ..input(json!({})) };
    let id = exports.create((&other).into(), no_op).await.unwrap().id.to_string();
    let moved = BatchExportPatch {
        destination: DestinationType::of("LocalDirectory"),
        ..patch("Events/Daily")
    };
    assert!(refused(exports.update((&other).into(), &id, moved.clone()).await));
    // A deleted export releases its directory.
    let kind = DestinationType::of("LocalDirectory").unwrap();
    let Value::Object(path) = json!({"path": "events/daily/2026"}) else { panic!() };
    let is_theirs = |export| exports.has_own_directory(other.organization, export, kind, &path);
    assert!(!is_theirs(None).await.unwrap());
    // Older data may have overlapping directories. The older export continues.
    assert!(!is_theirs(Some(BatchExportId(Uuid::max()))).await.unwrap());
    assert!(is_theirs(Some(BatchExportId(Uuid::nil()))).await.unwrap());
    for export in exports.list((&own).into(), Page::default()).await.unwrap().results {
        exports.delete((&own).into(), &export.id.to_string()).await.unwrap();
    }
    assert!(is_theirs(None).await.unwrap());
    exports.update((&other).into(), &id, moved).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_organizations_gets_the_directory() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let own = org(&services, &ctx).await;
    let mallory = outsider(&services, "mallory").await;
    let home = organization(&services, &mallory, "Home").await;
    let other = services.organizations.enter(&mallory, &home.to_string()).await.unwrap();
    let exports = &services.exports;
    for n in 0..5 {
        let path = format!("path-{n}");
        let (one, two) = tokio::join!(
            exports.create((&own).into(), local(&path)),
            exports.create((&other).into(), local(&path)),
        );
        assert_ne!(one.is_ok(), two.is_ok(), "{path}");
    }
}
