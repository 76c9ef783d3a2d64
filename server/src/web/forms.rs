//! Forms with files. They are not sent to a server function, because server functions do
//! not read files.
//!
//! The outcome is reported like that of the server function whose form is on the same
//! page, so the page shows it in the same position.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use http::header;
use http::request::Parts;
use weir_app::context::{Visit, ui_error};
use weir_app::error::UiError;
use weir_app::local_path;
use weir_model::errors::FieldError;
use weir_model::plugin_configs::{ANY_MEDIA, ATTACHMENT_MAX, PluginConfigPatch, SentAttachment};
use weir_model::plugins::{ARCHIVE_MAX, PluginInput, PluginList, SentArchive};
use weir_service::error::NOT_FOUND;
use weir_service::unchecked::Unchecked;
use weir_service::{Ctx, Error};

use super::held_forms::UNSENT;
use super::{Web, functions, visit};
use crate::dispatcher::RoutePattern;
use crate::http::input::{Fields, Upload, ValueBudget};
use crate::limits::{BodyLimits, Limits};

/// The path that plugin archives are sent to.
pub(super) const PLUGIN: &str = "/_upload/plugin";
/// The path that files of configs are sent to.
pub(super) const ATTACHMENT: &str = "/_upload/attachment";
/// Bytes of a form in addition to its file.
const ROOM: usize = 64 << 10;
/// The function that installs plugins. Its page shows the outcome of an archive.
const INSTALL: &str = "/_fn/install_plugin";
/// The function that saves configs. Its page shows the outcome of a file.
const SAVE: &str = "/_fn/save_plugin_config";

/// The limits of a body that is sent to this path of the web app.
pub(crate) fn limits(limits: &Limits, path: &str) -> BodyLimits {
    let mut body = limits.web_body;
    if exists(path) {
        body.size = body.size.max(ARCHIVE_MAX + ROOM);
    }
    body
}

/// Whether this path accepts a form with a file.
pub(super) fn exists(path: &str) -> bool {
    [PLUGIN, ATTACHMENT].contains(&path)
}

/// Installs a plugin from an archive, and redirects to it.
pub(super) async fn plugin(State(web): State<Web>, request: Request) -> Response {
    let submitted = match SubmittedForm::read(&web, request, INSTALL).await {
        Ok(submitted) => submitted,
        Err(response) => return *response,
    };
    let done = match &submitted.visit.ctx {
        Some(ctx) => install(&web, &submitted.form, ctx).await,
        None => Err(Error::NotAuthenticated),
    };
    submitted.answer(INSTALL, done)
}

async fn install(web: &Web, form: &Form, ctx: &Ctx) -> Result<String, Error> {
    let services = &web.app.services;
    let plugin_list = PluginList::of(form.text("plugin_list")).ok_or(Error::NotFound(NOT_FOUND))?;
    let org = services.organizations.enter(ctx, form.text("organization")).await?;
    // A user without the right gets this error before the archive is read.
    services.plugins.may_install(&org).await?;
    let file = form.file("archive", ARCHIVE_MAX)?;
    let archive = Some(SentArchive(file.contents.to_vec()));
    let input = PluginInput { archive, ..PluginInput::default() };
    let made = services.plugins.install(&org, plugin_list.group(), input).await?;
    let found = services.plugins.get_listed(&org, &made.id.to_string()).await?;
    let (organization, list) = (org.organization, found.plugin_list.text());
    Ok(format!("/organizations/{organization}/plugins/{list}/{}", made.id))
}

/// Attaches a file to a config, and redirects back.
pub(super) async fn attachment(State(web): State<Web>, request: Request) -> Response {
    let submitted = match SubmittedForm::read(&web, request, SAVE).await {
        Ok(submitted) => submitted,
        Err(response) => return *response,
    };
    let done = match &submitted.visit.ctx {
        Some(ctx) => attach(&web, &submitted.form, ctx).await,
        None => Err(Error::NotAuthenticated),
    };
    submitted.answer(SAVE, done)
}

async fn attach(web: &Web, form: &Form, ctx: &Ctx) -> Result<String, Error> {
    let services = &web.app.services;
    let project = services.projects.enter(ctx, form.text("project")).await?;
    let config = form.text("config");
    let field = form.text("field");
    let at_file = |fault: FieldError| FieldError::new(field, &fault.code, fault.detail);
    let patch = Unchecked::new(|| {
        let file = form.file("file", ATTACHMENT_MAX)?;
        let attachment = SentAttachment {
            key: form.text("key").to_owned(),
            name: file.file_name.clone(),
            media_type: file.media_type.clone().unwrap_or_else(|| ANY_MEDIA.to_owned()),
            contents: file.contents.to_vec(),
        };
        Ok(PluginConfigPatch { add_attachments: vec![attachment], ..PluginConfigPatch::default() })
    });
    match services.plugin_configs.update(&project, config, patch).await {
        Ok(_) => Ok(form.back.clone()),
        Err(Error::Invalid(fault)) => Err(at_file(fault).into()),
        Err(error) => Err(error),
    }
}

/// A form that was sent, and its sender.
struct SubmittedForm {
    form: Form,
    visit: Visit,
}

impl SubmittedForm {
    /// Reads the form, or else answers as this function would.
    async fn read(
        web: &Web,
        request: Request,
        function: &'static str,
    ) -> Result<Self, Box<Response>> {
        let (parts, body) = request.into_parts();
        let visit = match visit::of(web, &parts).await {
            Ok(visit) => visit,
            Err(error) => return Err(Box::new(error.into_response())),
        };
        let most = limits(&web.app.limits, parts.uri.path()).size;
        let form = match to_bytes(body, most).await {
            Ok(bytes) => Form::read(&parts, &bytes).await,
            Err(_) => None,
        };
        let unread = || UiError::form("invalid_input", "The form could not be read.");
        match form {
            Some(form) => Ok(Self { form, visit }),
            None => Err(Box::new(lead_back("/", function, unread()))),
        }
    }

    /// Redirects to the page in `done`, or back with the error.
    fn answer(&self, function: &'static str, done: Result<String, Error>) -> Response {
        let mut response = match done {
            Ok(path) => to(&path),
            Err(error) => failed(&self.form.back, function, error, &self.visit.request_id),
        };
        response.extensions_mut().insert(RoutePattern("/_upload/{form}"));
        response
    }
}

fn failed(back: &str, function: &str, error: Error, request_id: &str) -> Response {
    let next = local_path::encode(back);
    match error {
        Error::NotAuthenticated | Error::BadCredential(_) => {
            to(&format!("/login?next={next}&{UNSENT}=1"))
        }
        Error::SignInAgain => to(&format!("/login/again?next={next}&{UNSENT}=1")),
        error => {
            let shown = match ui_error(error) {
                // The service does not know the id of this request.
                UiError::Internal { .. } => UiError::Internal { request_id: request_id.to_owned() },
                UiError::Unavailable { .. } => {
                    UiError::Unavailable { request_id: request_id.to_owned() }
                }
                shown => shown,
            };
            lead_back(back, function, shown)
        }
    }
}

/// Redirects to a page of this site, with GET.
fn to(path: &str) -> Response {
    Redirect::to(local_path::safe(path).unwrap_or("/")).into_response()
}

fn lead_back(back: &str, function: &str, error: UiError) -> Response {
    to(&functions::failed(back, function, &error))
}

/// The fields of a form.
struct Form {
    fields: Fields,
    /// The page of the form.
    back: String,
}

impl Form {
    async fn read(parts: &Parts, body: &Bytes) -> Option<Self> {
        let content_type = parts.headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let fields =
            Fields::parse(Some(content_type), body, &mut ValueBudget::uncounted()).await.ok()?;
        let back = local_path::safe(fields.raw_text("back").unwrap_or("/")).unwrap_or("/");
        Some(Self { back: local_path::without_outcome(back), fields })
    }

    fn text(&self, name: &str) -> &str {
        self.fields.raw_text(name).unwrap_or_default()
    }

    /// The file in this field. Browsers send an empty one if the user chose none.
    fn file(&self, name: &str, most: usize) -> Result<&Upload, FieldError> {
        let found = self.fields.uploads().iter().find(|upload| upload.field == name);
        match found.filter(|upload| !upload.contents.is_empty()) {
            None => Err(FieldError::new(name, "required", "Choose a file.")),
            Some(file) if file.contents.len() > most => {
                let detail = format!("Ensure this file has no more than {most} bytes.");
                Err(FieldError::new(name, "max_length", detail))
            }
            Some(file) => Ok(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header;
    use weir_app::error::UiError;

    use super::{INSTALL, lead_back, limits};
    use crate::limits::Limits;

    #[test]
    fn only_uploads_may_be_large() {
        let all = Limits::default();
        assert_eq!(limits(&all, "/_fn/sign_in").size, all.web_body.size);
        assert!(limits(&all, "/_upload/plugin").size > 5 << 20);
    }

    #[test]
    fn a_failure_leads_back_to_the_page() {
        let error = UiError::field("archive", "invalid_input", "It is damaged.");
        for (back, begins) in
            [("/a?b=1", "/a?b=1&__path=/_fn/install_plugin&__err="), ("/a", "/a?__path=")]
        {
            let response = lead_back(back, INSTALL, error.clone());
            let location = response.headers()[header::LOCATION].to_str().unwrap();
            assert!(location.starts_with(begins), "{location}");
        }
    }
}
