//! Files on real servers and in a directory, read back with readers of other projects.

mod azure_blob;
mod bucket;
mod google_cloud_storage;
mod local_directory;
mod read;
mod s3;
mod server;
mod support;

pub(crate) use bucket::Bucket;
