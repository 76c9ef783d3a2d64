//! Events of a project as they arrive: the islands of the start page and of the live
//! page. The server draws them completely, and the browser keeps them up to date.

mod address;
mod badge;
mod connection;
mod detail;
mod filter;
mod live_list;
mod recent_events;
mod row;
mod row_list;
mod window;

#[cfg(any(feature = "ssr", feature = "csr"))]
pub(crate) use self::{filter::Filter, live_list::LiveList, recent_events::RecentEvents};
pub(crate) use row::Row;
#[cfg(feature = "ssr")]
pub(crate) use {badge::badge, connection::MAX_ROWS, detail::sample_caption, row::OutcomeLabel};
