//! Nothing: this crate exists for the features in its `Cargo.toml`.
