//! Waiting for a condition. No other test code sleeps: a fixed pause is too short on a
//! busy machine and too long on all others.

use std::fmt::Debug;
use std::panic::Location;
use std::time::Duration;

/// Every condition holds within this time, also on a busy machine.
const WITHIN: Duration = Duration::from_secs(120);

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// What a look shows: whether the condition holds, and what was found.
pub trait Look {
    /// The value once the condition holds.
    type Found;

    /// The value, or a description of what is there instead.
    ///
    /// # Errors
    /// When the condition does not hold yet.
    fn found(self) -> Result<Self::Found, String>;
}

impl Look for bool {
    type Found = ();

    fn found(self) -> Result<(), String> {
        self.then_some(()).found()
    }
}

impl<T> Look for Option<T> {
    type Found = T;

    fn found(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

/// The error is shown when the condition does not hold in time.
impl<T, E: Debug> Look for Result<T, E> {
    type Found = T;

    fn found(self) -> Result<T, String> {
        self.map_err(|seen| format!(": {seen:#?}"))
    }
}

/// Looks until the condition holds, and returns what was found.
///
/// # Panics
/// When the condition does not hold in time.
#[track_caller]
pub fn until<L: Look>(mut look: impl AsyncFnMut() -> L) -> impl Future<Output = L::Found> {
    let caller = Location::caller();
    async move {
        let mut seen = String::new();
        let looking = async {
            loop {
                match look().await.found() {
                    Ok(found) => return found,
                    Err(instead) => seen = instead,
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let found = tokio::time::timeout(WITHIN, looking).await.ok();
        found.unwrap_or_else(|| unreachable!("not within {WITHIN:?} at {caller}{seen}"))
    }
}

/// Work that takes this long, for a fake server or a slow script. Never wait with it for
/// something to happen.
pub async fn slow_work(takes: Duration) {
    tokio::time::sleep(takes).await;
}
