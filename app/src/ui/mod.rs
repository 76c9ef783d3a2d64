//! Reusable components of pages. They do not fetch data. Most of them are native elements
//! with a class, so that they work without scripts. Modules of the first group are also
//! used in islands, so the browser build has them too.
//!
//! What does not belong here: pages (`pages`), and islands (`live`).

#[cfg(any(feature = "ssr", feature = "hydrate", feature = "csr"))]
pub(crate) mod blanks;
pub(crate) mod bytes;
pub(crate) mod code_figure;
pub(crate) mod copy;
pub(crate) mod icon;
pub(crate) mod json;
pub(crate) mod keyboard;
pub(crate) mod prose;
pub(crate) mod time;

#[cfg(feature = "ssr")]
pub(crate) mod alert;
#[cfg(feature = "ssr")]
pub(crate) mod api_request;
#[cfg(feature = "ssr")]
pub(crate) mod chart;
#[cfg(feature = "ssr")]
pub(crate) mod code;
#[cfg(feature = "ssr")]
pub(crate) mod confirm;
#[cfg(feature = "ssr")]
pub(crate) mod empty;
#[cfg(feature = "ssr")]
pub(crate) mod field;
#[cfg(feature = "ssr")]
pub(crate) mod form;
#[cfg(feature = "ssr")]
pub(crate) mod menu;
#[cfg(feature = "ssr")]
pub(crate) mod notice;
#[cfg(feature = "ssr")]
pub(crate) mod number;
#[cfg(feature = "ssr")]
pub(crate) mod page;
#[cfg(feature = "ssr")]
pub(crate) mod pager;
#[cfg(feature = "ssr")]
pub(crate) mod password;
#[cfg(feature = "ssr")]
pub(crate) mod query;
#[cfg(feature = "ssr")]
pub(crate) mod refresh;
#[cfg(feature = "ssr")]
pub(crate) mod sections;
#[cfg(feature = "ssr")]
pub(crate) mod status;
#[cfg(feature = "ssr")]
pub(crate) mod table;
#[cfg(feature = "ssr")]
pub(crate) mod tabs;
