//! Nothing to build: its presence makes the build-dependencies count.

fn main() {}
