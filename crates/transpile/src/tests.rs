//! What becomes of sources. Nothing is run here.

mod bounds;
mod browser;
mod faults;
mod generated;
mod server;
