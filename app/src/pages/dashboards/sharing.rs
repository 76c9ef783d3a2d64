//! Share links of a dashboard: makes them, shows each once, lists and revokes them.

use futures::future::try_join3;
use leptos::prelude::*;
use serde_json::json;

use super::settings::{read, tabs};
use super::{api_path, member};
use crate::error::UiError;
use crate::server_fns::dashboards::sharing::{
    CreateShareLink, RevokeShareLink, ShareLinkView, list_share_links, reveal_share_link,
};
use crate::server_fns::dashboards::{DashboardView, get_dashboard};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::{ConfirmButtons, ConfirmDialog, OpenDialog};
use crate::ui::field::{Choice, Select};
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::page::{PageHead, page, page_of_secrets};
use crate::ui::reveal::{not_revealed, revealed};
use crate::ui::sections::Section;
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Share links";
const NEW_LINK: &str = "Your new share link";
/// The days that a link can work, and their texts.
const DAYS: [(&str, &str); 5] =
    [("1", "1 day"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "365 days")];
/// The choice of a new form.
const USUAL_DAYS: &str = "30";

type Loaded = (ProjectView, DashboardView, Vec<ShareLinkView>);

/// The share links of a dashboard.
#[component]
pub(crate) fn DashboardSharing() -> impl IntoView {
    page(TITLE, read, load, draw)
}

async fn load((project, dashboard): (i64, String)) -> Result<Loaded, UiError> {
    try_join3(
        get_project(project),
        get_dashboard(project, dashboard.clone()),
        list_share_links(project, dashboard),
    )
    .await
}

fn draw((project, dashboard): (i64, String), (of, found, links): Loaded) -> AnyView {
    let path = format!("{}share_links/", api_path(project, &dashboard));
    let call = ApiCall::new("GET", path, "dashboard:read");
    view! {
        <PageHead title=TITLE within=of.name />
        <ProjectZone zone=of.timezone />
        {tabs(project, &dashboard)}
        <p class="lead">
            {format!("A share link shows {} to people without an account, until it expires or is revoked.", found.name)}
        </p>
        {list(project, &dashboard, links)}
        {creation(project, dashboard)}
        <ApiRequest call=call />
    }
    .into_any()
}

fn list(project: i64, dashboard: &str, links: Vec<ShareLinkView>) -> AnyView {
    if links.is_empty() {
        return view! { <p>"No link works at present."</p> }.into_any();
    }
    let revoke = form_action::<RevokeShareLink>();
    let columns = vec![
        Column::text("Link"),
        Column::text("Created"),
        Column::text("Created by"),
        Column::text("Expires"),
        Column::text(ACTIONS),
    ];
    let rows = links.into_iter().map(|link| row(project, dashboard, link, revoke)).collect();
    view! {
        <FormFailure result=form_result(revoke) />
        <Table caption=TITLE columns=columns rows=rows />
    }
    .into_any()
}

fn row(
    project: i64,
    dashboard: &str,
    link: ShareLinkView,
    revoke: FormAction<RevokeShareLink>,
) -> TableRow {
    let ShareLinkView { id, created_at, created_by, expires_at } = link;
    let (name, dialog) = (format!("Link {id}"), format!("revoke-{id}"));
    let (opened, closed) = (dialog.clone(), dialog.clone());
    let path = format!("{}share_links/{id}/", api_path(project, dashboard));
    let call = ApiCall::new("DELETE", path, "dashboard:write");
    let dashboard = dashboard.to_owned();
    let actions = view! {
        <RowMenu of=name.clone()>
            <OpenDialog id=opened label="Revoke..." danger=true />
        </RowMenu>
        <ConfirmDialog id=dialog title=format!("Revoke link {id}?")>
            <p>"The link stops working immediately. This cannot be undone."</p>
            <ActionForm action=revoke>
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="dashboard" value=dashboard />
                <input type="hidden" name="link" value=id.to_string() />
                <ReturnAddress />
                <ConfirmButtons id=closed verb="Revoke link" busy="Revoking link..." danger=true />
                <ApiRequest call=call of="revoke" />
            </ActionForm>
        </ConfirmDialog>
    };
    TableRow::new(vec![
        cell(name),
        cell(view! { <Time iso=created_at /> }),
        cell(member(created_by)),
        cell(view! { <Time iso=expires_at /> }),
        cell(actions),
    ])
}

fn creation(project: i64, dashboard: String) -> AnyView {
    let action = form_action::<CreateShareLink>();
    let result = form_result(action);
    let choices: Vec<Choice> =
        DAYS.into_iter().map(|(days, label)| Choice::new(days, label)).collect();
    let path = format!("{}share_links/", api_path(project, &dashboard));
    let body = json!({ "expires_in_days": "{days}" });
    let call = ApiCall::new("POST", path, "dashboard:write").with(body);
    view! {
        <Section id="create" title="Create share link">
            <Alert kind="note">
                <p>
                    "All people who have the link see the name and the description of the dashboard, and the names and answers of its insights. Lists of events or persons and SQL are not answered. Through the API, the link also gives the questions and the filters."
                </p>
            </Alert>
            <ActionForm action=action>
                <FormFailure result=result fields=&["days"] />
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="dashboard" value=dashboard />
                <ReturnAddress />
                <Select result=result name="days" label="Works for" choices=choices value=USUAL_DAYS />
                <Submit result=result label="Create share link" busy="Creating share link..." />
                <ApiRequest call=call of="create" />
            </ActionForm>
        </Section>
    }
    .into_any()
}

/// Shows a new share link, once.
#[component]
pub(crate) fn NewShareLink() -> impl IntoView {
    page_of_secrets(
        NEW_LINK,
        read,
        |(project, dashboard)| reveal_share_link(project, dashboard),
        |(project, dashboard), address| {
            let back = format!("/projects/{project}/dashboards/{dashboard}/sharing");
            let content = match address {
                Some(address) => revealed(address, "link", ().into_any(), back),
                None => {
                    let without = view! {
                        <p>"If you did not store it, revoke it and create another one."</p>
                    };
                    not_revealed("link", without.into_any(), back, "Go to the share links")
                }
            };
            view! {
                <PageHead title=NEW_LINK />
                {content}
            }
            .into_any()
        },
    )
}
