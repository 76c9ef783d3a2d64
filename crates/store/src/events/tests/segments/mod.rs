//! Sealed events: the same for every reader, on a real engine with files.

mod bucket;
mod columns;
mod counts;
mod crashes;
mod damage;
mod duplicates;
mod erasing;
mod merging;
mod people;
mod persons;
mod reading;
mod removing;
mod repair;
mod seen;
mod stored_bytes;
mod support;
mod tables;
