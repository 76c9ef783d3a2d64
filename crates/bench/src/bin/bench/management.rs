//! Requests to the management API of a running instance.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use weir_bench::api::{events_path, organization_path, request};
use weir_bench::load::{Load, Pool, Work, send};

use crate::service::Service;

/// One kind of request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    /// With one connection: milliseconds and requests per second.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) alone: f64,
    /// Requests per second with eight connections, where meaningful.
    pub(crate) together: Option<f64>,
}

/// The group whose members are read.
pub(crate) const GROUP: &str = "acme";

/// Index of the request that the aims refer to.
pub(crate) const GET: usize = 0;

/// Measures each kind of request.
pub(crate) async fn run(service: &Service, time: Duration) -> Result<Vec<Call>> {
    let instance = &service.instance;
    let organization = organization_path(instance);
    let events = events_path(instance);
    let get = |path: String| vec![request(instance, "GET", &path, "")];
    let patches = (0..100)
        .map(|n| request(instance, "PATCH", &organization, &format!(r#"{{"name":"Bench {n}"}}"#)))
        .collect();
    let taken = service.source.taken();
    let some = (0..200).map(|n| service.source.uuid(n * taken / 200));
    let by_uuid =
        some.map(|uuid| request(instance, "GET", &format!("{events}?uuid={uuid}"), "")).collect();
    // Writers of one record wait for each other, so concurrent requests are not
    // meaningful.
    let kinds = [
        ("get an organization", get(organization.clone()), true),
        ("list organizations", get("/api/organizations/".to_owned()), true),
        ("patch an organization", patches, false),
        ("newest 100 events", get(format!("{events}?limit=100")), true),
        ("an event by uuid", by_uuid, true),
    ];
    measure(service, time, kinds).await
}

/// Measures reading event counts of persons, and the members of [`GROUP`].
pub(crate) async fn counts(service: &Service, time: Duration) -> Result<Vec<Call>> {
    let instance = &service.instance;
    let project = format!("/api/projects/{}", instance.project_id);
    let get = |path: &str| vec![request(instance, "GET", &format!("{project}/{path}"), "")];
    let members = format!("groups/members/?group_type_index=0&group_key={GROUP}&limit=50");
    let kinds = [
        ("50 persons with counts", get("persons/?limit=50"), true),
        ("50 persons by events", get("persons/?limit=50&order=-event_count"), true),
        ("50 members of a group", get(&members), true),
    ];
    measure(service, time, kinds).await
}

async fn measure<const N: usize>(
    service: &Service,
    time: Duration,
    kinds: [(&'static str, Vec<Vec<u8>>, bool); N],
) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    for (name, requests, in_parallel) in kinds {
        crate::say(name);
        let pool = Arc::new(Pool::of(requests));
        let load = |connections| {
            Load::closed(service.address(), connections, time, Work::Again(Arc::clone(&pool)))
        };
        let one = send(load(1)).await?;
        ensure!(one.refused == 0, "{name}: answered with {:?}", one.refusal);
        let together = if in_parallel {
            let outcome = send(load(8)).await?;
            ensure!(outcome.refused == 0, "{name}: answered with {:?}", outcome.refusal);
            Some(outcome.rate())
        } else {
            None
        };
        calls.push(Call {
            name,
            p50: one.latencies.percentile(0.5),
            p99: one.latencies.percentile(0.99),
            alone: one.rate(),
            together,
        });
    }
    Ok(calls)
}
