//! Applying and reading events, on a real engine in memory.

mod applying;
mod next;
mod pages;
mod purge;
mod received;
mod scan;
mod support;
mod versions;
