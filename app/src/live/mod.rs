//! Events of a project as they arrive, on the start page and on the events page. The
//! browser keeps them up to date.
//!
//! What belongs here: rows, the connection, the list and the panel. What does not: the
//! filter form and the chart (`pages::events`), and which rows match (`weir_model::live`).

mod address;
mod badge;
mod columns;
mod connection;
mod dynamic;
mod event_list;
mod panel;
mod recent_events;
mod row;
mod row_table;
mod rows;
mod state;
mod window;

pub(crate) use self::columns::{COLUMNS, Columns};
pub(crate) use self::event_list::{EventList, ListSettings, Nothing};
pub(crate) use self::recent_events::RecentEvents;
pub(crate) use self::row::{Row, sample_caption};
pub(crate) use self::{
    address::of as address_of, address::selected as selected_in_address, badge::badge,
};
