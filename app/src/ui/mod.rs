//! Parts that pages are made of. They know nothing of resources; most of them
//! are native elements with a class, so that they work without scripts. The
//! first group is also in islands, so the browser has it too.

pub(crate) mod bytes;
pub(crate) mod copy;
pub(crate) mod icon;
pub(crate) mod json;
pub(crate) mod keyboard;
pub(crate) mod prose;
pub(crate) mod time;

#[cfg(feature = "ssr")]
pub(crate) mod alert;
#[cfg(feature = "ssr")]
pub(crate) mod field;
#[cfg(feature = "ssr")]
pub(crate) mod form;
#[cfg(feature = "ssr")]
pub(crate) mod menu;
#[cfg(feature = "ssr")]
pub(crate) mod number;
#[cfg(feature = "ssr")]
pub(crate) mod page;
#[cfg(feature = "ssr")]
pub(crate) mod password;
#[cfg(feature = "ssr")]
pub(crate) mod tabs;
