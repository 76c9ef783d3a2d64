//! Events of a project as they arrive: the islands of the start page and of the live
//! page. The server draws them completely, and the browser keeps them up to date.

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
