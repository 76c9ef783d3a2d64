//! The numbers of an answer as links to the persons behind them.

use leptos::prelude::*;

use crate::local_path::encode;
use crate::questions::QuestionForm;

/// Addresses of the persons behind the numbers of an answer.
pub(super) struct PersonLinks(String);

impl PersonLinks {
    /// For the answer to the question of a form.
    pub(super) fn new(project: i64, form: &QuestionForm) -> Self {
        let mut address = format!("/projects/{project}/insights/persons?");
        form.pairs().iter().for_each(|(name, value)| push(&mut address, name, value));
        Self(address)
    }

    /// A number, which the parts of its name and their values name.
    pub(super) fn number(&self, name: &[(&str, &str)], number: impl IntoView + 'static) -> AnyView {
        let mut address = self.0.clone();
        name.iter().for_each(|(name, value)| push(&mut address, name, value));
        view! { <a href=address>{number.into_any()}</a> }.into_any()
    }

    /// A number of persons. It is no link if there are none.
    pub(super) fn count(
        &self,
        persons: u64,
        name: &[(&str, &str)],
        number: impl IntoView + 'static,
    ) -> AnyView {
        match persons {
            0 => number.into_any(),
            _ => self.number(name, number),
        }
    }
}

fn push(address: &mut String, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    if !address.ends_with('?') {
        address.push('&');
    }
    address.push_str(name);
    address.push('=');
    address.push_str(&encode(value));
}
