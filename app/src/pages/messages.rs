//! The notices of this session, for users who missed them.

use leptos::prelude::*;

use super::account_nav::AccountNav;
use crate::server_fns::messages::{MessageView, list_messages};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::Empty;
use crate::ui::page::{PageHead, page};
use crate::ui::time::Time;

#[component]
pub(crate) fn Messages() -> impl IntoView {
    page("Messages", || (), |()| list_messages(), |(), found| draw(found))
}

fn draw(found: Vec<MessageView>) -> AnyView {
    let file = (!found.is_empty()).then(|| view! { <DownloadCsv /> });
    let content = if found.is_empty() {
        view! {
            <Empty title="No message yet">
                <p>"The messages about your changes are listed here."</p>
            </Empty>
        }
        .into_any()
    } else {
        let lines = found.into_iter().map(line).collect_view();
        view! { <ul class="plain messages" aria-label="Messages">{lines}</ul> }.into_any()
    };
    view! {
        <PageHead title="Messages">{file}</PageHead>
        <AccountNav />
        <p class="lead">"The last 20 messages of this session, newest first. They are deleted when you sign out."</p>
        {content}
    }
    .into_any()
}

fn line(message: MessageView) -> AnyView {
    view! { <li><Time iso=message.at /> " " <span>{message.text}</span></li> }.into_any()
}
