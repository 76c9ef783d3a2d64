//! One dashboard: its tiles, the range for all of them, and the form that adds an insight.

use futures::future::try_join3;
use leptos::prelude::*;
use serde_json::json;
use weir_model::dashboards::TileHeight;

use super::tiles::{self, Outcome, Source, Tile};
use super::{api_path, settings};
use crate::error::UiError;
use crate::pages::{in_path, project_in_path};
use crate::questions::RANGES;
use crate::server_fns::dashboards::tiles::{AddTile, MoveTile, OrderTiles, RemoveTile, ResizeTile};
use crate::server_fns::dashboards::{
    DashboardView, InsightOffer, TileView, get_dashboard, list_insights_to_add,
};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::server_fns::subscriptions::root;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::empty::Empty;
use crate::ui::field::{Choice, Select};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::number::counted;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager};
use crate::ui::query::{FilterForm, in_query};
use crate::ui::sections::Section;
use crate::ui::time::ProjectZone;

/// The dashboard in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    dashboard: String,
    /// The date at which the range begins. Empty: the range of the dashboard.
    range: String,
    list_page: ListPage,
}

/// The dashboard, its tiles on the page with their answers, and the number of all tiles.
type Loaded = (ProjectView, DashboardView, InsightOffer, Vec<Outcome>, u64);

#[component]
pub(crate) fn Dashboard() -> impl IntoView {
    page("Dashboard", read, load, draw)
}

fn read() -> Inputs {
    Inputs {
        project: project_in_path(),
        dashboard: in_path("dashboard"),
        range: in_query("range"),
        list_page: tiles::tile_page(),
    }
}

impl Inputs {
    fn source(&self) -> Source {
        Source::Dashboard {
            project: self.project,
            dashboard: self.dashboard.clone(),
            range: self.range.clone(),
        }
    }
}

async fn load(inputs: Inputs) -> Result<Loaded, UiError> {
    let Inputs { project, dashboard, list_page, .. } = inputs.clone();
    let (of, mut found, offer) = try_join3(
        get_project(project),
        get_dashboard(project, dashboard.clone()),
        list_insights_to_add(project, dashboard),
    )
    .await?;
    let (shown, total) = tiles::on_page(found.tiles, list_page);
    let outcomes = tiles::answers(inputs.source(), &shown).await;
    found.tiles = shown;
    Ok((of, found, offer, outcomes, total))
}

fn draw(inputs: Inputs, (of, found, offer, outcomes, total): Loaded) -> AnyView {
    let Inputs { project, dashboard, list_page, .. } = inputs.clone();
    let title = found.name.clone();
    let settings = format!("/projects/{project}/dashboards/{dashboard}/settings");
    let sharing = format!("/projects/{project}/dashboards/{dashboard}/sharing");
    let subscriptions = root(project, "", &dashboard);
    let description = found.description.clone();
    let description =
        (!description.is_empty()).then(|| view! { <p class="lead">{description}</p> });
    let call = ApiCall::new("GET", api_path(project, &dashboard), "dashboard:read");
    let content = match total {
        0 => view! {
            <Empty title="No tile yet">
                <p>"Add an insight of the project. Each tile shows the answer of one insight."</p>
            </Empty>
        }
        .into_any(),
        total => view! {
            {range(&inputs.range, &found)}
            {tiles_view(&inputs, found.tiles, outcomes, total)}
            <Pager page=list_page total=total what="tiles" />
        }
        .into_any(),
    };
    view! {
        <PageHead title=title within=of.name>
            <a class="button" href=sharing>"Share"</a>
            <a class="button" href=subscriptions>"Subscriptions"</a>
            <a class="button" href=settings>"Settings"</a>
        </PageHead>
        <ProjectZone zone=of.timezone />
        {description}
        {content}
        {addition(project, dashboard, offer)}
        <ApiRequest call=call />
    }
    .into_any()
}

/// The range for all tiles.
fn range(chosen: &str, found: &DashboardView) -> AnyView {
    let own = match (found.range.as_str(), found.has_end) {
        ("", false) => "Range of each insight".to_owned(),
        (from, false) => format!("Range of the dashboard: {}", settings::range_label(from)),
        _ => "Range of the dashboard".to_owned(),
    };
    let mut choices = vec![Choice::new("", own)];
    choices.extend(RANGES.iter().map(|(from, label)| Choice::new(*from, *label)));
    if !chosen.is_empty() && !RANGES.iter().any(|(from, _)| *from == chosen) {
        choices.push(Choice::new(chosen, chosen));
    }
    let filters = found.filters;
    let filters = (filters > 0).then(|| {
        let filters = counted(filters as u64, "filter", "filters");
        view! {
            <p class="hint">{format!("All tiles have {filters} of the dashboard, which were set through the API.")}</p>
        }
    });
    let (result, value) = (FormResult::sample(None), chosen.to_owned());
    view! {
        <FilterForm label="Range of all tiles">
            <Select result=result name="range" label="Range" choices=choices value=value />
        </FilterForm>
        {filters}
    }
    .into_any()
}

/// The forms of all tiles.
#[derive(Clone, Copy)]
struct Actions {
    shift: FormAction<MoveTile>,
    order: FormAction<OrderTiles>,
    resize: FormAction<ResizeTile>,
    remove: FormAction<RemoveTile>,
}

/// Where a tile can be moved to.
#[derive(Clone, Copy)]
struct Moves {
    earlier: bool,
    later: bool,
}

/// The tiles of the page, of so many in total.
fn tiles_view(
    inputs: &Inputs,
    shown: Vec<TileView>,
    outcomes: Vec<Outcome>,
    total: u64,
) -> AnyView {
    let Inputs { project, dashboard, list_page, .. } = inputs;
    let numbers = u64::from(list_page.offset)..;
    let actions = Actions {
        shift: form_action(),
        order: form_action(),
        resize: form_action(),
        remove: form_action(),
    };
    let order = order(*project, dashboard, &shown, actions.order);
    let tile = |(at, (view, outcome)): (u64, (TileView, Outcome))| {
        let moves = Moves { earlier: at > 0, later: at + 1 < total };
        let href = format!("/projects/{project}/insights/{}", view.short_id);
        let heading = view! { <a href=href>{view.name.clone()}</a> }.into_any();
        let menu = Some(menu(*project, dashboard, &view, moves, actions));
        Tile { view, outcome, heading, menu }
    };
    let all: Vec<Tile> = numbers.zip(shown.into_iter().zip(outcomes)).map(tile).collect();
    #[cfg(not(feature = "ssr"))]
    crate::behaviours::start_reordering();
    view! {
        <FormFailure result=form_result(actions.shift) />
        <FormFailure result=form_result(actions.order) />
        <FormFailure result=form_result(actions.resize) />
        <FormFailure result=form_result(actions.remove) />
        <div data-reorder="">
            {tiles::drawn(inputs.source(), all)}
            {order}
        </div>
    }
    .into_any()
}

/// The form that scripts fill in and send after a tile was dragged.
fn order(
    project: i64,
    dashboard: &str,
    shown: &[TileView],
    action: FormAction<OrderTiles>,
) -> AnyView {
    let ids: Vec<String> = shown.iter().map(|tile| tile.id.to_string()).collect();
    let (dashboard, wanted) = (dashboard.to_owned(), ids.join(","));
    view! {
        <div hidden>
            <ActionForm action=action>
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="dashboard" value=dashboard />
                <input type="hidden" name="wanted" value=wanted data-reorder-wanted="" />
                <ReturnAddress />
                <button type="submit" data-reorder-send="">"Save order"</button>
            </ActionForm>
        </div>
    }
    .into_any()
}

/// Moves, resizes or removes a tile.
fn menu(project: i64, dashboard: &str, tile: &TileView, moves: Moves, actions: Actions) -> AnyView {
    let number = tile.id;
    let shift = |to: &'static str, label: &'static str| {
        let dashboard = dashboard.to_owned();
        view! {
            <li>
                <ActionForm action=actions.shift>
                    <input type="hidden" name="project" value=project.to_string() />
                    <input type="hidden" name="dashboard" value=dashboard />
                    <input type="hidden" name="tile" value=number.to_string() />
                    <input type="hidden" name="to" value=to />
                    <ReturnAddress part=tiles::part(number) />
                    <button type="submit" data-busy="Moving...">{label}</button>
                </ActionForm>
            </li>
        }
        .into_any()
    };
    let earlier = moves.earlier.then(|| shift("earlier", "Move earlier"));
    let later = moves.later.then(|| shift("later", "Move later"));
    let size = |(size, label): (&'static str, &'static str)| {
        let dashboard = dashboard.to_owned();
        view! {
            <li>
                <ActionForm action=actions.resize>
                    <input type="hidden" name="project" value=project.to_string() />
                    <input type="hidden" name="dashboard" value=dashboard />
                    <input type="hidden" name="tile" value=number.to_string() />
                    <input type="hidden" name="size" value=size />
                    <ReturnAddress part=tiles::part(number) />
                    <button type="submit" data-busy="Resizing...">{label}</button>
                </ActionForm>
            </li>
        }
        .into_any()
    };
    let sizes = sizes(tile).into_iter().map(size).collect_view();
    let (insight, dashboard) = (tile.insight.to_string(), dashboard.to_owned());
    view! {
        <RowMenu of=tile.name.clone()>
            {earlier}
            {later}
            {sizes}
            <li>
                <ActionForm action=actions.remove>
                    <input type="hidden" name="project" value=project.to_string() />
                    <input type="hidden" name="dashboard" value=dashboard />
                    <input type="hidden" name="insight" value=insight />
                    <ReturnAddress />
                    <button type="submit" data-busy="Removing...">"Remove from dashboard"</button>
                </ActionForm>
            </li>
        </RowMenu>
    }
    .into_any()
}

/// The words of the sizes that a tile can get, with the labels of their buttons.
fn sizes(tile: &TileView) -> Vec<(&'static str, &'static str)> {
    const LOWER: &str = "Make lower";
    const HIGHER: &str = "Make higher";
    let width = match tile.is_wide {
        true => ("half", "Make half as wide"),
        false => ("wide", "Make as wide as the page"),
    };
    let heights = match tile.height {
        TileHeight::Low => vec![("usual", HIGHER)],
        TileHeight::Usual => vec![("low", LOWER), ("high", HIGHER)],
        TileHeight::High => vec![("usual", LOWER)],
    };
    std::iter::once(width).chain(heights).collect()
}

/// Adds an insight.
fn addition(project: i64, dashboard: String, offer: InsightOffer) -> AnyView {
    let InsightOffer { insights, has_more } = offer;
    if insights.is_empty() {
        return view! {
            <Section id="add" title="Add an insight">
                <p>
                    "There is no other insight. "
                    <a href=format!("/projects/{project}/insights/new")>"Ask a question"</a>
                    " and save it."
                </p>
            </Section>
        }
        .into_any();
    }
    let action = form_action::<AddTile>();
    let result = form_result(action);
    let hint = match has_more {
        true => "The first insights of the project. Add others on their own pages.",
        false => "",
    };
    let choices = insights.into_iter().map(|one| Choice::new(one.id.to_string(), one.name));
    let choices = choices.collect::<Vec<_>>();
    let body = json!({ "tiles": [{ "insight": "{insight}" }] });
    let call = ApiCall::new("PATCH", api_path(project, &dashboard), "dashboard:write").with(body);
    view! {
        <Section id="add" title="Add an insight">
            <ActionForm action=action>
                <FormFailure result=result fields=&["insight"] />
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="dashboard" value=dashboard />
                <ReturnAddress />
                <Select result=result name="insight" label="Insight" choices=choices hint=hint />
                <Submit result=result label="Add to dashboard" busy="Adding..." />
                <ApiRequest call=call of="add" />
            </ActionForm>
        </Section>
    }
    .into_any()
}
