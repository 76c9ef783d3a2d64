//! Compiling sources. A source that ends its child process is at fault. If compiling
//! takes too long, the source or the machine may be the cause, so the request fails.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::PoolSettings;
use super::child::read_frame;
use super::exchange::{Broken, Timeouts, exchange};
use super::lane::LaneGuard;
use super::single::ended_idle;
use crate::error::Fault;
use crate::host::NoHost;
use crate::program::Source;
use crate::wire::{self, Compile, to_child};

pub(super) async fn compile<T: DeserializeOwned>(
    mut guard: LaneGuard<'_>,
    settings: &PoolSettings,
    kind: Source,
    name: &str,
    text: &str,
) -> Result<Result<T, String>, Fault> {
    let limits = &settings.limits;
    let request = Compile { kind, name: name.into(), text: text.into() };
    let patience = Timeouts {
        script: limits.compile,
        // Until it reports that it has begun.
        load: limits.load * 2,
        wall: limits.compile,
        grace: limits.grace,
    };
    let mut idle_ends = 0;
    loop {
        let mut child = guard.take().await?;
        let mut out = Vec::new();
        wire::put(&mut out, to_child::COMPILE, &request)?;
        let reply = exchange(&mut child, out, &BTreeMap::new(), &NoHost, patience, 1).await;
        idle_ends = ended_idle(&reply, idle_ends)?;
        match (reply.broken, reply.compiled) {
            (None, Some(made)) => {
                let made = read_frame(&made).map_err(|_| Fault::KeepsEnding)?;
                guard.put(child);
                return Ok(made);
            }
            (None, None) => return Err(Fault::KeepsEnding),
            (Some(_), _) if !reply.heard => continue,
            (Some(Broken::TooLate), _) => {
                let seconds = limits.compile.as_secs();
                return Err(Fault::SlowCompile { name: name.to_owned(), seconds });
            }
            (Some(Broken::Ended), _) => {
                return Ok(Err(format!(
                    "{name}: compiling it takes more memory than there is for it, or it is \
                     nested too deep"
                )));
            }
        }
    }
}
