//! Sealed events: the same for every reader, on a real engine with files.

mod crashes;
mod damage;
mod duplicates;
mod merging;
mod reading;
mod removing;
mod seen;
mod support;
