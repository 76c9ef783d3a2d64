//! Messages: permanent ones and notices.

use leptos::prelude::*;

use crate::error::UiError;
use crate::notice::Notice;
use crate::ui::alert::{Alert, ErrorAlert};
use crate::ui::notice::toast;
use crate::ui::sections::Section;

/// The messages.
pub(super) fn sections() -> AnyView {
    let done = Notice::new("The member was removed.");
    let undone = Notice::new("The export \"Finance\" was paused.")
        .with_undo("/_fn/resume_sample", &[("id", "0191d3a2")]);
    let throttled = UiError::Throttled { seconds: 30 };
    let failed = UiError::Internal { request_id: "0f8a3c5e".to_owned() };
    view! {
        <Section id="alerts" title="Messages in place">
            <Alert kind="note"><p>"New events arrive within a second."</p></Alert>
            <Alert kind="warning"><p>"The certificate runs out in 12 days."</p></Alert>
            <ErrorAlert error=throttled />
            <ErrorAlert error=failed />
        </Section>
        <Section id="toasts" title="Messages of what was done">
            {toast(done)}
            {toast(undone)}
        </Section>
    }
    .into_any()
}
