//! Creates an export: first the destination, then its settings.

use leptos::prelude::*;
use server_fn::ServerFn;
use weir_model::exports::destinations::{ALL, DestinationType};

use super::fields::Begin;
use super::form::{Shape, form};
use super::{list_path, words};
use crate::pages::id_in_path;
use crate::server_fns::exports::form::{CreateExport, Offer, TestExport, get_export_offer};
use crate::ui::field::{Choice, RadioCards};
use crate::ui::form::{FormResult, form_result};
use crate::ui::form_action::{form_action, has_failed_form};
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;

const TITLE: &str = "New export";

#[component]
pub(crate) fn ExportNew() -> impl IntoView {
    page(
        TITLE,
        || (id_in_path(), in_query("destination")),
        |(organization, destination)| {
            // Secrets in the session belong only to a form that failed and is shown again.
            get_export_offer(organization, destination, has_failed_form())
        },
        |(_, destination), offer| draw(&destination, offer),
    )
}

fn draw(destination: &str, offer: Offer) -> AnyView {
    let created = form_result(form_action::<CreateExport>());
    let tested = form_result(form_action::<TestExport>());
    let Offer { organization, kept } = offer;
    let within = organization.name.clone();
    let list = list_path(&organization.id);
    let content = match DestinationType::of(destination) {
        None => view! {
            <p class="lead">"Choose a destination. Its settings follow on the next page."</p>
            {destinations(&organization.id, created)}
        }
        .into_any(),
        Some(kind) => {
            let shape = Shape {
                organization,
                kind,
                export: None,
                begin: Begin { values: None, set: kept },
                saves: CreateExport::PATH,
                tries: TestExport::PATH,
            };
            let change = format!("{list}/new");
            view! {
                <p class="lead">
                    "To " <strong>{kind.label}</strong> ". "
                    <a href=change>"Choose another destination"</a>
                </p>
                {form(shape, created, tested)}
            }
            .into_any()
        }
    };
    view! {
        <PageHead title=TITLE within=within />
        {content}
    }
    .into_any()
}

/// The first step: the choice of a destination. It changes nothing.
fn destinations(organization: &str, result: FormResult) -> AnyView {
    let choices: Vec<Choice> = ALL
        .iter()
        .map(|kind| Choice::new(kind.name, kind.label).hint(words::destination(kind.name)))
        .collect();
    let first = ALL.first().map_or("", |kind| kind.name);
    view! {
        <form method="get" action=format!("{}/new", list_path(organization))>
            <RadioCards result=result name="destination" legend="Destination" choices=choices value=first />
            <div class="submit">
                <button type="submit" class="button button-primary">"Continue"</button>
            </div>
        </form>
    }
    .into_any()
}
