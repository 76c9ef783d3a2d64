//! Events of a person or a group in a list.

use leptos::prelude::*;

use crate::server_fns::persons::TimelineEvent;
use crate::ui::icon::Icon;
use crate::ui::json;
use crate::ui::time::Time;

/// Events of a project, newest first. Each one opens to its properties, and has a link to its
/// page.
pub(super) fn timeline(project: i64, events: Vec<TimelineEvent>) -> AnyView {
    let entries = events.into_iter().map(|event| entry(project, event)).collect_view();
    view! { <ol class="timeline">{entries}</ol> }.into_any()
}

fn entry(project: i64, event: TimelineEvent) -> AnyView {
    let TimelineEvent { uuid, event, distinct_id, at, properties } = event;
    let href = format!("/projects/{project}/events?selected={uuid}");
    let name = event.clone();
    view! {
        <li>
            <details>
                <summary>
                    <span class="timeline-event">{event}</span>
                    <span class="timeline-id mono faint">{distinct_id}</span>
                    <Time iso=at />
                </summary>
                <pre tabindex="0"><code>{json::pretty(&properties)}</code></pre>
            </details>
            <a class="timeline-open" href=href title="Open event">
                <Icon name="external" />
                <span class="hidden">"Open event " {name}</span>
            </a>
        </li>
    }
    .into_any()
}

/// Encodes one segment of a path, including slashes.
pub(super) fn segment(text: &str) -> String {
    crate::local_path::encode(text).replace('/', "%2F")
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn a_path_segment_is_escaped() {
        assert_eq!(segment("a/b?c=d%"), "a%2Fb%3Fc%3Dd%25");
    }
}
