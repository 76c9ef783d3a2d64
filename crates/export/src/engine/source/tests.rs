use uuid::Uuid;
use weir_model::PersonId;

use super::*;
use crate::columns::Source as Origin;
use crate::rows::{Kind, Person};

const LARGE: usize = 512 << 10;

/// Tiny events of one large person.
fn chunk(events: u64) -> RecordChunk {
    let person = Person { id: PersonId(Uuid::from_u128(1)), properties: "x".repeat(LARGE) };
    let person = Some(Arc::new(person));
    let record = |arrival| EventWithPerson {
        event: StoredEvent {
            arrival,
            uuid: Uuid::from_u128(u128::from(arrival)),
            event: "paid".to_owned(),
            distinct_id: "ada".to_owned(),
            timestamp: 0,
            received_at: 0,
            properties: "{}".to_owned(),
            elements_chain: String::new(),
            historical: false,
            warnings: Vec::new(),
        },
        person: person.clone(),
    };
    RecordChunk {
        columns: Arc::new(Columns::of(&[("person", Kind::Json, Origin::PersonProperties)])),
        project: ProjectId(1),
        now: 0,
        records: (1..=events).map(record).collect::<Vec<_>>().into_iter(),
    }
}

/// A source with this task.
fn source(
    chunks: Vec<RecordChunk>,
    finder: impl Future<Output = Result<(), Failure>> + Send + 'static,
) -> Source {
    let (sender, pending) = mpsc::channel(AHEAD);
    let finder = tokio::spawn(async move {
        for chunk in chunks {
            let _ = sender.send(PendingRows::Stream(chunk.begin())).await;
        }
        finder.await
    });
    Source { pending, current: None, finder: Some(finder), skipped: Skipped::default() }
}

#[tokio::test]
async fn large_rows_come_in_small_parts_and_in_order() {
    let mut source = source(vec![chunk(30), chunk(0), chunk(11)], async { Ok(()) });
    let (mut arrivals, mut counts) = (Vec::new(), Vec::new());
    while let Some(part) = source.next().await.unwrap() {
        counts.push(part.batch.rows.len());
        arrivals.extend(part.batch.arrivals.unwrap());
    }
    assert_eq!(counts, [8, 8, 8, 6, 8, 3]);
    assert_eq!(arrivals, (1..=30).chain(1..=11).collect::<Vec<u64>>());
    // There are no more rows, however often the test asks.
    assert!(source.next().await.unwrap().is_none());
}

#[tokio::test]
async fn parts_are_made_when_those_before_them_are_taken() {
    let mut chunk = chunk(30);
    let records = Arc::clone(chunk.records.as_slice()[0].person.as_ref().unwrap());
    let part = chunk.part(|| false);
    assert_eq!((part.batch.rows.len(), chunk.records.len()), (8, 22));
    assert_eq!(chunk.part(|| true).batch.rows.len(), 0, "nobody waits for it");
    let stream = chunk.begin();
    drop(stream.parts);
    stream.maker.await.unwrap().unwrap();
    assert_eq!(Arc::strong_count(&records), 1, "nothing of it is left");
}

async fn dies() -> Result<(), Failure> {
    panic!("as the test wants it")
}

#[tokio::test]
async fn what_ends_early_never_passes_for_all() {
    let mut died = source(vec![chunk(1)], dies());
    assert!(died.next().await.unwrap().is_some());
    assert_eq!(died.next().await.unwrap_err().class, "Internal");

    let fault = Failure::retryable("StoreUnavailable", "Not now.");
    let mut failed = source(vec![chunk(1)], async { Err(fault) });
    assert!(failed.next().await.unwrap().is_some());
    assert_eq!(failed.next().await.unwrap_err().class, "StoreUnavailable");

    let mut cut = source(Vec::new(), async { Ok(()) });
    let (sender, parts) = mpsc::channel(1);
    let maker = tokio::spawn(std::future::pending());
    maker.abort();
    drop(sender);
    cut.current = Some(PartStream { parts, maker });
    assert_eq!(cut.next().await.unwrap_err().class, "Internal");
}
