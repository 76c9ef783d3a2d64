//! Counting attempts: to sign in (by user and by network), codes, to open links, and
//! mails that anyone can request.
//!
//! What belongs here: what is counted and how long to wait (SEC-4). What does not: the
//! counters, which are in the store so that a restart does not reset them.
//!
//! An attempt is counted before it is made, so that concurrent attempts count each
//! other. A success resets the counter or returns the attempt.
//!
//! Any person who knows an address can use up the attempts of its user. The owner has
//! other ways: browsers in which the owner has signed in, and open sessions, have their
//! own counters. A right password together with a right code waits only for the counter
//! of the network (`sign_in`). Recovery codes, which cannot be guessed, are counted by
//! network. For an owner without any of these, passwords of a user are counted by site:
//! attempts from other sites make an owner wait for a minute at most, and not at all
//! for the first two attempts from the network of a provider. Without these rules
//! unknown clients in many networks, who try whenever it is allowed, would always be
//! faster than the owner.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use weir_model::{Timestamp, UserId};
use weir_store::throttle::{self, Rule, Try};

use super::{Identity, Peer};
use crate::error::Error;
use crate::secrets;

/// Seconds to wait after each failure. Five failures of a user from one site are free,
/// then the wait doubles up to a quarter of an hour. It never grows further, so that no
/// user is locked out.
const USER_WAITS: &[u64] = &[0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900];
/// For a user from all sites together: twenty failures are free, then the wait doubles
/// up to a minute. A longer wait would let a single client elsewhere, which may try
/// once in a quarter of an hour, lock the owner out. This many attempts cannot guess a
/// password that the rules allow.
const EVERYWHERE_WAITS: &[u64] =
    &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 60];
/// For a user from the network of one provider, where attempts from all sites have to
/// wait: two in a day. There are fewer such networks than sites, so this adds few
/// guesses.
const PROVIDER_WAITS: &[u64] = &[0, FORGET_AFTER];
/// A network can be a whole office: twenty failures are free.
const NETWORK_WAITS: &[u64] = &[
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512,
    900,
];
/// Five codes of a user are free, then one a minute, and later fewer: a code has only
/// six digits.
const CODE_WAITS: &[u64] = &[0, 0, 0, 0, 60, 60, 120, 240, 480, 900];
/// Questions cost little and reveal little: a hundred from a network are free.
const QUESTION_WAITS: &[u64] = &{
    let mut waits = [60; 106];
    let mut at = 0;
    while at < 105 {
        waits[at] = if at < 100 { 0 } else { 2 << (at - 100) };
        at += 1;
    }
    waits
};
/// Mails of one kind to a user: six, then none until a day after the last one.
const MAIL_WAITS: &[u64] = &[0, 0, 0, 0, 0, FORGET_AFTER];
/// A counter of questions is reset after this many seconds without a question.
const FORGET_QUESTIONS_AFTER: u64 = 60;
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
    Known(&'a str),
}

/// An attempt that was counted.
pub(super) struct Counted {
    rules: Vec<Rule>,
    at: Timestamp,
}

impl Identity {
    /// Counts an attempt with the password of this user from this peer.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another attempt.
    pub(super) async fn count_try(
        &self,
        email_key: &str,
        peer: &Peer,
        caller: Caller<'_>,
    ) -> Result<Counted, Error> {
        if let Caller::Known(caller) = caller {
            return self.count(vec![known_rule("known", USER_WAITS, email_key, caller)]).await;
        }
        let of_user =
            |kind, waits, address: String| rule(kind, waits, &format!("{email_key} {address}"));
        let here = of_user("account here", USER_WAITS, peer.address.map(site).unwrap_or_default());
        let everywhere = rule("account", EVERYWHERE_WAITS, email_key);
        let with = |other| [here.clone(), other].into_iter().chain(network_rule(peer)).collect();
        let refused = match self.count(with(everywhere)).await {
            Err(refused @ Error::Throttled { .. }) => refused,
            other => return other,
        };
        let Some(address) = peer.address else { return Err(refused) };
        let first = of_user("account first", PROVIDER_WAITS, provider(address));
        match self.count(with(first)).await {
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
            Caller::Known(caller) => vec![known_rule("known code", CODE_WAITS, &user, caller)],
            Caller::Unknown => {
                let of_user = rule("code", CODE_WAITS, &user);
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
            Try::Counted => Ok(Counted { rules, at }),
            Try::Wait { until } => {
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
            kind: "link",
            key: network(address),
            waits: NETWORK_WAITS,
            forget_after: FORGET_AFTER,
        };
        self.count(peer.address.map(rule).into_iter().collect()).await
    }

    /// Counts a question about an address from this peer.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another question.
    pub(super) async fn count_question(&self, peer: &Peer) -> Result<(), Error> {
        let rule = |address| Rule {
            kind: "question",
            key: network(address),
            waits: QUESTION_WAITS,
            forget_after: FORGET_QUESTIONS_AFTER,
        };
        // Never returned: the number of answers is limited.
        self.count(peer.address.map(rule).into_iter().collect()).await.map(drop)
    }

    /// Counts a mail with a link of this kind to this user, whether or not the user
    /// exists. Without a peer the caller has proved their identity.
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
            kind: "mail",
            key: network(address),
            waits: NETWORK_WAITS,
            forget_after: FORGET_AFTER,
        });
        let rules = std::iter::once(of_user).chain(of_network).collect();
        // Never returned: the number of mails is limited.
        self.count(rules).await.map(drop)
    }

    /// The attempt succeeded. The user's counter of such attempts is reset. The network
    /// gets only this one attempt back: with a reset, the owner of one user could guess
    /// the passwords of others without limit.
    pub(super) async fn try_succeeded(&self, counted: Counted) -> Result<(), Error> {
        for rule in &counted.rules {
            if matches!(
                rule.kind,
                "account" | "account here" | "account first" | "code" | "known" | "known code"
            ) {
                throttle::reset(&self.core.store, rule).await?;
            } else {
                throttle::give_back(&self.core.store, rule, counted.at).await?;
            }
        }
        Ok(())
    }

    /// Removes counters without an attempt in a day, for a minute at most. Returns whether
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
        kind: "network",
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

/// The first bits of an address: `older` of IPv4, `newer` of IPv6.
fn prefix(address: IpAddr, older: u32, newer: u32) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let host = u32::MAX.checked_shr(older).unwrap_or(0);
            format!("{}/{older}", Ipv4Addr::from_bits(address.to_bits() & !host))
        }
        IpAddr::V6(address) => {
            let host = u128::MAX.checked_shr(newer).unwrap_or(0);
            format!("{}/{newer}", Ipv6Addr::from_bits(address.to_bits() & !host))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CODE_WAITS, EVERYWHERE_WAITS, NETWORK_WAITS, USER_WAITS, network, provider, site};

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
        assert!(EVERYWHERE_WAITS.is_sorted() && EVERYWHERE_WAITS.last() == Some(&60));
        assert_eq!(EVERYWHERE_WAITS.iter().filter(|wait| **wait == 0).count(), 20);
        assert_eq!(USER_WAITS.iter().filter(|wait| **wait == 0).count(), 5);
        assert_eq!(NETWORK_WAITS.iter().filter(|wait| **wait == 0).count(), 20);
    }
}
