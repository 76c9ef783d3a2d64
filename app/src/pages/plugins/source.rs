//! The source of a plugin: reading and editing.

use leptos::prelude::*;
use serde_json::{Map, Value};
use weir_model::plugins::{FILE_NAME_MAX, SOURCE_MAX};

use super::api_call;
use crate::local_path;
use crate::pages::{id_in_path, in_path};
use crate::server_fns::plugins::plugin_path;
use crate::server_fns::plugins::source::{
    RemovePluginFile, SavePluginFile, SourceView, get_plugin_source,
};
use crate::server_fns::plugins::views::PluginLine;
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::code::Source;
use crate::ui::confirm::Confirm;
use crate::ui::empty::ReadOnly;
use crate::ui::field::{Field, TextArea};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::sections::Section;

const TITLE: &str = "Source";
/// Value of the query parameter for a new file.
const NEW: &str = "*";

#[component]
pub(crate) fn PluginSource() -> impl IntoView {
    page(
        TITLE,
        || (id_in_path(), in_path("plugin"), in_query("file")),
        |(organization, plugin, _)| get_plugin_source(organization, plugin),
        draw,
    )
}

fn draw((organization, plugin, requested): (String, String, String), found: SourceView) -> AnyView {
    let save = form_action::<SavePluginFile>();
    let remove = form_action::<RemovePluginFile>();
    let removed = form_result(remove);
    let SourceView { line, files, faults, read_only_reason } = found;
    let root = plugin_path(&organization, &line.plugin_list, &line.id);
    let may_change = read_only_reason.is_none();
    let chosen = chosen(&files, &requested);
    let message = (!faults.is_empty()).then(|| message(&faults, &root));
    let links = links(&files, chosen.as_ref().map(|(name, _)| name.as_str()), &root, may_change);
    let content = match (requested == NEW && may_change, chosen) {
        (true, _) => {
            let call = change(&organization, &line, "{file}", Value::from("{source}"));
            view! {
                <Editor organization=organization plugin=plugin name=String::new()
                    text=String::new() save=save call=call />
            }
            .into_any()
        }
        (false, None) => view! { <p>"It has no source files."</p> }.into_any(),
        (false, Some((name, text))) => {
            let editing = may_change.then(|| {
                let removing = (files.len() > 1).then(|| {
                    let call = change(&organization, &line, &name, Value::Null);
                    removal(&organization, &plugin, &name, remove, call)
                });
                let call = change(&organization, &line, &name, Value::from("{source}"));
                view! {
                    <Editor organization=organization.clone() plugin=plugin.clone()
                        name=name.clone() text=text.clone() save=save call=call />
                    {removing}
                }
            });
            view! {
                {editing}
                <section class="card" aria-label=name.clone()>
                    <h2 class="mono">{name.clone()}</h2>
                    <Source text=text />
                </section>
            }
            .into_any()
        }
    };
    view! {
        <PageHead title=TITLE within=line.name.clone() />
        <p class="lead">"The files of " <a href=root>{line.name.clone()}</a> "."</p>
        {read_only_reason.map(|why| view! { <ReadOnly why=why /> })}
        <FormFailure result=removed />
        {message}
        {links}
        {content}
    }
    .into_any()
}

/// The requested file, else the main code file, else the first file.
fn chosen(files: &[(String, String)], requested: &str) -> Option<(String, String)> {
    let named = |wanted: &str| files.iter().find(|(name, _)| name == wanted);
    let found =
        named(requested).or_else(|| files.iter().find(|(name, _)| !name.ends_with(".json")));
    found.or_else(|| files.first()).cloned()
}

/// The errors, with links to their lines.
fn message(faults: &[(String, String)], root: &str) -> AnyView {
    let lines = faults
        .iter()
        .map(|(file, fault)| {
            let page = format!("{root}/source?file={}", local_path::encode(file));
            let link = line_of(fault).map(|line| {
                view! {
                    " "
                    <a href=format!("{page}#L{line}")>"Go to line " {line.to_string()}</a>
                }
            });
            view! { <li><code>{file.clone()}</code> ": " {fault.clone()} {link}</li> }
        })
        .collect_view();
    view! {
        <Alert kind="error">
            <p>"The source is stored, but it cannot be run as it is:"</p>
            <ul>{lines}</ul>
        </Alert>
    }
    .into_any()
}

/// The line number in an error: the first positive number between separators, as in
/// `index.js:3:7: ...`.
fn line_of(fault: &str) -> Option<u32> {
    let parts = fault.split([':', ' ', ',', '(', ')']);
    parts.filter_map(|part| part.parse().ok()).find(|line| *line > 0)
}

fn links(
    files: &[(String, String)],
    chosen: Option<&str>,
    root: &str,
    may_change: bool,
) -> AnyView {
    let file = |(name, _): &(String, String)| {
        let href = format!("{root}/source?file={}", local_path::encode(name));
        let here = (chosen == Some(name.as_str())).then_some("page");
        view! { <li><a class="mono" href=href aria-current=here>{name.clone()}</a></li> }
    };
    let files = files.iter().map(file).collect_view();
    let adding = may_change.then(|| {
        let href = format!("{root}/source?file={}", local_path::encode(NEW));
        view! { <li><a href=href>"New file"</a></li> }
    });
    view! { <nav aria-label="Files"><ul class="file-list">{files}{adding}</ul></nav> }.into_any()
}

/// The API request that replaces the text of a file, or removes the file.
fn change(organization: &str, line: &PluginLine, file: &str, text: Value) -> ApiCall {
    let mut files = Map::new();
    files.insert(file.to_owned(), text);
    api_call("PATCH", organization, line, "update_source/").with(Value::Object(files))
}

/// The form of a file. Without a name, it creates a file.
#[component]
fn Editor(
    organization: String,
    plugin: String,
    name: String,
    text: String,
    save: FormAction<SavePluginFile>,
    call: ApiCall,
) -> impl IntoView {
    let result = form_result(save);
    let is_new = name.is_empty();
    let title = if is_new { "New file".to_owned() } else { format!("Edit {name}") };
    let naming = match is_new {
        true => view! {
            <Field result=result name="file" label="Name of the file" max=FILE_NAME_MAX
                hint="Such as index.js, index.ts, site.ts, frontend.tsx or plugin.json." />
        }
        .into_any(),
        false => view! { <input type="hidden" name="file" value=name /> }.into_any(),
    };
    view! {
        <Section id="edit" title=title>
            <div class="source-edit" data-dirty-guard="">
                <ActionForm action=save>
                    <FormFailure result=result fields=&["file"] />
                    <input type="hidden" name="organization" value=organization />
                    <input type="hidden" name="plugin" value=plugin />
                    <ShownValues result=result values=vec![("source".to_owned(), text.clone())] />
                    <ReturnAddress />
                    {naming}
                    <TextArea result=result name="source" label="Text of the file" value=text rows=20
                        max=SOURCE_MAX code=true
                        hint="Takes effect within a second wherever the plugin is switched on." />
                    <Submit result=result label="Save file" busy="Saving file..." saved="Saved" />
                    <ApiRequest call=call of="save" />
                </ActionForm>
            </div>
        </Section>
    }
}

fn removal(
    organization: &str,
    plugin: &str,
    name: &str,
    remove: FormAction<RemovePluginFile>,
    call: ApiCall,
) -> AnyView {
    let (organization, plugin, file) =
        (organization.to_owned(), plugin.to_owned(), name.to_owned());
    view! {
        <Confirm button="Remove file" of=name.to_owned()>
            <ActionForm action=remove>
                <p>"The text of the file is deleted. Weir then inspects the plugin again."</p>
                <input type="hidden" name="organization" value=organization />
                <input type="hidden" name="plugin" value=plugin />
                <input type="hidden" name="file" value=file />
                <ReturnAddress />
                <button type="submit" class="button button-danger" data-busy="Removing file...">
                    "Remove file"
                </button>
            </ActionForm>
            <ApiRequest call=call />
        </Confirm>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::{chosen, line_of};

    #[test]
    fn faults_name_their_lines() {
        assert_eq!(line_of("index.js:3:7: expected `}`"), Some(3));
        assert_eq!(line_of("expected value at line 2 column 1"), Some(2));
        assert_eq!(line_of("There is no plugin.json"), None);
    }

    #[test]
    fn code_comes_first() {
        let files = ["a.json", "index.js"].map(|name| (name.to_owned(), String::new()));
        let name = |requested: &str| chosen(&files, requested).unwrap().0;
        assert_eq!((name("a.json"), name("")), ("a.json".to_owned(), "index.js".to_owned()));
        assert_eq!(chosen(&[], ""), None);
    }
}
