//! The persons behind a number of an answer.

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use super::answers::number;
#[cfg(feature = "ssr")]
use crate::context::enter_project;
use crate::error::UiError;

/// A number of an answer, with a page of its persons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NumberView {
    /// What is asked, in words.
    pub(crate) title: String,
    /// Which number of the answer it is, in words.
    pub(crate) details: Vec<String>,
    /// The intervals that the answer has numbers for: values of the address and texts.
    pub(crate) intervals: Vec<(String, String)>,
    /// How many persons are behind the number.
    pub(crate) total: u64,
    pub(crate) persons: Vec<NumberPerson>,
    /// The question for the persons: JSON text.
    pub(crate) query: String,
}

/// A person behind a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NumberPerson {
    /// Id of the person.
    pub(crate) id: String,
    /// A name or address in the properties, else a distinct id.
    pub(crate) name: String,
    /// The first few distinct ids.
    pub(crate) distinct_ids: Vec<String>,
    /// Number of other distinct ids.
    pub(crate) more_ids: usize,
    /// Whether an identifying event named the person. `None`: there is no record of it.
    pub(crate) is_identified: Option<bool>,
    /// How many of its events the number counts. `None`: it counts persons.
    pub(crate) events: Option<u64>,
}

/// Lists the persons behind a number. `fields` are those of the address: the fields of the form
/// of the question, and what names the number.
#[server(prefix = "/_fn", endpoint = "list_persons_of_number")]
pub(crate) async fn list_persons_of_number(
    project: i64,
    #[server(default)] fields: BTreeMap<String, String>,
    limit: u32,
    offset: u32,
) -> Result<NumberView, UiError> {
    let (services, project) = enter_project(project).await?;
    number::view(&services, &project, &fields, limit.clamp(1, number::PERSONS_MAX), offset).await
}
