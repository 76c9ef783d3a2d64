//! Filling a data directory with the month of the shop.
//!
//! Requests go through the dispatcher, as those of clients do: events through capture and
//! the ingest log, changes through the management API. The clock of the instance stands
//! still between two requests.
//!
//! What belongs here: what an administrator of the shop does, and when. What does not: what
//! its visitors do (`weir-demo`).

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use serde_json::{Value, json};
use weir_demo::{COLLEAGUES, Content, Month, ORGANIZATION, OWNER, PROJECT};
use weir_export::engine;
use weir_ingest::log::LogSettings;
use weir_model::{PluginConfigId, Timestamp};
use weir_service::Clock;
use weir_service::identity::SetupInput;

use super::{DemoError, EXPORTS, Filled, password};
use crate::config::Config;
use crate::dispatcher::Dispatcher;
use crate::serve::{Options, Server};
use crate::setup::{self, Summary};

/// Seconds before the first event at which the instance is set up.
const SET_UP_BEFORE: i64 = 3_600;
/// The day on which colleagues are invited.
const INVITED_ON: u8 = 1;
/// The export begins so many days before the end, and runs once a day.
const EXPORTED_DAYS: u8 = 3;
/// Requests between two waits until events are readable, so that the time of what happens
/// then is right.
const WAIT_AFTER: usize = 8;
/// Bytes of a segment of the ingest log, which is allocated before use.
const SEGMENT: u64 = 1 << 20;
/// Time between two checks for something that happens in the background.
const TICK: Duration = Duration::from_millis(50);
/// How long that may take, also on a slow machine without optimisation.
const PATIENCE: Duration = Duration::from_secs(120);
/// Largest answer, bytes.
const LARGEST_ANSWER: usize = 4 << 20;
/// Microseconds of a second and of a day.
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Sender of events: an address that is reserved for examples.
const SHOP: ([u8; 4], u16) = ([203, 0, 113, 7], 40_000);
const ADMINISTRATOR: ([u8; 4], u16) = ([127, 0, 0, 1], 40_000);
/// A key that no project has.
const UNKNOWN_KEY: &str = "phc_ofAShopThatWasClosedLongAgo";

/// It fails on orders of an old app, which have no time of delivery.
const DELIVERY_SLOTS: &str = "// Splits the time of delivery, so that reports can group by it.
export function processEvent(event) {
    if (event.event === 'order placed') {
        const [from, to] = event.properties.delivery_slot.split('-')
        event.properties.delivery_from = from
        event.properties.delivery_to = to
    }
    return event
}
";

/// Fills the data directory of these settings, which must be new.
pub(super) async fn fill(mut config: Config, days: u8) -> Result<Filled, DemoError> {
    // Each is one call of a person in the month.
    (config.rate_per_minute, config.rate_per_hour) = (0, 0);
    let exports = config.data.join(EXPORTS);
    let month = Month::new(Clock::default().now(), days);
    let clock = Clock::fixed(month.begin.plus_seconds(-SET_UP_BEFORE));
    let options = Options {
        clock: clock.clone(),
        log: LogSettings { segment_size: SEGMENT, ..LogSettings::default() },
        exports: engine::Settings { jitter: 0, tick: TICK, ..engine::Settings::default() },
        ..Options::default()
    };
    let server = Server::start(config, options).await?;
    let filled = match tokio::fs::create_dir(&exports).await {
        Ok(()) => Filling::begin(&server, clock, month).await,
        Err(error) => Err(error.into()),
    };
    let stopped = server.stop().await;
    let filled = filled?;
    stopped?;
    Ok(filled)
}

/// A data directory that is being filled.
struct Filling<'a> {
    server: &'a Server,
    dispatcher: Dispatcher,
    clock: Clock,
    password: String,
    made: Summary,
    /// The path of the runs of the export, and how many there are.
    export: Option<(String, usize)>,
}

impl<'a> Filling<'a> {
    async fn begin(server: &'a Server, clock: Clock, month: Month) -> Result<Filled, DemoError> {
        let password = password();
        let input = SetupInput {
            first_name: OWNER.name.to_owned(),
            email: OWNER.email.to_owned(),
            password: password.clone(),
            organization: ORGANIZATION.to_owned(),
            project: PROJECT.to_owned(),
        };
        let made = setup::create(&server.app.services, input).await?;
        let dispatcher = Dispatcher::new(server.app.clone());
        let mut filling = Self { server, dispatcher, clock, password, made, export: None };
        filling.install_plugins().await?;
        let events = filling.send_all(month).await?;
        Ok(Filled {
            email: OWNER.email.to_owned(),
            password: filling.password,
            project_id: filling.made.project_id.0,
            project_api_key: filling.made.project_api_key,
            personal_api_key: filling.made.personal_api_key,
            events,
        })
    }

    /// Sends the requests of the month, and does on each day what is done then. Returns the
    /// number of events.
    async fn send_all(&mut self, month: Month) -> Result<usize, DemoError> {
        let Month { begin, end, days, requests } = month;
        let mut progress = Progress::new(days);
        let (mut next_day, mut events) = (0, 0);
        for (number, request) in requests.into_iter().enumerate() {
            while next_day <= request.day {
                self.advance_to(begin.plus_seconds(i64::from(next_day) * 86_400)).await?;
                self.begin_day(next_day, days).await?;
                progress.show(next_day);
                next_day += 1;
            }
            self.advance_to(request.at).await?;
            let (body, is_accepted) = match request.content {
                Content::Events(batch) => {
                    events += batch.len();
                    let key = &self.made.project_api_key;
                    (json!({"api_key": key, "batch": batch}).to_string(), true)
                }
                Content::UnknownKey(batch) => {
                    (json!({"api_key": UNKNOWN_KEY, "batch": batch}).to_string(), false)
                }
                Content::Broken(text) => (text.to_owned(), false),
            };
            let (status, answer) = self.send(Method::POST, "/batch/", body, SHOP).await?;
            if is_accepted && status != StatusCode::OK {
                return Err(refused(&Method::POST, "/batch/", status, answer));
            }
            if number % WAIT_AFTER == 0 {
                self.server.app.ingest.applied().await;
            }
        }
        self.advance_to(end).await?;
        self.server.app.ingest.applied().await;
        progress.end();
        Ok(events)
    }

    async fn begin_day(&mut self, day: u8, days: u8) -> Result<(), DemoError> {
        if day == INVITED_ON {
            self.invite().await?;
        }
        if day == days.saturating_sub(EXPORTED_DAYS) {
            self.create_export().await?;
        }
        Ok(())
    }

    /// A catalogue plugin that drops bots, and a plugin of the shop that fails sometimes.
    async fn install_plugins(&self) -> Result<(), DemoError> {
        let plugins =
            format!("/api/organizations/{}/pipeline_destinations/", self.made.organization_id);
        let bots = self.post(&plugins, &json!({"url": "inline:bot-filter"})).await?;
        self.configure(&bots, 1).await?;
        let own = json!({"plugin_type": "source", "name": "Delivery slots"});
        let own = self.post(&plugins, &own).await?;
        let source = format!("{plugins}{}/update_source/", own["id"]);
        let files = json!({"index.js": DELIVERY_SLOTS}).to_string();
        self.call(Method::PATCH, &source, files).await?;
        self.configure(&own, 2).await
    }

    /// Enables a config of a plugin, and waits until it runs.
    async fn configure(&self, plugin: &Value, order: i64) -> Result<(), DemoError> {
        let project = self.made.project_id;
        let configs = format!("/api/projects/{project}/pipeline_transformation_configs/");
        let config = json!({
            "plugin": plugin["id"], "order": order, "enabled": true, "config": {},
        });
        let made = self.post(&configs, &config).await?;
        let config = PluginConfigId(made["id"].as_i64().unwrap_or_default());
        let runs = async {
            while !self.server.plugins.runs(config) {
                tokio::time::sleep(TICK).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, runs).await;
        in_time.map_err(|_elapsed| DemoError::TooLate("the start of a plugin"))
    }

    async fn invite(&self) -> Result<(), DemoError> {
        let invites = format!("/api/organizations/{}/invites/", self.made.organization_id);
        for (colleague, level) in COLLEAGUES.iter().zip([8, 1]) {
            let invite = json!({
                "target_email": colleague.email, "first_name": colleague.name, "level": level,
            });
            let made = self.post(&invites, &invite).await?;
            let path = format!("/api/signup/{}/", made["token"].as_str().unwrap_or_default());
            let account = json!({"first_name": colleague.name, "password": self.password});
            let (status, answer) =
                self.send(Method::POST, &path, account.to_string(), ADMINISTRATOR).await?;
            if !status.is_success() {
                return Err(refused(&Method::POST, "/api/signup/", status, answer));
            }
        }
        Ok(())
    }

    async fn create_export(&mut self) -> Result<(), DemoError> {
        let exports = format!("/api/projects/{}/batch_exports/", self.made.project_id);
        let export = json!({
            "name": "Events for the accountant", "interval": "day",
            "destination": {"type": "LocalDirectory", "config": {
                "path": "events/date={year}-{month}-{day}", "file_format": "JSONLines",
                "compression": "gzip",
            }},
        });
        let made = self.post(&exports, &export).await?;
        let id = made["id"].as_str().unwrap_or_default();
        self.export = Some((format!("{exports}{id}/runs/"), 0));
        Ok(())
    }

    /// Moves the clock. At the end of each day in UTC it stops until the export has run.
    async fn advance_to(&mut self, time: Timestamp) -> Result<(), DemoError> {
        if self.export.is_some() {
            loop {
                let midnight = (self.clock.now().micros().div_euclid(DAY) + 1) * DAY;
                if midnight > time.micros() {
                    break;
                }
                self.server.app.ingest.applied().await;
                self.move_clock(midnight + SECOND);
                self.until_exported().await?;
            }
        }
        self.move_clock(time.micros());
        Ok(())
    }

    /// Moves the clock forward by whole seconds, to this time in microseconds or just before.
    fn move_clock(&self, micros: i64) {
        let seconds = (micros - self.clock.now().micros()) / SECOND;
        self.clock.advance(seconds.max(0));
    }

    /// Waits for one more run of the export.
    async fn until_exported(&mut self) -> Result<(), DemoError> {
        let Some((path, before)) = self.export.clone() else { return Ok(()) };
        let this = &*self;
        let runs = async {
            loop {
                let list = this.call(Method::GET, &path, String::new()).await?;
                let runs = list["results"].as_array().map(Vec::as_slice).unwrap_or_default();
                let ended = runs.iter().filter(|run| !run["finished_at"].is_null()).count();
                if ended > before {
                    return Ok::<_, DemoError>(ended);
                }
                tokio::time::sleep(TICK).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, runs).await;
        let ended = in_time.map_err(|_elapsed| DemoError::TooLate("a run of the export"))??;
        self.export = Some((path, ended));
        Ok(())
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, DemoError> {
        self.call(Method::POST, path, body.to_string()).await
    }

    /// Calls the management API as the owner.
    async fn call(&self, method: Method, path: &str, body: String) -> Result<Value, DemoError> {
        let (status, answer) = self.send(method.clone(), path, body, ADMINISTRATOR).await?;
        if !status.is_success() {
            return Err(refused(&method, path, status, answer));
        }
        Ok(serde_json::from_str(&answer)?)
    }

    /// Sends a request of this address through the dispatcher.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: String,
        peer: ([u8; 4], u16),
    ) -> Result<(StatusCode, String), DemoError> {
        let invalid = |error: http::Error| DemoError::Process(std::io::Error::other(error));
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| invalid(error.into()))?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if peer == ADMINISTRATOR && !path.starts_with("/api/signup/") {
            let key = format!("Bearer {}", self.made.personal_api_key);
            let key = HeaderValue::from_str(&key).map_err(|error| invalid(error.into()))?;
            headers.insert(header::AUTHORIZATION, key);
        }
        let response = self.dispatcher.answer(SocketAddr::from(peer), request).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), LARGEST_ANSWER).await;
        let bytes = bytes.map_err(|error| DemoError::Process(std::io::Error::other(error)))?;
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }
}

fn refused(method: &Method, path: &str, status: StatusCode, answer: String) -> DemoError {
    DemoError::Refused { request: format!("{method} {path}"), status, answer }
}

/// Shows on standard error how far the month is: on a terminal in one line, which is
/// replaced, elsewhere in a few lines.
struct Progress {
    days: u8,
    is_terminal: bool,
}

impl Progress {
    fn new(days: u8) -> Self {
        Self { days, is_terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, day: u8) {
        let text = format!("Filling the demo: day {} of {}", day + 1, self.days);
        if self.is_terminal {
            self.write(&format!("\r{text}"));
        } else if day.is_multiple_of(10) {
            self.write(&format!("{text}\n"));
        }
    }

    fn end(&mut self) {
        if self.is_terminal {
            self.write("\n");
        }
    }

    /// What cannot be shown changes nothing.
    fn write(&mut self, text: &str) {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}
