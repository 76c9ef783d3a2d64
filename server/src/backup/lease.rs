//! The lease of a bucket of backups: one command writes at a time.
//!
//! A lease is an object `leases/<number>` with the time until which it is valid. The one with
//! the highest number counts. A command takes the next number if the last lease was released
//! or is too old. It writes the object on the condition that there is none, so of several
//! commands one succeeds. The object with the highest number is never removed, so no number
//! is taken twice.
//!
//! The holder renews its lease each minute. If it cannot do so for ten minutes, it ends,
//! before another command may take the next lease: a killed command cannot release it.
//!
//! What belongs here: taking, renewing and releasing. What does not: what is written under it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use uuid::Uuid;
use weir_backup::{Error, Result};
use weir_model::Timestamp;
use weir_objects::{Bucket, BucketLocation};

use super::bucket::failed;

/// The time for which a lease is valid. The clocks of machines may differ by the difference
/// to [`LOST`].
const VALID: Duration = Duration::from_secs(15 * 60);
/// The time after which a holder that could not renew its lease ends.
const LOST: Duration = Duration::from_secs(10 * 60);
/// The time between two renewals.
const RENEW: Duration = Duration::from_secs(60);
/// Longest content of a lease, bytes.
const LONGEST: u64 = 256;
/// Most leases: older ones are removed by the next holder.
const MOST: usize = 1_000;
/// What a released lease says.
const FREE: &str = "free";

/// A lease that this command holds.
#[derive(Debug)]
pub(super) struct Lease {
    /// With the leases alone.
    bucket: Arc<Bucket>,
    location: BucketLocation,
    number: u64,
    /// When it was renewed last.
    renewed: Arc<Mutex<Instant>>,
    /// Held while the object is written.
    writing: Arc<tokio::sync::Mutex<()>>,
    renewing: JoinHandle<()>,
}

/// Who holds a lease, and since when.
#[derive(Debug, Clone)]
struct Holder {
    id: String,
    /// The same moment on two clocks.
    began_at: Timestamp,
    begun: Instant,
}

impl Holder {
    /// The content of a lease that is valid from now on.
    fn content(&self) -> String {
        let valid = self.begun.elapsed() + VALID;
        let seconds = i64::try_from(valid.as_secs()).unwrap_or(i64::MAX);
        format!("{} {}", self.id, self.began_at.plus_seconds(seconds).micros())
    }
}

impl Lease {
    /// Takes the next lease. `location`: the place of the repository, for errors.
    ///
    /// # Errors
    /// [`Error::InUse`] when another command holds it, and [`Error::Remote`].
    pub(super) async fn take(
        bucket: Bucket,
        location: &BucketLocation,
        now: Timestamp,
    ) -> Result<Self> {
        let failed = |error| failed(location, error);
        let in_use = || Error::InUse { path: location.to_string().into() };
        let holder =
            Holder { id: Uuid::new_v4().to_string(), began_at: now, begun: Instant::now() };
        let last = numbers(&bucket).await.map_err(failed)?.last().copied();
        if let Some(last) = last {
            let found = bucket.get(&name(last), LONGEST).await.map_err(failed)?;
            if is_held(found.as_deref(), now) {
                return Err(in_use());
            }
        }
        let number = last.map_or(1, |last| last.saturating_add(1));
        let content = holder.content();
        let name = name(number);
        let created = bucket.create(&name, content.clone().into()).await.map_err(failed)?;
        // It was also created if the answer to a first attempt got lost.
        if !created {
            let found = bucket.get(&name, LONGEST).await.map_err(failed)?;
            if found.as_deref() != Some(content.as_bytes()) {
                return Err(in_use());
            }
        }
        match remove_older(&bucket, number).await {
            Ok(true) => {}
            Ok(false) => return Err(in_use()),
            Err(error) => {
                // Otherwise each command would have to wait until it is too old, and would not
                // say why. The error says more than one of this.
                let _ = bucket.put(&name, FREE.into()).await;
                return Err(failed(error));
            }
        }
        let (bucket, renewed) = (Arc::new(bucket), Arc::new(Mutex::new(holder.begun)));
        let (of, at, writing) = (Arc::clone(&bucket), Arc::clone(&renewed), Arc::default());
        let renewing = tokio::spawn(renew(of, name, holder, at, Arc::clone(&writing)));
        Ok(Self { bucket, location: location.clone(), number, renewed, writing, renewing })
    }

    /// Makes sure that no other command has taken the next lease.
    ///
    /// # Errors
    /// [`Error::Lost`] if one may have, and [`Error::Remote`].
    pub(super) async fn confirm(&self) -> Result<()> {
        let is_valid = self.renewed.lock().elapsed() < LOST;
        let all = numbers(&self.bucket).await.map_err(|error| failed(&self.location, error))?;
        match is_valid && all.last() == Some(&self.number) {
            true => Ok(()),
            false => Err(Error::Lost { place: self.location.to_string() }),
        }
    }

    /// Lets other commands take the next lease.
    ///
    /// # Errors
    /// [`Error::Remote`]: they have to wait until this one is too old.
    pub(super) async fn release(&self) -> Result<()> {
        // A renewal that is being sent could arrive after the release, and undo it.
        let _writing = self.writing.lock().await;
        self.renewing.abort();
        let put = self.bucket.put(&name(self.number), FREE.into()).await;
        put.map_err(|error| failed(&self.location, error))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

async fn renew(
    bucket: Arc<Bucket>,
    name: String,
    holder: Holder,
    renewed: Arc<Mutex<Instant>>,
    writing: Arc<tokio::sync::Mutex<()>>,
) {
    loop {
        tokio::time::sleep(RENEW).await;
        let _writing = writing.lock().await;
        let now = Instant::now();
        match bucket.put(&name, holder.content().into()).await {
            Ok(()) => *renewed.lock() = now,
            Err(error) => {
                tracing::warn!(%error, "the lease of the backups was not renewed; trying again");
            }
        }
    }
}

/// Removes the leases before this one. Returns whether this is the last one: other commands
/// may have taken several since, and removed it.
async fn remove_older(bucket: &Bucket, number: u64) -> Result<bool, weir_objects::Error> {
    let all = numbers(bucket).await?;
    if all.last() != Some(&number) {
        return Ok(false);
    }
    for older in all.into_iter().filter(|older| *older != number) {
        bucket.remove(&name(older)).await?;
    }
    Ok(true)
}

/// The numbers of all leases.
async fn numbers(bucket: &Bucket) -> Result<BTreeSet<u64>, weir_objects::Error> {
    let names = bucket.list(MOST, MOST * 64, |name| name.parse::<u64>().is_ok()).await?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

fn name(number: u64) -> String {
    format!("{number:020}")
}

/// Whether a command may hold the last lease. One that is gone was removed by the holder of
/// a later one. What no command writes is no lease.
fn is_held(content: Option<&[u8]>, now: Timestamp) -> bool {
    let Some(content) = content else { return true };
    let text = String::from_utf8_lossy(content);
    let until = text.split_once(' ').and_then(|(_, until)| until.trim().parse::<i64>().ok());
    until.is_some_and(|until| until > now.micros())
}

#[cfg(test)]
mod tests {
    use weir_objects::Access;
    use weir_testservers::Moto;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_micros(1_780_308_000_000_000)
    }

    #[test]
    fn a_lease_is_held_until_its_time() {
        let valid = format!("id {}", now().plus_seconds(1).micros());
        assert!(is_held(Some(valid.as_bytes()), now()));
        assert!(!is_held(Some(valid.as_bytes()), now().plus_seconds(1)));
        assert!(!is_held(Some(FREE.as_bytes()), now()));
        assert!(!is_held(Some(b"id x"), now()));
        assert!(is_held(None, now()));
    }

    #[tokio::test]
    async fn one_command_at_a_time_holds_a_lease() {
        if std::env::var_os("WEIR_QUICK").is_some() {
            return;
        }
        let moto = Moto::start().await;
        moto.create_bucket("backups").await;
        let location: BucketLocation = "s3://backups/weir/leases".parse().unwrap();
        let access = Access {
            endpoint: Some(moto.url()),
            region: "us-east-1".to_owned(),
            key: "key".to_owned(),
            secret: "secret".parse().unwrap(),
        };
        let bucket = || Bucket::new(&location, &access).unwrap();
        let take = async |now: Timestamp| Lease::take(bucket(), &location, now).await;
        let first = take(now()).await.unwrap();
        first.confirm().await.unwrap();
        let refused = take(now().plus_seconds(60)).await.unwrap_err();
        assert!(matches!(refused, Error::InUse { .. }), "{refused}");
        first.release().await.unwrap();

        // It was killed: its lease ends after a while.
        let killed = take(now()).await.unwrap();
        assert!(take(now().plus_seconds(899)).await.is_err());
        let next = take(now().plus_seconds(960)).await.unwrap();
        next.confirm().await.unwrap();
        let refused = killed.confirm().await.unwrap_err();
        assert!(matches!(refused, Error::Lost { .. }), "{refused}");
        // It notices that late, and takes nothing from the other one.
        killed.release().await.unwrap();
        next.confirm().await.unwrap();
        assert!(take(now().plus_seconds(961)).await.is_err());

        next.release().await.unwrap();
        take(now().plus_seconds(962)).await.unwrap().confirm().await.unwrap();
    }
}
