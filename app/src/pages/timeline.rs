//! Events of a person or a group in a list.

use leptos::prelude::*;

use crate::server_fns::persons::TimelineEvent;
use crate::ui::json;
use crate::ui::time::Time;

/// Events, newest first. Each one opens to its properties.
pub(super) fn timeline(events: Vec<TimelineEvent>) -> AnyView {
    let entries = events.into_iter().map(entry).collect_view();
    view! { <ol class="timeline">{entries}</ol> }.into_any()
}

fn entry(event: TimelineEvent) -> AnyView {
    let TimelineEvent { event, distinct_id, at, properties, .. } = event;
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
