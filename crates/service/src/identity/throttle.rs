//! Counting attempts to sign in (by user and by network), codes, opened links, prechecks,
//! sign-ins that begin, answers of providers, and mails that anyone can request.
//!
//! What belongs here: what is counted and how long to wait (SEC-4). What does not: the
//! counters, which are in the store so that a restart does not reset them.
//!
//! An attempt is counted before it is made, so that each of several concurrent attempts
//! sees the others. A success resets the counters of the user, and takes this one attempt
//! back from the counters of networks and links.
//!
//! A client who knows an address can use up the attempts of its user. So the user keeps
//! these ways to sign in:
//!
//! - A browser in which the user has signed in, and an open session, have counters of
//!   their own.
//! - A right password with a right code waits only for the counter of the network
//!   (`sign_in`).
//! - Recovery codes cannot be guessed. They are counted by network only.
//! - Otherwise passwords are counted by site. Attempts from other sites delay the user by
//!   a minute at most, and do not delay two attempts a day from each provider.
//!
//! Without these rules, unknown clients in many networks, who try whenever it is allowed,
//! would always be faster than the user.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use weir_model::{DomainId, Timestamp, UserId};
use weir_store::throttle::{self, CountResult, Rule};

use super::{Identity, Peer};
use crate::error::Error;
use crate::secrets;

// The kinds of counters. They are parts of stored keys: with another text, a counter
// starts again at 0.

/// Passwords of a user from one site.
const PASSWORD_OF_SITE: &str = "account here";
/// Passwords of a user from all sites together.
const PASSWORD_OF_ALL_SITES: &str = "account";
/// Passwords of a user from one provider, where the counter of all sites requires waiting.
const PASSWORD_OF_PROVIDER: &str = "account first";
/// Passwords of a user by a known caller.
const PASSWORD_OF_KNOWN: &str = "known";
const CODE: &str = "code";
/// Codes of a user by a known caller.
const CODE_OF_KNOWN: &str = "known code";
const LINK: &str = "link";
const MAIL: &str = "mail";
const NETWORK: &str = "network";
const PRECHECK: &str = "question";
/// Sign-ins that begin at a provider, or with a passkey.
const BEGINNING: &str = "beginning";
/// Answers of providers that were refused.
const ANSWER: &str = "answer";
/// Refusals that are recorded for the administrators of a domain although no signature
/// proves who sent the answer.
const REFUSAL: &str = "refusal";
/// The same for answers without a pending login. They need not begin a sign-in, so they
/// must not use up the other counter.
const STRAY: &str = "stray";

/// Seconds to wait after the n-th attempt that did not succeed. Six attempts of a user
/// from one site need no wait, then the wait doubles up to a quarter of an hour. It never
/// grows further, so that no user is locked out.
const USER_WAITS: &[u64] = &[0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900];
/// For a user from all sites together: twenty-one attempts need no wait, then the wait
/// doubles up to a minute. A longer wait would let a single client elsewhere, which may
/// try once in a quarter of an hour, lock the user out. This many attempts cannot guess a
/// password that the rules allow.
const ALL_SITES_WAITS: &[u64] =
    &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 60];
/// For a user from the network of one provider, where attempts from all sites have to
/// wait: two in a day. There are fewer such networks than sites, so this adds few
/// guesses.
const PROVIDER_WAITS: &[u64] = &[0, FORGET_AFTER];
/// A network can be a whole office: twenty-one attempts need no wait.
const NETWORK_WAITS: &[u64] = &[
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512,
    900,
];
/// Five codes need no wait, then one a minute, and later fewer: a code has only six digits.
const CODE_WAITS: &[u64] = &[0, 0, 0, 0, 60, 60, 120, 240, 480, 900];
/// For what cannot be guessed, or reveals little: prechecks, sign-ins that begin, answers of
/// providers. A network can be a whole office in the morning. Three hundred need no wait,
/// then the wait doubles up to a minute.
const MANY_WAITS: &[u64] = &{
    let mut waits = [60; 305];
    let mut at = 0;
    while at < 304 {
        waits[at] = if at < 299 { 0 } else { 2 << (at - 299) };
        at += 1;
    }
    waits
};
/// Mails of one kind to a user: six, then none until a day after the last one.
const MAIL_WAITS: &[u64] = &[0, 0, 0, 0, 0, FORGET_AFTER];
/// Two hundred refusals of a domain are recorded without a wait, then one in a quarter of an
/// hour: anyone can bring an answer that is refused, and the activity log keeps all of them.
const REFUSAL_WAITS: &[u64] = &{
    let mut waits = [0; 200];
    waits[199] = 900;
    waits
};
/// A counter of prechecks or of sign-ins that begin is reset after this many seconds without
/// one.
const FORGET_BEGINNINGS_AFTER: u64 = 60;
/// A counter of answers, or of refusals that are recorded, is reset after this many seconds
/// without one.
const FORGET_ANSWERS_AFTER: u64 = 60 * 60;
/// A counter is reset after this many seconds without an attempt.
const FORGET_AFTER: u64 = 24 * 60 * 60;
/// Time for removing old counters, after which no further transaction begins.
const PRUNE_TIME: Duration = Duration::from_secs(60);

/// Whether the caller is known: by the hash of the token of a browser in which the user
/// has signed in, or of an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller<'a> {
    Unknown,
    /// A known caller, which has its own counters.
    Recognized(&'a str),
}

/// An attempt that was counted.
pub(in crate::identity) struct Counted {
    rules: Vec<Rule>,
    at: Timestamp,
}

impl Identity {
    /// Counts an attempt with the password of this user from this peer.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another attempt.
    pub(super) async fn count_password(
        &self,
        email_key: &str,
        peer: &Peer,
        caller: Caller<'_>,
    ) -> Result<Counted, Error> {
        if let Caller::Recognized(caller) = caller {
            let rule = known_rule(PASSWORD_OF_KNOWN, USER_WAITS, email_key, caller);
            return self.count(vec![rule]).await;
        }
        let of_user =
            |kind, waits, address: String| rule(kind, waits, &format!("{email_key} {address}"));
        let site = peer.address.map(site).unwrap_or_default();
        let of_site = of_user(PASSWORD_OF_SITE, USER_WAITS, site);
        let of_all_sites = rule(PASSWORD_OF_ALL_SITES, ALL_SITES_WAITS, email_key);
        let with = |other| [of_site.clone(), other].into_iter().chain(network_rule(peer)).collect();
        let refused = match self.count(with(of_all_sites)).await {
            Err(refused @ Error::Throttled { .. }) => refused,
            other => return other,
        };
        let Some(address) = peer.address else { return Err(refused) };
        let of_provider = of_user(PASSWORD_OF_PROVIDER, PROVIDER_WAITS, provider(address));
        match self.count(with(of_provider)).await {
            Err(Error::Throttled { .. }) => Err(refused),
            other => other,
        }
    }

    /// Counts an attempt from this peer, by its network alone.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another attempt.
    pub(super) async fn count_by_network(&self, peer: &Peer) -> Result<Counted, Error> {
        self.count(network_rule(peer).into_iter().collect()).await
    }

    /// Counts an answer of a provider to a pending login, from this peer. It has a
    /// counter of its own: another site can make browsers come back with a wrong answer, and
    /// must not keep a network from signing in with passwords. Answers are signed and cannot
    /// be guessed, so many need no wait.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another answer.
    pub(super) async fn count_answer(&self, peer: &Peer) -> Result<Counted, Error> {
        let rule = |address| Rule {
            kind: ANSWER,
            key: network(address),
            waits: MANY_WAITS,
            forget_after: FORGET_ANSWERS_AFTER,
        };
        self.count(peer.address.map(rule).into_iter().collect()).await
    }

    /// Whether a refusal that anyone can cause may be recorded for this domain now.
    pub(super) async fn may_record_refusal(&self, domain: DomainId) -> Result<bool, Error> {
        self.may_record(REFUSAL, domain, FORGET_ANSWERS_AFTER).await
    }

    /// Whether an answer without a pending login may be recorded for this domain now.
    pub(super) async fn may_record_stray(&self, domain: DomainId) -> Result<bool, Error> {
        self.may_record(STRAY, domain, FORGET_AFTER).await
    }

    async fn may_record(
        &self,
        kind: &'static str,
        domain: DomainId,
        forget_after: u64,
    ) -> Result<bool, Error> {
        let rule = Rule { kind, key: domain.to_string(), waits: REFUSAL_WAITS, forget_after };
        match self.count(vec![rule]).await {
            Ok(_) => Ok(true),
            Err(Error::Throttled { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Counts a code of the second factor of this user from this peer.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another attempt.
    pub(super) async fn count_code(
        &self,
        user: UserId,
        peer: &Peer,
        caller: Caller<'_>,
    ) -> Result<Counted, Error> {
        let user = user.to_string();
        let rules = match caller {
            Caller::Recognized(caller) => {
                vec![known_rule(CODE_OF_KNOWN, CODE_WAITS, &user, caller)]
            }
            Caller::Unknown => {
                let of_user = rule(CODE, CODE_WAITS, &user);
                std::iter::once(of_user).chain(network_rule(peer)).collect()
            }
        };
        self.count(rules).await
    }

    async fn count(&self, rules: Vec<Rule>) -> Result<Counted, Error> {
        let at = self.core.clock.now();
        if rules.is_empty() {
            return Ok(Counted { rules, at });
        }
        match throttle::count(&self.core.store, &rules, at).await? {
            CountResult::Counted => Ok(Counted { rules, at }),
            CountResult::Wait { until } => {
                let micros = u64::try_from(until.micros() - at.micros()).unwrap_or(0);
                Err(Error::Throttled { wait_seconds: micros.div_ceil(1_000_000).max(1) })
            }
        }
    }

    /// Counts an attempt to open a link from this peer: a link is a secret that could
    /// be guessed.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another attempt.
    pub(super) async fn count_link(&self, peer: &Peer) -> Result<Counted, Error> {
        let rule = |address| Rule {
            kind: LINK,
            key: network(address),
            waits: NETWORK_WAITS,
            forget_after: FORGET_AFTER,
        };
        self.count(peer.address.map(rule).into_iter().collect()).await
    }

    /// Counts a precheck from this peer.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another precheck.
    pub(super) async fn count_precheck(&self, peer: &Peer) -> Result<(), Error> {
        self.count_many(PRECHECK, peer).await
    }

    /// Counts a sign-in that begins at a provider or with a passkey, from this peer: each one
    /// is stored.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another one.
    pub(super) async fn count_beginning(&self, peer: &Peer) -> Result<(), Error> {
        self.count_many(BEGINNING, peer).await
    }

    async fn count_many(&self, kind: &'static str, peer: &Peer) -> Result<(), Error> {
        let rule = |address| Rule {
            kind,
            key: network(address),
            waits: MANY_WAITS,
            forget_after: FORGET_BEGINNINGS_AFTER,
        };
        // Not subtracted after a success: the limit is on their number.
        self.count(peer.address.map(rule).into_iter().collect()).await.map(drop)
    }

    /// Counts a mail with a link of this kind to this user, whether or not the user
    /// exists. A signed-in caller passes no peer, so the network is not counted.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another mail.
    pub(super) async fn count_mail(
        &self,
        kind: &'static str,
        user_key: &str,
        peer: Option<&Peer>,
    ) -> Result<(), Error> {
        let of_user = Rule {
            kind,
            key: secrets::sha256_hex(user_key),
            waits: MAIL_WAITS,
            forget_after: FORGET_AFTER,
        };
        let of_network = peer.and_then(|peer| peer.address).map(|address| Rule {
            kind: MAIL,
            key: network(address),
            waits: NETWORK_WAITS,
            forget_after: FORGET_AFTER,
        });
        let rules = std::iter::once(of_user).chain(of_network).collect();
        // Not subtracted after a success: the limit is on the number of mails.
        self.count(rules).await.map(drop)
    }

    /// The attempt succeeded. The counters of the user for such attempts are reset. From the
    /// other counters only this one attempt is subtracted: with a reset, a user could guess
    /// the passwords of others without limit.
    pub(super) async fn attempt_succeeded(&self, counted: Counted) -> Result<(), Error> {
        for rule in &counted.rules {
            if matches!(
                rule.kind,
                PASSWORD_OF_SITE
                    | PASSWORD_OF_ALL_SITES
                    | PASSWORD_OF_PROVIDER
                    | PASSWORD_OF_KNOWN
                    | CODE
                    | CODE_OF_KNOWN
            ) {
                throttle::reset(&self.core.store, rule).await?;
            } else {
                throttle::uncount(&self.core.store, rule, counted.at).await?;
            }
        }
        Ok(())
    }

    /// Removes counters that had no attempt for a day. Stops after a minute. Returns whether
    /// all of them are removed. Anyone can add a counter for each of their networks, so no
    /// request waits for this.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn prune_counters(&self) -> Result<bool, Error> {
        let seconds = i64::try_from(FORGET_AFTER).unwrap_or(i64::MAX);
        let before = self.core.clock.now().plus_seconds(-seconds);
        Ok(throttle::prune(&self.core.store, before, PRUNE_TIME).await?)
    }
}

/// The counter of attempts for this user. The hash keeps addresses out of the counters,
/// and their keys short.
fn rule(kind: &'static str, waits: &'static [u64], user_key: &str) -> Rule {
    Rule { kind, key: secrets::sha256_hex(user_key), waits, forget_after: FORGET_AFTER }
}

/// The counter of attempts for this user by a known caller.
fn known_rule(kind: &'static str, waits: &'static [u64], user_key: &str, caller: &str) -> Rule {
    rule(kind, waits, &format!("{user_key} {caller}"))
}

fn network_rule(peer: &Peer) -> Option<Rule> {
    peer.address.map(|address| Rule {
        kind: NETWORK,
        key: network(address),
        waits: NETWORK_WAITS,
        forget_after: FORGET_AFTER,
    })
}

/// The network of a client: one IPv4 address, or 64 bits of an IPv6 address.
pub(super) fn network(address: IpAddr) -> String {
    prefix(address, 32, 64)
}

/// The network of one site or one customer of a provider.
fn site(address: IpAddr) -> String {
    prefix(address, 24, 48)
}

/// The network of one provider, or of a part of a large one.
fn provider(address: IpAddr) -> String {
    prefix(address, 16, 32)
}

/// The first bits of an address: `v4_bits` of IPv4, `v6_bits` of IPv6.
fn prefix(address: IpAddr, v4_bits: u32, v6_bits: u32) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let host = u32::MAX.checked_shr(v4_bits).unwrap_or(0);
            format!("{}/{v4_bits}", Ipv4Addr::from_bits(address.to_bits() & !host))
        }
        IpAddr::V6(address) => {
            let host = u128::MAX.checked_shr(v6_bits).unwrap_or(0);
            format!("{}/{v6_bits}", Ipv6Addr::from_bits(address.to_bits() & !host))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ALL_SITES_WAITS, CODE_WAITS, MANY_WAITS, NETWORK_WAITS, REFUSAL_WAITS, USER_WAITS, network,
        provider, site,
    };

    #[test]
    fn networks() {
        let cases = [
            ("192.0.2.7", "192.0.2.7/32", "192.0.2.0/24", "192.0.0.0/16"),
            ("::ffff:192.0.2.7", "192.0.2.7/32", "192.0.2.0/24", "192.0.0.0/16"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1::/48", "2001:db8::/32"),
            ("::1", "::/64", "::/48", "::/32"),
        ];
        for (address, expected, around, of_provider) in cases {
            assert_eq!(address.parse().map(network).as_deref(), Ok(expected));
            assert_eq!(address.parse().map(site).as_deref(), Ok(around));
            assert_eq!(address.parse().map(provider).as_deref(), Ok(of_provider));
        }
    }

    #[test]
    fn waits_grow_to_a_quarter_of_an_hour() {
        for waits in [USER_WAITS, CODE_WAITS, NETWORK_WAITS] {
            assert!(waits.is_sorted());
            assert_eq!(waits.last(), Some(&900));
        }
        assert!(ALL_SITES_WAITS.is_sorted() && ALL_SITES_WAITS.last() == Some(&60));
        assert_eq!(ALL_SITES_WAITS.iter().filter(|wait| **wait == 0).count(), 20);
        assert_eq!(USER_WAITS.iter().filter(|wait| **wait == 0).count(), 5);
        assert_eq!(NETWORK_WAITS.iter().filter(|wait| **wait == 0).count(), 20);
    }

    #[test]
    fn three_hundred_of_a_network_need_no_wait_and_then_at_most_a_minute() {
        // The wait after the three hundredth is for the next one.
        assert!(MANY_WAITS[..299].iter().all(|wait| *wait == 0));
        assert_eq!(MANY_WAITS[299..], [2, 4, 8, 16, 32, 60]);
    }

    #[test]
    fn two_hundred_refusals_of_a_domain_are_recorded_without_a_wait() {
        assert!(REFUSAL_WAITS[..199].iter().all(|wait| *wait == 0));
        assert_eq!(REFUSAL_WAITS[199..], [900]);
    }
}
