//! Shared parts of all pages: data and drawing, title, heading, and the error if the data
//! cannot be loaded.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_params_map};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::alert::ErrorAlert;
use super::field::forget_typed_values;
use super::form_action::FormActions;
use super::page_data::{LoadResult, PageData};
use crate::error::UiError;
use crate::page_facts::track_number_format;

/// The product's name in titles.
const PRODUCT: &str = "Weir";
/// The title of a page that does not exist, or that the user has no access to.
pub(crate) const NOT_FOUND: &str = "Page not found";

/// A page in three steps: `read` reads its inputs from the address, `load` fetches the
/// data for them through server functions, and `draw` draws both. `title` is the title if
/// loading fails.
///
/// `draw` runs again when the inputs change, when a form of the page has an outcome, and
/// after a change of data. The new drawing replaces the previous one element by element, so
/// focus, scroll position and entered values stay. `draw` must not await.
pub(crate) fn page<I, D, F>(
    title: impl Into<String>,
    read: impl Fn() -> I + Copy + Send + Sync + 'static,
    load: impl Fn(I) -> F + Copy + Send + Sync + 'static,
    draw: impl Fn(I, D) -> AnyView + Copy + Send + Sync + 'static,
) -> AnyView
where
    I: Clone + PartialEq + Send + Sync + 'static,
    D: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    F: Future<Output = Result<D, UiError>> + Send + 'static,
{
    let title = title.into();
    draw_page(Steps::of(move || title.clone(), true, read, load, draw))
}

/// Like [`page`], for a title that depends on the address: `title` reads it, again when the
/// parameters of the route change.
pub(crate) fn page_with_title<I, D, F>(
    title: impl Fn() -> &'static str + Send + Sync + 'static,
    read: impl Fn() -> I + Copy + Send + Sync + 'static,
    load: impl Fn(I) -> F + Copy + Send + Sync + 'static,
    draw: impl Fn(I, D) -> AnyView + Copy + Send + Sync + 'static,
) -> AnyView
where
    I: Clone + PartialEq + Send + Sync + 'static,
    D: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    F: Future<Output = Result<D, UiError>> + Send + 'static,
{
    draw_page(Steps::of(move || title().to_owned(), true, read, load, draw))
}

/// Like [`page`], for a page with secrets that are shown once: the browser does not keep its
/// data for the back button.
pub(crate) fn page_of_secrets<I, D, F>(
    title: impl Into<String>,
    read: impl Fn() -> I + Copy + Send + Sync + 'static,
    load: impl Fn(I) -> F + Copy + Send + Sync + 'static,
    draw: impl Fn(I, D) -> AnyView + Copy + Send + Sync + 'static,
) -> AnyView
where
    I: Clone + PartialEq + Send + Sync + 'static,
    D: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    F: Future<Output = Result<D, UiError>> + Send + 'static,
{
    let title = title.into();
    draw_page(Steps::of(move || title.clone(), false, read, load, draw))
}

/// The steps of a page without their types, so that the code that pages share is compiled
/// once. Data that cannot be read as the type of the page is [`UiError::NoAnswer`].
#[derive(Clone)]
struct Steps {
    title: Arc<dyn Fn() -> String + Send + Sync>,
    /// Whether the browser keeps the data for the back button.
    is_kept: bool,
    read: Arc<dyn Fn() -> Inputs + Send + Sync>,
    load: Arc<dyn Fn(&Inputs) -> Loading + Send + Sync>,
    draw: Arc<Draw>,
}

type Draw = dyn Fn(&Inputs, PageData) -> AnyView + Send + Sync;

type Loading = Pin<Box<dyn Future<Output = Result<PageData, UiError>> + Send>>;

impl Steps {
    fn of<I, D, F>(
        title: impl Fn() -> String + Send + Sync + 'static,
        is_kept: bool,
        read: impl Fn() -> I + Copy + Send + Sync + 'static,
        load: impl Fn(I) -> F + Copy + Send + Sync + 'static,
        draw: impl Fn(I, D) -> AnyView + Copy + Send + Sync + 'static,
    ) -> Self
    where
        I: Clone + PartialEq + Send + Sync + 'static,
        D: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
        F: Future<Output = Result<D, UiError>> + Send + 'static,
    {
        Self {
            title: Arc::new(title),
            is_kept,
            read: Arc::new(move || Inputs::of(read())),
            load: Arc::new(move |inputs| {
                // Here, and not in the future: now the address belongs to these inputs.
                let loading = inputs.get::<I>().map(load);
                Box::pin(async move {
                    match loading {
                        Some(loading) => Ok(PageData::of(loading.await?)),
                        None => Err(UiError::NoAnswer),
                    }
                })
            }),
            draw: Arc::new(move |inputs, data| match (inputs.get::<I>(), data.get::<D>()) {
                (Some(inputs), Some(data)) => draw(inputs, data),
                _ => failed(UiError::NoAnswer),
            }),
        }
    }
}

/// The inputs of a page without their type. They can be compared.
#[derive(Clone)]
struct Inputs {
    value: Arc<dyn Any + Send + Sync>,
    is_same: fn(&(dyn Any + Send + Sync), &(dyn Any + Send + Sync)) -> bool,
}

impl Inputs {
    fn of<I: PartialEq + Send + Sync + 'static>(inputs: I) -> Self {
        Self {
            value: Arc::new(inputs),
            is_same: |one, other| match (one.downcast_ref::<I>(), other.downcast_ref::<I>()) {
                (Some(one), Some(other)) => one == other,
                _ => false,
            },
        }
    }

    fn get<I: Clone + 'static>(&self) -> Option<I> {
        self.value.downcast_ref::<I>().cloned()
    }
}

impl PartialEq for Inputs {
    fn eq(&self, other: &Self) -> bool {
        (self.is_same)(&*self.value, &*other.value)
    }
}

/// Starts to load the data of a page before the user opens it. Does nothing if the browser
/// has the data: in its cache, or in the document of the server. Pages with secrets load
/// theirs once, when they are shown.
#[cfg(not(feature = "ssr"))]
fn load_ahead(steps: &Steps) {
    use leptos_router::hooks::use_url;

    use crate::client::{ahead, cache, is_hydrating};

    let address = use_url().with_untracked(|url| format!("{}?{}", url.path(), url.search()));
    if steps.is_kept && !is_hydrating() && cache::get(&address).is_none() {
        ahead::load(address, || untrack(|| (steps.load)(&(steps.read)())));
    }
}

/// Draws a page, and draws it again when its inputs, its data or the parameters of its route
/// change.
fn draw_page(steps: Steps) -> AnyView {
    #[cfg(not(feature = "ssr"))]
    if crate::client::ahead::is_request() {
        load_ahead(&steps);
        return ().into_any();
    }
    let location = use_location();
    let (path, search) = (location.pathname, location.search);
    let route_params = route_params();
    // Other parameters on the same route are another page.
    let page = move || {
        // Read, not only tracked: a memo that was not read yet counts as changed.
        route_params.with(|_| ());
        draw_with_data(steps.clone(), path, search)
    };
    page.into_any()
}

/// Draws a page for the present parameters of its route.
fn draw_with_data(steps: Steps, path: Memo<String>, search: Memo<String>) -> impl IntoView {
    let own_path = path.get_untracked();
    let actions = FormActions::provide();
    forget_typed_values();
    let inputs = inputs_of_page(own_path.clone(), path, search, steps.read);
    let data = data_of_page(own_path, search, inputs, &actions, steps.load, steps.is_kept);
    #[cfg(not(feature = "ssr"))]
    let (last_drawn, drawn_path) = (ArcStoredValue::new(None::<Inputs>), path.get_untracked());
    let (title, draw) = (untrack(|| (steps.title)()), steps.draw);
    let drawing = move || {
        track_number_format();
        let (title, draw) = (title.clone(), draw.clone());
        #[cfg(not(feature = "ssr"))]
        let (last_drawn, drawn_path) = (last_drawn.clone(), drawn_path.clone());
        Suspend::new(async move {
            let LoadResult(data) = data.await;
            let inputs = inputs.get_untracked();
            #[cfg(not(feature = "ssr"))]
            let has_other_inputs = {
                let before = last_drawn.write_value().replace(inputs.clone());
                before.is_some_and(|before| before != inputs)
            };
            #[cfg(not(feature = "ssr"))]
            crate::client::redraw::before(has_other_inputs);
            let view = untrack(|| match data {
                Ok(data) => draw(&inputs, data),
                Err(error) => {
                    let is_missing = error == UiError::NotFound;
                    let title = if is_missing { NOT_FOUND.to_owned() } else { title };
                    view! {
                        <PageHead title=title />
                        {failed(error)}
                    }
                    .into_any()
                }
            });
            #[cfg(not(feature = "ssr"))]
            crate::client::redraw::after(drawn_path, has_other_inputs);
            view
        })
    };
    view! { <Transition fallback=LoadingNote>{drawing}</Transition> }
}

/// The inputs of the page at `own_path`, read again when the query changes.
fn inputs_of_page(
    own_path: String,
    path: Memo<String>,
    search: Memo<String>,
    read: Arc<dyn Fn() -> Inputs + Send + Sync>,
) -> Memo<Inputs> {
    Memo::new(move |before: Option<&Inputs>| {
        search.track();
        // The address can belong to the next page already.
        before.filter(|_| path.get() != own_path).cloned().unwrap_or_else(|| read())
    })
}

/// The data of the page at `own_path`, loaded again when its inputs change or `actions` ask
/// for it.
fn data_of_page(
    own_path: String,
    search: Memo<String>,
    inputs: Memo<Inputs>,
    actions: &FormActions,
    load: Arc<dyn Fn(&Inputs) -> Loading + Send + Sync>,
    is_kept: bool,
) -> Resource<LoadResult> {
    let shown = ShownData::new(actions, is_kept);
    let actions = actions.clone();
    Resource::new(
        move || (inputs.get(), actions.loads()),
        move |(inputs, loads)| {
            let address = search.with_untracked(|search| format!("{own_path}?{search}"));
            let load = load.clone();
            let loading = shown.clone().or_loaded(address, loads, move || load(&inputs));
            async move { LoadResult(loading.await) }
        },
    )
}

/// The values of the parameters of this page's route. When the next page has another route,
/// the router gives its parameters to this page too: they are not read.
fn route_params() -> Memo<Vec<Option<String>>> {
    let params = use_params_map();
    let names: Vec<String> = params.with_untracked(|params| {
        params.latest_values().map(|(name, _)| name.to_string()).collect()
    });
    Memo::new(move |_| params.with(|params| names.iter().map(|name| params.get(name)).collect()))
}

/// The data that a page shows in the browser. It stays while newer data is loaded, and if
/// loading fails.
#[derive(Clone)]
#[cfg_attr(feature = "ssr", expect(dead_code, reason = "the server loads data once"))]
struct ShownData {
    actions: FormActions,
    /// The address and its data.
    last: ArcStoredValue<Option<(String, PageData)>>,
    /// Whether the data is also kept for the back button.
    is_cached: bool,
}

impl ShownData {
    fn new(actions: &FormActions, is_cached: bool) -> Self {
        Self { actions: actions.clone(), last: ArcStoredValue::new(None), is_cached }
    }

    #[cfg(feature = "ssr")]
    async fn or_loaded(
        self,
        _: String,
        _: u64,
        load: impl FnOnce() -> Loading,
    ) -> Result<PageData, UiError> {
        load().await
    }

    /// The data for an address. On the first load of a page that was shown before: the cached
    /// data, which is then loaded again. Else the loaded data. If loading fails for a while, the
    /// page keeps the data that it shows. `loads`: how often the page was loaded again.
    #[cfg(not(feature = "ssr"))]
    async fn or_loaded(
        self,
        address: String,
        loads: u64,
        load: impl FnOnce() -> Loading,
    ) -> Result<PageData, UiError> {
        use crate::client::{ahead, cache, navigation, paint};

        let is_first = loads == 0 && self.last.read_value().is_none();
        if is_first && let Some(data) = cache::get(&address) {
            self.last.set_value(Some((address, data.clone())));
            let actions = self.actions;
            paint::painted().await;
            set_timeout(move || actions.load_again(), std::time::Duration::ZERO);
            return Ok(data);
        }
        let is_other_address =
            self.last.read_value().as_ref().is_none_or(|(shown, _)| *shown != address);
        let requested = if is_other_address { ahead::take(&address) } else { None };
        let requested = match requested {
            Some(requested) => requested.await.ok(),
            None => None,
        };
        let result = match requested {
            Some(Err(error)) if error.is_temporary() => load().await,
            Some(result) => result,
            None => load().await,
        };
        // The answer can come before the browser shows what the input did to the page.
        paint::painted().await;
        let shown = self.last.get_value().filter(|(shown, _)| *shown == address);
        match (result, shown) {
            (Ok(data), _) => {
                self.actions.note_update(true);
                self.last.set_value(Some((address.clone(), data.clone())));
                if self.is_cached {
                    cache::put(address, data.clone());
                }
                Ok(data)
            }
            (Err(error), Some((_, data))) if error.is_temporary() => {
                self.actions.note_update(false);
                Ok(data)
            }
            (Err(error), _) => {
                navigation::sign_in_for(&error);
                Err(error)
            }
        }
    }
}

/// Shown while the data of the first page loads.
#[component]
fn LoadingNote() -> impl IntoView {
    view! { <p class="loading" role="status">"Loading..."</p> }
}

fn failed(error: UiError) -> AnyView {
    match error {
        UiError::NotFound => view! {
            <div class="empty">
                <p>"There is nothing at this address, or you have no access to it."</p>
                <p><a class="button" href="/">"Go to the home page"</a></p>
            </div>
        }
        .into_any(),
        UiError::Forbidden(why) => view! { <div class="empty"><p>{why}</p></div> }.into_any(),
        error => view! {
            <div class="failed">
                <ErrorAlert error=error />
                <p><a class="button" href="">"Try again"</a></p>
            </div>
        }
        .into_any(),
    }
}

/// Heading and title of a page.
#[component]
pub(crate) fn PageHead(
    #[prop(into)] title: String,
    /// Name of the page's organization or project, for the title.
    #[prop(into, optional)]
    within: String,
    /// Content next to the heading.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let full = if within.is_empty() {
        format!("{title} - {PRODUCT}")
    } else {
        format!("{title} - {within} - {PRODUCT}")
    };
    name_document(full);
    view! {
        <header class="page-head">
            <h1>{title}</h1>
            {children.map(|children| view! { <div class="page-actions">{children()}</div> })}
        </header>
    }
}

/// Sets the title of the document.
fn name_document(title: String) {
    #[cfg(feature = "ssr")]
    {
        use leptos_meta::{Title, TitleProps};

        // `leptos_meta` does not escape the text, and names come from users.
        let escaped = title.replace('&', "&amp;").replace('<', "&lt;");
        let _ = Title(TitleProps::builder().text(escaped).build());
    }
    // Of a page that is drawn again, `leptos_meta` would keep the first title.
    #[cfg(not(feature = "ssr"))]
    document().set_title(&title);
}
