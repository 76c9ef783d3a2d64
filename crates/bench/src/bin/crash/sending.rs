//! Clients of the service: they send until it is killed, or while it restarts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use weir_bench::api::{organization_path, request};
use weir_bench::client::Connection;
use weir_bench::random::Random;
use weir_bench::weir::{Instance, Weir};

use crate::ledger::Ledger;

/// Connections that send events.
const SENDERS: u64 = 6;
/// Events of a batch.
const BATCH: u64 = 60;
/// Longest pause of a sender between two requests.
const PAUSE: Duration = Duration::from_millis(30);
/// Pause after a refused connection.
const KNOCK: Duration = Duration::from_millis(5);
/// Timeout of an answer while the service runs.
const ANSWER: Duration = Duration::from_secs(30);

/// The ledger of all clients. It is locked only for single changes.
pub(crate) type Shared = Arc<Mutex<Ledger>>;

/// Running clients.
pub(crate) struct Clients(JoinSet<()>);

impl Clients {
    /// Starts clients that send about `events` new events.
    pub(crate) fn start(
        weir: &Weir,
        instance: &Instance,
        ledger: &Shared,
        events: u64,
        seed: u64,
    ) -> Self {
        let mut clients = JoinSet::new();
        for sender in senders(weir, instance, ledger, events, seed) {
            clients.spawn(sender.run());
        }
        clients.spawn(change_setting(weir.clone(), instance.clone(), Arc::clone(ledger)));
        clients.spawn(count_up(weir.clone(), instance.clone(), Arc::clone(ledger)));
        Self(clients)
    }

    /// Waits until all have noticed that the service was killed.
    pub(crate) async fn gone(mut self) {
        while self.0.join_next().await.is_some() {}
    }
}

/// Senders that do not wait until the service is ready: they connect as soon as it
/// listens, also if it is killed again.
pub(crate) struct Impatient {
    clients: JoinSet<()>,
    leave: watch::Sender<bool>,
}

impl Impatient {
    /// Starts senders that send about `events` new events.
    pub(crate) fn start(
        weir: &Weir,
        instance: &Instance,
        ledger: &Shared,
        events: u64,
        seed: u64,
    ) -> Self {
        let leave = watch::channel(false).0;
        let mut clients = JoinSet::new();
        for sender in senders(weir, instance, ledger, events, seed) {
            clients.spawn(sender.knock(leave.subscribe()));
        }
        Self { clients, leave }
    }

    /// Waits until all have ended.
    pub(crate) async fn leave(mut self) {
        self.leave.send_replace(true);
        while self.clients.join_next().await.is_some() {}
    }
}

fn senders(
    weir: &Weir,
    instance: &Instance,
    ledger: &Shared,
    events: u64,
    seed: u64,
) -> impl Iterator<Item = Sender> {
    let most = lock(ledger).len() + events;
    (0..SENDERS).map(move |index| Sender {
        weir: weir.clone(),
        key: instance.project_api_key.clone(),
        ledger: Arc::clone(ledger),
        random: Random::new(seed * 31 + index),
        most,
        story: VecDeque::new(),
    })
}

/// Locks the ledger; it is valid even after a client panicked.
pub(crate) fn lock(ledger: &Shared) -> std::sync::MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Sender {
    weir: Weir,
    key: String,
    ledger: Shared,
    random: Random,
    most: u64,
    /// The remaining requests of a story.
    story: VecDeque<Vec<u64>>,
}

/// The outcome of a request, and unexpected details.
enum Acknowledged {
    Kept,
    Refused(Option<String>),
    /// No answer: the service was killed.
    Nothing(Option<String>),
}

impl Sender {
    /// Sends until the service is killed.
    async fn run(mut self) {
        let Ok(mut connection) = Connection::open(self.weir.address).await else { return };
        self.send(&mut connection, || false).await;
    }

    /// Connects and sends until it is asked to end.
    async fn knock(mut self, leave: watch::Receiver<bool>) {
        while !*leave.borrow() {
            match Connection::open(self.weir.address).await {
                Ok(mut connection) => self.send(&mut connection, || *leave.borrow()).await,
                Err(_) => sleep(KNOCK).await,
            }
        }
    }

    /// Sends until the connection ends or it is asked to end.
    async fn send(&mut self, connection: &mut Connection, is_leaving: impl Fn() -> bool) {
        while !is_leaving() {
            let (numbers, path, body) = self.next();
            let answer = timeout(ANSWER, connection.send(&capture(path, &body))).await;
            let outcome = match answer {
                Ok(Ok(answer)) if answer.status == 200 => Acknowledged::Kept,
                Ok(Ok(answer)) if answer.status == 503 => Acknowledged::Refused(None),
                Ok(Ok(answer)) => {
                    let body = String::from_utf8_lossy(answer.body);
                    Acknowledged::Refused(Some(format!(
                        "{path} answered {}: {body}",
                        answer.status
                    )))
                }
                Ok(Err(_)) => Acknowledged::Nothing(None),
                Err(_) => {
                    Acknowledged::Nothing(Some(format!("{path} got no answer in {ANSWER:?}")))
                }
            };
            if !self.note(numbers, outcome) {
                return;
            }
            sleep(self.random.between(Duration::ZERO, PAUSE)).await;
        }
        let mut ledger = lock(&self.ledger);
        self.story.drain(..).for_each(|numbers| ledger.leave_unsure(numbers));
    }

    /// Records the outcome of a request; returns whether to continue.
    fn note(&mut self, numbers: Vec<u64>, outcome: Acknowledged) -> bool {
        let mut ledger = lock(&self.ledger);
        match outcome {
            Acknowledged::Kept => {
                ledger.acknowledge(&numbers);
                true
            }
            Acknowledged::Refused(surprise) => {
                ledger.surprises.extend(surprise);
                ledger.leave_unsure(numbers);
                true
            }
            Acknowledged::Nothing(surprise) => {
                ledger.surprises.extend(surprise);
                ledger.leave_unsure(numbers);
                self.story.drain(..).for_each(|numbers| ledger.leave_unsure(numbers));
                false
            }
        }
    }

    /// The next request: its events, path and body.
    fn next(&mut self) -> (Vec<u64>, &'static str, String) {
        let mut ledger = lock(&self.ledger);
        let historical = self.random.one_in(6);
        let known = ledger.len();
        let spent = known >= self.most;
        if self.story.is_empty() && self.random.one_in(8) && !spent {
            let numbers = ledger.take_story();
            self.story = match self.random.one_in(3) {
                true => VecDeque::from([numbers]),
                false => numbers.into_iter().map(|number| vec![number]).collect(),
            };
        }
        if let Some(numbers) = self.story.pop_front() {
            let body = ledger.batch(&self.key, &numbers, historical, 0);
            return (numbers, "/batch/", body);
        }
        // Unanswered requests are usually sent again.
        if self.random.one_in(2)
            && let Some(numbers) = ledger.take_unsure()
        {
            let body = ledger.batch(&self.key, &numbers, historical, 0);
            return (numbers, "/batch/", body);
        }
        if self.random.one_in(10) && !spent {
            let mut numbers = ledger.take(BATCH);
            // Some that were sent before, one of them twice in the same request.
            for _ in 0..self.random.below(8) {
                let number = self.random.below(known.max(1));
                numbers.extend(Some(number).filter(|number| ledger.is_repeatable(*number)));
            }
            if let Some(first) = numbers.first().copied() {
                numbers.push(first);
            }
            let body = ledger.batch(&self.key, &numbers, historical, self.random.below(4));
            return (numbers, "/batch/", body);
        }
        let again = known > 0 && (spent || self.random.one_in(8));
        let number = self.random.below(known.max(1));
        let numbers = match again && ledger.is_repeatable(number) {
            true => vec![number],
            false => ledger.take(1),
        };
        let number = numbers.first().copied().unwrap_or(0);
        let body = ledger.single(&self.key, number);
        (numbers, "/capture/", body)
    }
}

/// Increments a property of a person and one of a group, one request after the other.
async fn count_up(weir: Weir, instance: Instance, ledger: Shared) {
    let Ok(mut connection) = Connection::open(weir.address).await else { return };
    loop {
        let (count, numbers, body) = {
            let mut ledger = lock(&ledger);
            let (count, numbers) = ledger.take_count();
            let body = ledger.batch(&instance.project_api_key, &numbers, false, 0);
            (count, numbers, body)
        };
        match timeout(ANSWER, connection.send(&capture("/batch/", &body))).await {
            Ok(Ok(answer)) if answer.status == 200 => {
                let mut ledger = lock(&ledger);
                ledger.count_kept = count;
                ledger.acknowledge(&numbers);
            }
            Ok(Ok(answer)) if answer.status == 503 => {}
            Ok(Ok(answer)) => {
                let fault = format!("counting was answered with {}", answer.status);
                lock(&ledger).surprises.push(fault);
            }
            Ok(Err(_)) | Err(_) => return,
        }
        sleep(PAUSE).await;
    }
}

/// The bytes of a request with events.
pub(crate) fn capture(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Renames the organization repeatedly, with increasing numbers.
async fn change_setting(weir: Weir, instance: Instance, ledger: Shared) {
    let Ok(mut connection) = Connection::open(weir.address).await else { return };
    let path = organization_path(&instance);
    loop {
        let number = {
            let mut ledger = lock(&ledger);
            ledger.setting_tried += 1;
            ledger.setting_tried
        };
        let body = format!(r#"{{"name":"{}"}}"#, setting(number));
        let text = request(&instance, "PATCH", &path, &body);
        match timeout(ANSWER, connection.send(&text)).await {
            Ok(Ok(answer)) if answer.status == 200 => lock(&ledger).setting_kept = number,
            Ok(Ok(answer)) => {
                let fault = format!("PATCH answered {}", answer.status);
                lock(&ledger).surprises.push(fault);
            }
            Ok(Err(_)) | Err(_) => return,
        }
        sleep(PAUSE).await;
    }
}

/// The value of the setting for a number.
pub(crate) fn setting(number: u64) -> String {
    format!("Crash {number}")
}
