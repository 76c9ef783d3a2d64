//! What reaches a project, as it comes: the islands of the start page and of
//! the live page. The server draws them complete, the browser goes on from there.

mod address;
mod arrivals;
mod badge;
mod detail;
mod feed;
mod filter;
mod list;
mod row;
mod stream;
mod window;

#[cfg(any(feature = "ssr", feature = "csr"))]
pub(crate) use self::{arrivals::Arrivals, filter::Filter, stream::Stream};
pub(crate) use row::Row;
#[cfg(feature = "ssr")]
pub(crate) use {badge::badge, detail::sample_caption, feed::KEPT, row::Fate};
