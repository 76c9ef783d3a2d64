//! The states of a panel.

use std::convert::Infallible;

use leptos::prelude::*;

use crate::error::UiError;
use crate::ui::empty::{Empty, NoMatch, ReadOnly, panel};
use crate::ui::icon::Icon;
use crate::ui::sections::Section;
use crate::ui::status::Progress;

/// The six states of a panel.
pub(super) fn sections() -> AnyView {
    view! {
        <Section id="panel-content" title="Panel: content" hint="The content stays visible while it is refreshed.">
            {panel(Ok(()), |()| view! { <p>"12 members, 2 of them owners."</p> }.into_any())}
        </Section>
        <Section id="panel-initial" title="Panel: nothing yet">
            <Empty title="No export yet">
                <p>"An export brings events to a storage or a database of yours, every hour or every day."</p>
                <p>
                    <a class="button button-primary" href="#panel-initial">
                        <Icon name="plus" />
                        "New export"
                    </a>
                </p>
            </Empty>
        </Section>
        <Section id="panel-no-match" title="Panel: no results">
            <NoMatch filter="level is owner, name contains grace" clear="#panel-no-match" />
        </Section>
        <Section id="panel-failed" title="Panel: failed">
            {failed(UiError::Internal { request_id: "0f8a3c5e".to_owned() })}
        </Section>
        <Section id="panel-refused" title="Panel: not allowed">
            {failed(UiError::Forbidden("Administrators and owners can see who was invited.".to_owned()))}
            <ReadOnly why="You can see this. Owners can change it." />
        </Section>
        <Section id="panel-waiting" title="Panel: in progress, and out of date">
            <div id="sample">
                <Progress done=1_204 total=None label="Rows exported" />
            </div>
            <div class="refresh hint">
                <p>"Updated every 5 s. " <a href="#panel-waiting">"Pause updates"</a></p>
                <p class="stale">"This may be out of date: the last update failed. Next try in 10 s."</p>
            </div>
        </Section>
    }
    .into_any()
}

/// A panel without data.
fn failed(error: UiError) -> AnyView {
    panel(Err(error), |never: Infallible| match never {})
}
