//! Passwords: which are accepted, and how they are hashed.
//!
//! What belongs here: rules about the password itself (SEC-2, SEC-3). What does not:
//! counting attempts (`throttle`).
//!
//! Hashing takes tens of megabytes and a large part of a second on purpose. Two hashes
//! run concurrently and thirty-two callers wait. Further callers are refused, so that
//! sign-ins cannot exhaust memory or processor time. Estimating the strength of a
//! password waits in the same queue and reads at most `EXAMINED` characters. The
//! estimate tries every way to read digits and signs as letters, and a text made for
//! that purpose has thousands.

use std::collections::HashMap;
use std::sync::Arc;

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use unicode_normalization::UnicodeNormalization as _;
use weir_model::errors::FieldError;
use weir_store::users::PasswordHash;
use zxcvbn::{Score, zxcvbn};

use super::{Peer, throttle};
use crate::error::Error;
use crate::secrets;

/// The minimum length of a password, in characters.
const SHORTEST: usize = 12;
/// The maximum length of a password, in characters.
const LONGEST: usize = 256;
/// The minimum length, in characters, of a name that a password must not contain.
/// Shorter names do not make a password guessable.
const REPORTING: usize = 3;
/// How many characters of a password the estimate reads. Further characters only make
/// the password stronger.
const EXAMINED: usize = 64;
/// How many names a password is compared with.
const NAMES: usize = 32;
/// Letters, and the signs that the estimate reads as each of them.
const LOOKALIKES: [(char, &str); 12] = [
    ('a', "4@"),
    ('b', "8"),
    ('c', "({[<"),
    ('e', "3"),
    ('g', "69"),
    ('i', "1!|"),
    ('l', "1|7"),
    ('o', "0"),
    ('s', "$5"),
    ('t', "+7"),
    ('x', "%"),
    ('z', "2"),
];
/// How many readings of a text the estimate may compute: as many as all digits together
/// have.
const READINGS: usize = 32;
/// How many hashes run concurrently.
const RUNNING: usize = 2;
/// How many callers wait for a permit.
const WAITING: usize = 32;
/// How many of these callers one network may have.
const OF_NETWORK: usize = 8;

/// The cost of a password hash (Argon2id).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashParameters {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Degree of parallelism.
    pub lanes: u32,
}

impl Default for HashParameters {
    fn default() -> Self {
        Self { memory_kib: 65_536, passes: 3, lanes: 1 }
    }
}

impl HashParameters {
    /// The lowest cost that the algorithm allows, for tests.
    pub fn cheapest() -> Self {
        Self { memory_kib: 8, passes: 1, lanes: 1 }
    }

    fn argon2(self) -> Result<Argon2<'static>, Error> {
        let params = Params::new(self.memory_kib, self.passes, self.lanes, None)
            .map_err(|error| Error::Internal(format!("hash parameters: {error}")))?;
        Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
    }

    /// Whether a stored hash is cheaper than these parameters.
    fn exceed(self, hash: &argon2::PasswordHash) -> bool {
        Params::try_from(hash).is_ok_and(|stored| {
            stored.m_cost() < self.memory_kib
                || stored.t_cost() < self.passes
                || stored.p_cost() < self.lanes
        })
    }
}

/// A password in the form that is hashed. It has no `Debug`, so that it cannot get into
/// logs.
pub(super) struct Password(String);

impl Password {
    /// A password as it was typed at sign-in. One that is too long to have been
    /// accepted becomes an empty one: it never matches, and comparing it costs the
    /// same.
    pub(super) fn typed(text: &str) -> Self {
        if text.chars().nth(LONGEST * 4).is_some() {
            return Self(String::new());
        }
        Self(text.nfkc().collect())
    }

    /// A password that a user wants to set. [`QueueTicket::choose`] also checks that it is
    /// strong enough.
    ///
    /// # Errors
    /// The reason for the refusal, at `password`.
    fn chosen(text: &str, about: &PasswordContext<'_>) -> Result<Self, FieldError> {
        let wrong = |code: &str, detail: &str| FieldError::new("password", code, detail);
        if text.is_empty() {
            return Err(wrong("blank", "This field may not be blank."));
        }
        let Self(password) = Self::typed(text);
        let length = password.chars().count();
        if length > LONGEST || password.is_empty() {
            return Err(wrong(
                "password_too_long",
                "This password is too long. It may have at most 256 characters.",
            ));
        }
        if length < SHORTEST {
            return Err(wrong(
                "password_too_short",
                "This password is too short. It must have at least 12 characters.",
            ));
        }
        let lower = password.to_lowercase();
        for part in about.parts() {
            if lower.contains(&part) {
                return Err(wrong(
                    "password_too_similar",
                    "This password contains your address or the name of your organization.",
                ));
            }
        }
        Ok(Self(password))
    }
}

/// Whether a password is hard enough to guess for an attacker who knows these names.
fn is_strong(password: &str, names: &[String]) -> bool {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    zxcvbn(&examined(password), &names).score() >= Score::Three
}

/// The part of a password that is estimated. Signs that would give it too many readings
/// are replaced by private letters, so that the estimate does not read them as letters.
fn examined(password: &str) -> String {
    // A letter of the private use area, which no word contains; another one for each
    // sign.
    let itself = |sign: char| char::from_u32(0xE000 + u32::from(sign)).unwrap_or(sign);
    let mut read = String::new();
    let examine = |sign: char| {
        if !read.contains(sign) && LOOKALIKES.iter().any(|(_, signs)| signs.contains(sign)) {
            read.push(sign);
            if readings(&read) > READINGS {
                read.pop();
                return itself(sign);
            }
        }
        sign
    };
    password.chars().take(EXAMINED).map(examine).collect()
}

/// The maximum number of readings of a text with these signs: one of its signs for each
/// letter, counted twice where a sign can be read as two letters.
fn readings(signs: &str) -> usize {
    let letters = |sign: char| LOOKALIKES.iter().filter(|(_, signs)| signs.contains(sign)).count();
    let of_letter = |(_, lookalikes): &(char, &str)| {
        let present = lookalikes.chars().filter(|sign| signs.contains(*sign));
        present.map(letters).sum::<usize>().max(1)
    };
    LOOKALIKES.iter().map(of_letter).product()
}

/// The names of the user and the organizations, which a password must not be made of.
pub(super) struct PasswordContext<'a> {
    pub(super) email: &'a str,
    pub(super) organizations: &'a [&'a str],
    pub(super) first_name: &'a str,
}

impl PasswordContext<'_> {
    /// The names that the estimate treats as known to an attacker.
    fn names(&self) -> Vec<String> {
        let all = [self.email, self.first_name].into_iter();
        let all = all.chain(self.organizations.iter().copied()).take(NAMES);
        all.map(|name| name.chars().take(EXAMINED).collect()).collect()
    }

    fn parts(&self) -> impl Iterator<Item = String> {
        let local = self.email.split('@').next().unwrap_or_default();
        std::iter::once(local)
            .chain(self.organizations.iter().copied())
            .map(|part| part.trim().nfkc().collect::<String>().to_lowercase())
            .filter(|part| part.chars().count() >= REPORTING)
    }
}

/// Whether a password is the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is not, or no password is stored.
    Wrong,
    /// It is the stored one.
    Right {
        /// Whether the stored hash is cheaper than the present parameters.
        outdated: bool,
    },
}

/// The queue for hashing. Clones share it.
#[derive(Clone)]
pub(super) struct Hasher {
    parameters: HashParameters,
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    // Locked for single map operations only.
    networks: Arc<Mutex<HashMap<String, usize>>>,
}

/// A permit for the queue.
pub(super) struct QueueTicket {
    hasher: Hasher,
    admitted: Admitted,
}

/// A place in the queue, released when dropped.
struct Admitted {
    _one: OwnedSemaphorePermit,
    networks: Arc<Mutex<HashMap<String, usize>>>,
    network: Option<String>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Some(network) = self.network.take() else { return };
        let mut networks = self.networks.lock();
        if let Some(count) = networks.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                networks.remove(&network);
            }
        }
    }
}

impl Hasher {
    pub(super) fn new(parameters: HashParameters) -> Self {
        Self {
            parameters,
            admitted: Arc::new(Semaphore::new(RUNNING + WAITING)),
            running: Arc::new(Semaphore::new(RUNNING)),
            networks: Arc::default(),
        }
    }

    /// A permit for the queue. Callers take it first, before any other work has a cost.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the queue is full.
    pub(super) fn queue(&self) -> Result<QueueTicket, Error> {
        self.admit(None)
    }

    /// A permit for a caller without a session. A network has a part of the queue, so that
    /// attempts from one network do not keep others from signing in.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the queue or the part of the network is full.
    pub(super) fn queue_of(&self, peer: &Peer) -> Result<QueueTicket, Error> {
        self.admit(peer.address.map(throttle::network))
    }

    fn admit(&self, network: Option<String>) -> Result<QueueTicket, Error> {
        let full = || Error::Unavailable("too many people are signing in at this moment");
        let one = Arc::clone(&self.admitted).try_acquire_owned().map_err(|_full| full())?;
        if let Some(network) = &network {
            let mut networks = self.networks.lock();
            let count = networks.entry(network.clone()).or_default();
            if *count >= OF_NETWORK {
                return Err(full());
            }
            *count += 1;
        }
        let admitted = Admitted { _one: one, networks: Arc::clone(&self.networks), network };
        Ok(QueueTicket { hasher: self.clone(), admitted })
    }
}

impl QueueTicket {
    /// Checks a password that a user wants to set.
    ///
    /// # Errors
    /// The reason for the refusal, at `password`.
    pub(super) async fn choose(
        self,
        text: &str,
        about: &PasswordContext<'_>,
    ) -> Result<Password, Error> {
        let password = Password::chosen(text, about)?;
        let names = about.names();
        let (password, is_strong) = self
            .run(move || {
                let is_strong = is_strong(&password.0, &names);
                (password, is_strong)
            })
            .await?;
        if is_strong {
            return Ok(password);
        }
        let detail = "This password is too easy to guess. Use more words, or rarer ones.";
        Err(FieldError::new("password", "password_too_weak", detail).into())
    }

    /// The hash of a new password.
    pub(super) async fn hash(self, password: Password) -> Result<PasswordHash, Error> {
        let parameters = self.hasher.parameters;
        self.run(move || hash(parameters, &password)).await?
    }

    /// Compares a password with the stored hash. Without a stored hash it does the same
    /// work, so that the time does not reveal whether the user exists.
    pub(super) async fn verify(
        self,
        password: Password,
        stored: Option<PasswordHash>,
    ) -> Result<(Verdict, Password), Error> {
        let parameters = self.hasher.parameters;
        self.run(move || {
            let Some(stored) = stored else {
                hash(parameters, &password)?;
                return Ok((Verdict::Wrong, password));
            };
            let parsed = argon2::PasswordHash::new(&stored.0)
                .map_err(|error| Error::Internal(format!("stored password hash: {error}")))?;
            // The cost comes from the stored hash, not from `parameters`.
            let right = parameters.argon2()?.verify_password(password.0.as_bytes(), &parsed);
            let verdict = match right {
                Ok(()) => Verdict::Right { outdated: parameters.exceed(&parsed) },
                Err(_) => Verdict::Wrong,
            };
            Ok((verdict, password))
        })
        .await?
    }

    async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let ended = |error: &dyn std::fmt::Display| Error::Internal(format!("hashing: {error}"));
        let running = Arc::clone(&self.hasher.running)
            .acquire_owned()
            .await
            .map_err(|error| ended(&error))?;
        let admitted = self.admitted;
        tokio::task::spawn_blocking(move || {
            let outcome = work();
            // The work holds both permits, not the caller: if the caller goes away the
            // hash still runs, and must still count.
            drop((running, admitted));
            outcome
        })
        .await
        .map_err(|error| ended(&error))
    }
}

fn hash(parameters: HashParameters, password: &Password) -> Result<PasswordHash, Error> {
    let failed = |error| Error::Internal(format!("hashing: {error}"));
    let salt = secrets::random::<16>()?;
    let hash = parameters.argon2()?.hash_password_with_salt(password.0.as_bytes(), &salt);
    Ok(PasswordHash(hash.map_err(failed)?.to_string()))
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    const OF_REFERENCE: &str = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ\
         $CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    const ABOUT: PasswordContext<'_> = PasswordContext {
        email: "grace.h@mail.example",
        organizations: &["Acme Tea"],
        first_name: "Grace",
    };

    /// The code with which a password is refused, if it is.
    async fn refused(password: &str) -> Option<String> {
        let ticket = Hasher::new(HashParameters::cheapest()).queue().unwrap();
        match ticket.choose(password, &ABOUT).await {
            Ok(_) => None,
            Err(Error::Invalid(fault)) => Some(fault.code),
            Err(other) => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn rules_of_choice() {
        let cases = [
            ("", Some("blank")),
            ("kY7!pq-Zm2w", Some("password_too_short")),
            ("aaaaaaaaaaaaaaaa", Some("password_too_weak")),
            ("123456789012345", Some("password_too_weak")),
            ("p4$$w0rdp4$$w0rd", Some("password_too_weak")),
            ("correcthorsebatterystaple1", None),
            ("grace.h is my little secret", Some("password_too_similar")),
            ("much ACME TEA in the morning 7", Some("password_too_similar")),
            ("plum-otter-violin-93", None),
            // Twelve characters that compose to ten.
            ("kY7!pq-Zme\u{301}u\u{308}", Some("password_too_short")),
        ];
        for (password, expected) in cases {
            assert_eq!(refused(password).await.as_deref(), expected, "{password}");
        }
        for long in ["x".repeat(257), "x".repeat(1025), "x".repeat(1_000_000)] {
            assert_eq!(refused(&long).await.as_deref(), Some("password_too_long"));
        }
    }

    #[test]
    fn what_is_estimated_is_bounded() {
        let signs: String = LOOKALIKES.iter().map(|(_, signs)| *signs).collect();
        assert!(readings(&signs) > 1_000);
        for (text, expected) in [
            ("0123456789", "0123456789"),
            ("p4$$w0rd!", "p4$$w0rd!"),
            ("(|7a1{1", "(|7a\u{e031}{\u{e031}"),
        ] {
            assert_eq!(examined(text), expected, "{text}");
        }
        for text in [signs.repeat(20), signs.chars().rev().cycle().take(256).collect()] {
            let kept: String = examined(&text).chars().filter(char::is_ascii).collect();
            assert!(readings(&kept) <= READINGS, "{kept}");
            assert_eq!(examined(&text).chars().count(), EXAMINED);
        }
    }

    /// Compared with a plain text of the same length, so that the test holds on every
    /// machine. The whole text, with all its readings, takes thousands of times as
    /// long.
    #[test]
    fn no_password_takes_long_to_estimate() {
        let time = |text: &str| {
            let runs = (0..3).map(|_| {
                let began = std::time::Instant::now();
                is_strong(text, &ABOUT.names());
                began.elapsed()
            });
            runs.min().unwrap()
        };
        let plain = time(&"quiet heron walks over wet meadows at dawn ".repeat(6));
        let signs: String = LOOKALIKES.iter().map(|(_, signs)| *signs).collect();
        for text in [
            signs.repeat(12),
            "1|7".repeat(85),
            "p4$$w0rd!".repeat(28),
            "a".repeat(256),
            format!("{}{}", "ab".repeat(64), signs.repeat(6)),
            "\u{301}".repeat(256),
            "\u{130}1!|".repeat(64),
        ] {
            let took = time(&text);
            assert!(took < plain * 100, "{text}: {took:?} against {plain:?}");
        }
    }

    #[tokio::test]
    async fn verifies_and_sees_outdated_hashes() {
        let cheap = HashParameters::cheapest();
        let stored =
            Hasher::new(cheap).queue().unwrap().hash(Password::typed("ﬁne words")).await.unwrap();
        let dearer = HashParameters { memory_kib: 16, ..cheap };
        let cases = [
            (cheap, "ﬁne words", Verdict::Right { outdated: false }),
            (cheap, "fine words", Verdict::Right { outdated: false }),
            (dearer, "fine words", Verdict::Right { outdated: true }),
            (cheap, "fine word", Verdict::Wrong),
            (cheap, "", Verdict::Wrong),
        ];
        for (parameters, typed, expected) in cases {
            let ticket = Hasher::new(parameters).queue().unwrap();
            let verdict =
                ticket.verify(Password::typed(typed), Some(stored.clone())).await.unwrap();
            assert_eq!(verdict.0, expected, "{typed}");
        }
        let ticket = Hasher::new(cheap).queue().unwrap();
        let verdict = ticket.verify(Password::typed("fine words"), None).await.unwrap();
        assert_eq!(verdict.0, Verdict::Wrong);
    }

    /// A hash from another program: stored hashes must stay valid when the library
    /// changes.
    #[tokio::test]
    async fn hashes_of_the_reference_implementation_are_read() {
        let stored = PasswordHash(OF_REFERENCE.to_owned());
        for (typed, expected) in
            [("password", Verdict::Right { outdated: true }), ("Password", Verdict::Wrong)]
        {
            let ticket = Hasher::new(HashParameters::default()).queue().unwrap();
            let verdict =
                ticket.verify(Password::typed(typed), Some(stored.clone())).await.unwrap();
            assert_eq!(verdict.0, expected, "{typed}");
        }
    }

    #[tokio::test]
    async fn a_full_queue_refuses() {
        let hasher = Hasher::new(HashParameters::cheapest());
        let tickets: Vec<_> = (0..RUNNING + WAITING).map(|_| hasher.queue().unwrap()).collect();
        assert!(matches!(hasher.queue(), Err(Error::Unavailable(_))));
        drop(tickets);
        assert!(hasher.queue().is_ok());
    }

    #[tokio::test]
    async fn a_password_is_not_estimated_on_a_thread_of_the_runtime() {
        let hasher = Hasher::new(HashParameters::cheapest());
        let mut choosing =
            std::pin::pin!(hasher.queue().unwrap().choose("plum-otter-violin-93", &ABOUT));
        // Work on this thread would be done after one poll.
        let mut context = Context::from_waker(Waker::noop());
        assert!(choosing.as_mut().poll(&mut context).is_pending());
        assert!(choosing.await.is_ok());
    }

    #[test]
    fn a_network_has_a_part_of_the_queue() {
        let hasher = Hasher::new(HashParameters::cheapest());
        let peer = |address: &str| Peer { address: address.parse().ok(), ..Peer::default() };
        let flood: Vec<_> =
            (0..OF_NETWORK).map(|_| hasher.queue_of(&peer("192.0.2.1")).unwrap()).collect();
        assert!(hasher.queue_of(&peer("192.0.2.1")).is_err());
        assert!(hasher.queue_of(&peer("192.0.2.2")).is_ok());
        assert!(hasher.queue().is_ok());
        drop(flood);
        assert!(hasher.queue_of(&peer("192.0.2.1")).is_ok());
        assert!(hasher.networks.lock().is_empty(), "networks without callers are forgotten");
    }

    #[test]
    fn parameters_are_the_required_ones() {
        let parameters = HashParameters::default();
        let required = HashParameters { memory_kib: 65_536, passes: 3, lanes: 1 };
        assert_eq!(parameters, required);
        assert!(required.argon2().is_ok());
    }
}
