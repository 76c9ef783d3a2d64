//! What reaches a project, as it comes: the list of the start page and of the
//! live page.

mod badge;
mod detail;
mod feed;
mod filter;
mod list;
mod row;

pub(crate) use badge::OutcomeBadge;
pub(crate) use detail::Detail;
pub(crate) use feed::{Feed, Link};
pub(crate) use filter::Filter;
pub(crate) use list::RowList;
pub(crate) use row::Row;
