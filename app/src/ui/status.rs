//! How things are doing: always a word and a shape, the colour only helps.

use leptos::prelude::*;

use super::icon::Icon;
use super::number::{grouped, percent};

/// Marks that a strip shows at most.
const MARKS: usize = 24;

/// How good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Needs a look.
    Warn,
    /// Does not work.
    Bad,
    /// Under way.
    Busy,
    /// Off, or nothing to say.
    Quiet,
}

impl Tone {
    /// The class of what has this tone.
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

/// A state in a word.
#[component]
pub(crate) fn Status(
    /// How good it is.
    tone: Tone,
    /// The word.
    #[prop(into)]
    label: String,
    /// Id of the word, for a switch that shows at once what it leads to.
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

/// A small word about something.
#[component]
pub(crate) fn Chip(
    /// The word.
    #[prop(into)]
    label: String,
) -> impl IntoView {
    view! { <span class="chip">{label}</span> }.into_any()
}

/// One of several things that happened.
pub(crate) struct Mark {
    /// How it went.
    pub(crate) tone: Tone,
    /// What it was, in words.
    pub(crate) title: String,
    /// Where more about it is.
    pub(crate) href: Option<String>,
}

/// The last things that happened, each a small shape.
#[component]
pub(crate) fn Strip(
    /// Up to 24 of them, the oldest first.
    marks: Vec<Mark>,
    /// All of them in a sentence.
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

/// How far something is; without a total, that it goes on.
#[component]
pub(crate) fn Progress(
    /// What is done.
    done: u64,
    /// All of it.
    total: Option<u64>,
    /// What is counted, such as `Rows exported`.
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
