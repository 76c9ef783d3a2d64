//! Reusable components of pages. They do not fetch data. Most of them are native elements
//! with a class, so that they work without scripts.
//!
//! What does not belong here: pages (`pages`).

pub(crate) mod alert;
pub(crate) mod api_request;
pub(crate) mod blanks;
pub(crate) mod bulk;
pub(crate) mod bytes;
pub(crate) mod chart;
pub(crate) mod code;
pub(crate) mod code_figure;
pub(crate) mod columns;
pub(crate) mod confirm;
pub(crate) mod copy;
pub(crate) mod download;
pub(crate) mod empty;
pub(crate) mod field;
pub(crate) mod form;
pub(crate) mod form_action;
pub(crate) mod icon;
pub(crate) mod json;
pub(crate) mod keyboard;
pub(crate) mod menu;
pub(crate) mod notice;
pub(crate) mod number;
pub(crate) mod page;
pub(crate) mod page_data;
pub(crate) mod pager;
pub(crate) mod passkey;
pub(crate) mod password;
pub(crate) mod prose;
pub(crate) mod query;
pub(crate) mod refresh;
pub(crate) mod reorder;
pub(crate) mod rest;
pub(crate) mod reveal;
pub(crate) mod sections;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod tabs;
pub(crate) mod time;
