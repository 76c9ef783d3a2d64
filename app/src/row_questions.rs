//! Questions whose answers are rows, by the fields of their pages. The page and its files ask
//! the same.
//!
//! What does not belong here: questions whose answers are numbers (`questions`), and the pages
//! themselves (`pages::explore`, `pages::sql`).

pub mod explore;
pub mod sql;
