//! The driver of the Rust library: reads a scenario from standard input, runs it,
//! and prints a report. Both are described in `drivers.py`.

mod call;

use std::error::Error;
use std::io::{BufRead as _, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use posthog_rs::{
    CaptureCompression, Client, ClientOptions, ClientOptionsBuilder, Event, PostHogError,
};
use serde::Serialize;
use serde_json::Value;

use call::{Call, Capture, Options, Scenario};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The report for the harness at the end.
#[derive(Debug, Serialize)]
struct Report {
    captured: u64,
    failures: Vec<Failure>,
}

/// Events that the library gave up.
#[derive(Debug, Serialize)]
struct Failure {
    client: usize,
    status: Option<u16>,
    text: String,
}

/// A pause. The harness writes a line to resume.
#[derive(Debug, Serialize)]
struct Paused {
    paused: String,
}

fn main() -> Outcome<()> {
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    let scenario: Scenario = serde_json::from_str(&line)?;
    let mut sender = Sender::new(&scenario.url, &scenario.key);
    for call in scenario.calls {
        sender.make(call)?;
    }
    let failures = Arc::clone(&sender.failures);
    let captured = sender.captured;
    // The library ends with its client.
    drop(sender);
    let failures = std::mem::take(&mut *failures.lock().map_err(|_| "a hook panicked")?);
    serde_json::to_writer(stdout(), &Report { captured, failures })?;
    println!();
    Ok(())
}

struct Sender {
    url: String,
    key: String,
    client: Option<Client>,
    clients: usize,
    /// Events of an import wait here: the library takes them as one batch.
    import: Option<Vec<Event>>,
    captured: u64,
    failures: Arc<Mutex<Vec<Failure>>>,
}

impl Sender {
    fn new(url: &str, key: &str) -> Self {
        Self {
            url: url.to_owned(),
            key: key.to_owned(),
            client: None,
            clients: 0,
            import: None,
            captured: 0,
            failures: Arc::default(),
        }
    }

    fn make(&mut self, call: Call) -> Outcome<()> {
        match call {
            Call::Client { options } => {
                self.client = Some(posthog_rs::client(self.options(&options)?));
                self.clients += 1;
                self.import = options.historical.then(Vec::new);
            }
            Call::Capture(capture) => self.capture(capture)?,
            // The library has no call for persons; its events carry what changes them.
            Call::Identify { distinct_id, set } => {
                self.send(with("$identify", &distinct_id, "$set", set)?)?;
            }
            Call::SetOnce { distinct_id, set_once } => {
                self.send(with("$set_once", &distinct_id, "$set_once", set_once)?)?;
            }
            Call::Alias { previous, main } => self.client()?.alias(previous, main),
            // The library names the distinct id itself.
            Call::Group { group_type, key, set } => {
                self.client()?.group_identify(group_type, key, set)?;
            }
            Call::Flush => {
                self.hand_over()?;
                self.client()?.flush();
            }
            Call::GivenUp => {
                while self.failures.lock().map_err(|_| "a hook panicked")?.is_empty() {
                    wait(Duration::from_millis(20));
                }
            }
            Call::Pause { why } => {
                serde_json::to_writer(stdout(), &Paused { paused: why })?;
                println!();
                stdin().lock().read_line(&mut String::new())?;
            }
            Call::Shutdown => {
                self.hand_over()?;
                self.client()?.shutdown();
            }
            Call::Stream { event, distinct_ids, pause } => {
                self.stream(&event, &distinct_ids, Duration::from_secs_f64(pause))?;
            }
        }
        Ok(())
    }

    fn client(&self) -> Outcome<&Client> {
        self.client.as_ref().ok_or_else(|| "the scenario has no client yet".into())
    }

    fn options(&self, wanted: &Options) -> Outcome<ClientOptions> {
        let mut options = ClientOptionsBuilder::default();
        options.host(self.url.clone());
        options.api_key(wanted.key.clone().unwrap_or_else(|| self.key.clone()));
        if wanted.gzip {
            options.capture_compression(CaptureCompression::Gzip);
        }
        if let Some(flush_at) = wanted.flush_at {
            options.flush_at(flush_at);
        }
        if wanted.patient {
            options.max_capture_attempts(60).retry_initial_backoff_ms(500);
            options.retry_max_backoff_ms(1000).shutdown_timeout_ms(60_000);
        }
        let failures = Arc::clone(&self.failures);
        let client = self.clients;
        options.on_error(move |error| {
            let failure = match error {
                PostHogError::Capture(failure) => Failure {
                    client,
                    status: failure.status(),
                    text: failure.error().map(ToString::to_string).unwrap_or_default(),
                },
                other => Failure { client, status: None, text: format!("{other:?}") },
            };
            if let Ok(mut failures) = failures.lock() {
                failures.push(failure);
            }
        });
        Ok(options.build()?)
    }

    fn capture(&mut self, capture: Capture) -> Outcome<()> {
        let mut event = match &capture.distinct_id {
            Some(distinct_id) => Event::new(&capture.event, distinct_id),
            None => Event::new_anon(&capture.event),
        };
        for (name, value) in capture.properties {
            event.insert_prop(name, value)?;
        }
        for (group_type, key) in &capture.groups {
            event.add_group(group_type, key);
        }
        if let Some(uuid) = capture.uuid {
            event.set_uuid(uuid);
        }
        if let Some(timestamp) = capture.timestamp {
            event.set_timestamp(timestamp)?;
        }
        self.send(event)
    }

    fn send(&mut self, event: Event) -> Outcome<()> {
        match &mut self.import {
            Some(import) => import.push(event),
            None => self.client()?.capture(event),
        }
        Ok(())
    }

    /// Gives the events of an import to the library.
    fn hand_over(&mut self) -> Outcome<()> {
        if let Some(import) = &mut self.import {
            let events = std::mem::take(import);
            self.client()?.capture_batch(events, true);
        }
        Ok(())
    }

    /// Sends events until the harness says that it is enough.
    fn stream(&mut self, event: &str, distinct_ids: &[String], pause: Duration) -> Outcome<()> {
        let enough = Arc::new(AtomicBool::new(false));
        let said = Arc::clone(&enough);
        std::thread::spawn(move || {
            // An end without a word means the same.
            let _ = stdin().lock().read_line(&mut String::new());
            said.store(true, Ordering::Relaxed);
        });
        for distinct_id in distinct_ids.iter().cycle() {
            if enough.load(Ordering::Relaxed) {
                break;
            }
            let mut event = Event::new(event, distinct_id);
            event.insert_prop("n", self.captured)?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
            event.insert_prop("captured_at", now.as_secs_f64())?;
            self.send(event)?;
            self.captured += 1;
            wait(pause);
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "no runtime here, and nothing else to do")]
fn wait(time: Duration) {
    std::thread::sleep(time);
}

fn with(event: &str, distinct_id: &str, name: &str, value: Value) -> Outcome<Event> {
    let mut event = Event::new(event, distinct_id);
    event.insert_prop(name, value)?;
    Ok(event)
}
