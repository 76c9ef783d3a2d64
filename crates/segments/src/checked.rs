//! Files that are written and read with checksums.
