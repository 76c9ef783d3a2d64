//! Applying and reading events, on a real engine in memory.

mod applying;
mod arrivals;
mod by_step;
mod bytes;
mod columns;
mod next;
mod pages;
mod purge;
mod received;
mod round_trips;
mod scan;
mod segments;
mod shared;
mod support;
mod updates;
mod uuids;
mod versions;
