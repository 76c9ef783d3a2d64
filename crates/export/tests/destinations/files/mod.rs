//! Files at real servers and in a directory, read back with other people's
//! readers.

mod azure_blob;
mod bucket;
mod google_cloud_storage;
mod local_directory;
mod read;
mod s3;
mod server;
mod support;

pub(crate) use bucket::Bucket;
