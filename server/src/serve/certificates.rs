//! The certificate of the server: read at the start, read again when its files change or
//! after SIGHUP, or obtained and renewed by ACME.
//!
//! What belongs here: when that happens, and what a failure means: the present certificate
//! stays. What does not: reading, handshakes and orders (`weir-tls`).

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::sync::Notify;
use tokio::time::sleep;
use weir_service::Clock;
use weir_tls::acme::{Acme, AcmeError, Check, Settings as AcmeSettings};
use weir_tls::{Pair, PairError, SetUpError, Tls};

use crate::config::Config;
use crate::logs::with_causes;
use crate::metrics::Metrics;

/// Time between two reads of the files.
const LOOK: Duration = Duration::from_secs(2);
/// Time between two looks whether the certificate is due.
const DUE: Duration = Duration::from_secs(60 * 60);
/// Time before an order is tried again. It doubles. Authorities count failures by the hour.
const FIRST_PAUSE: Duration = Duration::from_secs(2 * 60);
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 60 * 60);
/// Most characters of an error in the log. It may contain what an authority has answered.
const LONGEST_ERROR: usize = 1_000;
/// The directory of the account and the certificate, in the data directory.
const CACHE: &str = "acme";

/// Why the service has no certificate to start with.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The files cannot be used.
    #[error(transparent)]
    Files(#[from] PairError),
    /// ACME cannot be set up.
    #[error(transparent)]
    Acme(#[from] AcmeError),
    /// TLS cannot be set up.
    #[error(transparent)]
    SetUp(#[from] SetUpError),
}

/// The certificate and where it comes from.
pub(super) struct Certificates {
    tls: Tls,
    source: Source,
    host: String,
    clock: Clock,
    metrics: Metrics,
    reload: Reload,
}

/// Asks to read the files immediately. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Reload(Arc<Notify>);

impl Reload {
    /// Asks after each signal, forever.
    pub(super) async fn follow(self, mut hangups: Signal) {
        while hangups.recv().await.is_some() {
            self.0.notify_one();
        }
    }
}

enum Source {
    Files(Files),
    Acme(Acme),
}

/// The paths of a certificate and its key.
#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    /// Warns if every user of the machine may read the key. This is no error, because mounted
    /// secrets are often like this.
    async fn warn_of_rights(&self) {
        let Ok(found) = tokio::fs::metadata(&self.key).await else { return };
        if found.permissions().mode() & 0o007 != 0 {
            tracing::warn!(file = %self.key.display(), "all users can use the private key");
        }
    }

    /// Reads the files on a thread for blocking work, and checks the certificate.
    async fn read(&self, tls: &Tls, clock: &Clock) -> Result<Pair, PairError> {
        let (files, of_tls) = (self.clone(), tls.clone());
        let reading = move || Pair::read(&of_tls, &files.certificate, &files.key);
        let read = tokio::task::spawn_blocking(reading).await.map_err(|error| {
            let path = self.certificate.clone();
            PairError::Unreadable { path, source: std::io::Error::other(error) }
        });
        let pair = read??;
        pair.check(clock.now())?;
        Ok(pair)
    }
}

impl Certificates {
    /// What the settings say. `None`: the service speaks plain http.
    ///
    /// # Errors
    /// [`CertificateError`] if the files cannot be used or ACME cannot be set up. Without a
    /// certificate of ACME, handshakes fail until there is one.
    pub(super) async fn open(
        config: &Config,
        clock: Clock,
        metrics: Metrics,
    ) -> Result<Option<Self>, CertificateError> {
        if !config.serves_tls() {
            return Ok(None);
        }
        let tls = Tls::new()?;
        let host = config.public_url.host().unwrap_or_default().to_owned();
        let domains = config.acme_domains.all();
        let (first, source) = if domains.is_empty() {
            let (certificate, key) = (config.tls_certificate.clone(), config.tls_key.clone());
            let files = Files { certificate, key };
            let pair = files.read(&tls, &clock).await?;
            files.warn_of_rights().await;
            (Some(pair), Source::Files(files))
        } else {
            let root = &config.acme_root;
            let check = match config.redirect_listen.0 {
                Some(_) => Check::Http,
                None => Check::Tls,
            };
            let settings = AcmeSettings {
                directory: config.acme_directory.0.clone(),
                contact: config.acme_contact.0.clone(),
                domains: domains.to_vec(),
                root: (!root.as_os_str().is_empty()).then(|| root.clone()),
                cache: config.data.join(CACHE),
                check,
            };
            let acme = Acme::new(settings, tls.clone())?;
            let cached = acme.cached().await;
            (cached.filter(|pair| pair.check(clock.now()).is_ok()), Source::Acme(acme))
        };
        let certificates = Self { tls, source, host, clock, metrics, reload: Reload::default() };
        if let Some(pair) = first {
            certificates.install(pair);
        }
        Ok(Some(certificates))
    }

    /// The handshakes with the certificate.
    pub(super) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Asks to read the files immediately.
    pub(super) fn reload(&self) -> Reload {
        self.reload.clone()
    }

    /// Keeps the certificate current, forever.
    pub(super) async fn keep(self) {
        match &self.source {
            Source::Files(files) => self.follow(files).await,
            Source::Acme(acme) => self.renew(acme).await,
        }
    }

    fn install(&self, pair: Pair) {
        let expires_at = pair.expires_at();
        if !pair.covers(&self.host) {
            let host = self.host.as_str();
            tracing::warn!(host, "the certificate is not for the host of public_url");
        }
        self.metrics.tls_certificate_expiry_seconds.set(expires_at.micros() as f64 / 1e6);
        self.tls.install(pair);
        tracing::info!(%expires_at, "using the certificate");
    }

    fn fail(&self, error: &dyn std::error::Error, message: &str) {
        self.metrics.tls_certificate_failures.inc();
        let error: String = with_causes(error).chars().take(LONGEST_ERROR).collect();
        tracing::error!(%error, "{message}");
    }

    /// Reads the files again and again. A fault is reported if it is still there at the next
    /// look, because the two files are replaced one after the other, or if the look was
    /// requested.
    async fn follow(&self, files: &Files) {
        let mut fault = Fault::default();
        loop {
            let is_requested = tokio::select! {
                () = self.reload.0.notified() => true,
                () = sleep(LOOK) => false,
            };
            match files.read(&self.tls, &self.clock).await {
                Ok(pair) => {
                    fault = Fault::default();
                    let present = self.tls.pair();
                    if present.is_none_or(|present| !present.is_same(&pair)) {
                        self.install(pair);
                    } else if is_requested {
                        tracing::info!("the certificate has not changed");
                    }
                }
                Err(error) => {
                    if fault.notice(&error.to_string(), is_requested) {
                        self.fail(&error, "the certificate was not read again; the last one stays");
                    }
                }
            }
        }
    }

    /// Obtains a certificate when it is due.
    async fn renew(&self, acme: &Acme) {
        let mut pause = FIRST_PAUSE;
        loop {
            let now = self.clock.now();
            let present = self.tls.pair();
            if present.is_none_or(|present| present.is_due(now) || !acme.covers(&present)) {
                match acme.obtain().await {
                    Ok(pair) => {
                        self.install(pair);
                        pause = FIRST_PAUSE;
                    }
                    Err(error) => {
                        self.fail(&error, "no certificate was obtained; trying again later");
                        sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                        continue;
                    }
                }
            }
            // Also after an order, so that a certificate that is due immediately, because the
            // clock is wrong, does not lead to one order after the other.
            sleep(DUE).await;
        }
    }
}

/// The last fault of the files.
#[derive(Default)]
struct Fault {
    text: String,
    is_reported: bool,
}

impl Fault {
    /// Records a fault, and returns whether it is reported now. Each is reported once, and
    /// again if that is requested.
    fn notice(&mut self, text: &str, is_requested: bool) -> bool {
        let is_known = self.text == text;
        let is_reported = is_requested || (is_known && !self.is_reported);
        self.is_reported = is_reported || (is_known && self.is_reported);
        if !is_known {
            text.clone_into(&mut self.text);
        }
        is_reported
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn a_fault_that_stays_is_reported_once() {
        let mut fault = Fault::default();
        for (text, is_requested, is_reported) in [
            ("no key", false, false),
            ("no key", false, true),
            ("no key", false, false),
            ("no key", true, true),
            ("no key", false, false),
            ("expired", false, false),
            ("no key", true, true),
            ("no key", false, false),
        ] {
            assert_eq!(fault.notice(text, is_requested), is_reported, "{text}");
        }
    }
}
