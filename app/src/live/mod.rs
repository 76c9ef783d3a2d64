//! Events of a project as they arrive, on the start page and on the live
//! page. The browser keeps them up to date.

pub(crate) mod address;
mod badge;
mod connection;
mod detail;
mod filter;
mod live_list;
mod recent_events;
mod row;
mod row_list;
mod window;

pub(crate) use self::{live_list::LiveList, recent_events::RecentEvents};
pub(crate) use row::Row;
pub(crate) use {badge::badge, connection::MAX_ROWS, detail::sample_caption, row::OutcomeLabel};
