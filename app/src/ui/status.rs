//! Status indicators. Each one has a word and a shape; the colour is additional.

use leptos::prelude::*;

use super::icon::Icon;
use super::number::{grouped, percent};

/// Limit of marks in a strip.
const MARKS: usize = 24;

/// How good a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Works as expected.
    Good,
    /// Needs attention.
    Warn,
    /// Does not work.
    Bad,
    /// In progress.
    Busy,
    /// Off, or neutral.
    Quiet,
}

impl Tone {
    /// The CSS class.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Good => "tone-good",
            Self::Warn => "tone-warn",
            Self::Bad => "tone-bad",
            Self::Busy => "tone-busy",
            Self::Quiet => "tone-quiet",
        }
    }

    const fn icon(self) -> &'static str {
        match self {
            Self::Good => "check",
            Self::Warn => "alert",
            Self::Bad => "close",
            Self::Busy => "clock",
            Self::Quiet => "dot",
        }
    }
}

/// A state with its word.
#[component]
pub(crate) fn Status(
    /// How good it is.
    tone: Tone,
    #[prop(into)] label: String,
    /// Id of the word, for a switch that shows its new state immediately.
    #[prop(into, optional)]
    id: String,
) -> impl IntoView {
    let word = match id.is_empty() {
        true => label.into_any(),
        false => view! { <span id=id>{label}</span> }.into_any(),
    };
    view! {
        <span class=format!("status {}", tone.class())>
            <Icon name=tone.icon() />
            {word}
        </span>
    }
    .into_any()
}

/// A short label.
#[component]
pub(crate) fn Chip(#[prop(into)] label: String) -> impl IntoView {
    view! { <span class="chip">{label}</span> }.into_any()
}

/// A past event, such as a run.
pub(crate) struct Mark {
    /// The result.
    pub(crate) tone: Tone,
    /// A description.
    pub(crate) title: String,
    /// The address of its details.
    pub(crate) href: Option<String>,
}

/// The most recent events, each as a small shape.
#[component]
pub(crate) fn Strip(
    /// Up to 24 marks, the oldest first.
    marks: Vec<Mark>,
    /// A sentence that summarizes all marks.
    #[prop(into)]
    summary: String,
) -> impl IntoView {
    let marks = marks.into_iter().take(MARKS).map(mark).collect_view();
    view! {
        <div class="strip">
            <ul class="strip-marks">{marks}</ul>
            <p class="hint">{summary}</p>
        </div>
    }
    .into_any()
}

fn mark(mark: Mark) -> AnyView {
    let Mark { tone, title, href } = mark;
    let class = format!("strip-mark {}", tone.class());
    let shape = view! {
        <Icon name=tone.icon() />
        <span class="hidden">{title.clone()}</span>
    };
    match href {
        Some(href) => {
            view! { <li><a class=class href=href title=title>{shape}</a></li> }.into_any()
        }
        None => view! { <li><span class=class title=title>{shape}</span></li> }.into_any(),
    }
}

/// Progress of an operation. Without a total, it only shows that the operation is in
/// progress.
#[component]
pub(crate) fn Progress(
    /// The amount that is done.
    done: u64,
    /// The total amount.
    total: Option<u64>,
    /// The label, such as `Rows exported`.
    #[prop(into)]
    label: String,
) -> impl IntoView {
    let text = match total {
        Some(total) => {
            format!("{} of {} ({})", grouped(done), grouped(total), percent(done, total))
        }
        None => format!("{} so far", grouped(done)),
    };
    let (value, max) = match total {
        Some(total) => (Some(done.min(total).to_string()), Some(total.max(1).to_string())),
        None => (None, None),
    };
    view! {
        <div class="progress">
            <p class="progress-text"><span>{label.clone()}</span> <span>{text}</span></p>
            <progress aria-label=label value=value max=max></progress>
        </div>
    }
    .into_any()
}
