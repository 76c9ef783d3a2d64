//! Counting tries to sign in, by account and by network, codes, tries to open links, and
//! mails that anybody can have sent.
//!
//! What belongs here: what is counted and how long to wait (SEC-4).
//! What does not: the counters themselves, which are in the store so that
//! a restart does not reset them.
//!
//! A try is counted before it is made, so that many at once count each other,
//! and given back when it succeeds.
//!
//! Anyone who knows an address can use up the tries of its account. The owner gets past
//! them: browsers in which the owner has signed in, and open sessions, have counters of
//! their own; a right password together with a right code waits for the network's alone
//! (`sign_in`); and recovery codes, which cannot be guessed, are counted by network. For
//! an owner without any of these, passwords of an account are counted by site: those from
//! elsewhere make an owner wait for a minute at most, and not at all for the first two
//! tries from the network of a provider. Otherwise strangers in many networks, who try
//! whenever it is allowed, would always be faster than the owner.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::Ordering;

use weir_model::{Timestamp, UserId};
use weir_store::throttle::{self, Rule, Try};

use super::{Identity, Peer};
use crate::error::Error;
use crate::secrets;

/// Seconds to wait after a failure: five of an account from one site are free, then the
/// wait doubles up to a quarter of an hour. Never longer: nobody is locked out.
const ACCOUNT_WAITS: &[u64] = &[0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900];
/// Of an account from all sites together: twenty failures are free, then the wait doubles
/// up to a minute. More would let a single client elsewhere, which may try once in a
/// quarter of an hour, lock the owner out; so many tries guess no password that is allowed.
const EVERYWHERE_WAITS: &[u64] =
    &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 60];
/// Of an account from the network of one provider, where tries from everywhere have to
/// wait: two in a day. There are fewer such networks than sites, so this adds few guesses.
const PROVIDER_WAITS: &[u64] = &[0, FORGET_AFTER];
/// A network may hold a whole office: twenty failures are free.
const NETWORK_WAITS: &[u64] = &[
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512,
    900,
];
/// Five codes of an account are free, then one a minute, and fewer: a code has six
/// digits.
const CODE_WAITS: &[u64] = &[0, 0, 0, 0, 60, 60, 120, 240, 480, 900];
/// Questions cost little and reveal little: a hundred of a network are free.
const QUESTION_WAITS: &[u64] = &{
    let mut waits = [60; 106];
    let mut at = 0;
    while at < 105 {
        waits[at] = if at < 100 { 0 } else { 2 << (at - 100) };
        at += 1;
    }
    waits
};
/// Mails of one kind to an account: six, then none until a day after the last.
const MAIL_WAITS: &[u64] = &[0, 0, 0, 0, 0, FORGET_AFTER];
/// A counter of questions starts anew after a minute without one.
const FORGET_QUESTIONS_AFTER: u64 = 60;
/// A counter starts anew after a day without a try.
const FORGET_AFTER: u64 = 24 * 60 * 60;
/// How often old counters are looked for, in microseconds.
const PRUNE_EVERY: i64 = 60 * 60 * 1_000_000;

/// What tells a caller from strangers: the hash of the token of a browser in which the
/// account's owner has signed in, or of an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller<'a> {
    /// Nothing does.
    Stranger,
    /// It has counters of its own.
    Known(&'a str),
}

/// A try that was counted.
pub(super) struct Counted {
    rules: Vec<Rule>,
    at: Timestamp,
}

impl Identity {
    /// Counts a try to use this account from this peer.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another.
    pub(super) async fn count_try(
        &self,
        email_key: &str,
        peer: &Peer,
        caller: Caller<'_>,
    ) -> Result<Counted, Error> {
        if let Caller::Known(caller) = caller {
            return self.count(vec![known_rule("known", ACCOUNT_WAITS, email_key, caller)]).await;
        }
        let of_account =
            |kind, waits, address: String| rule(kind, waits, &format!("{email_key} {address}"));
        let here =
            of_account("account here", ACCOUNT_WAITS, peer.address.map(site).unwrap_or_default());
        let everywhere = rule("account", EVERYWHERE_WAITS, email_key);
        let with = |other| [here.clone(), other].into_iter().chain(network_rule(peer)).collect();
        let refused = match self.count(with(everywhere)).await {
            Err(refused @ Error::Throttled { .. }) => refused,
            other => return other,
        };
        let Some(address) = peer.address else { return Err(refused) };
        let first = of_account("account first", PROVIDER_WAITS, provider(address));
        match self.count(with(first)).await {
            Err(Error::Throttled { .. }) => Err(refused),
            other => other,
        }
    }

    /// Counts a try from this peer by its network alone.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another.
    pub(super) async fn count_by_network(&self, peer: &Peer) -> Result<Counted, Error> {
        self.count(network_rule(peer).into_iter().collect()).await
    }

    /// Counts a code of the second factor of this account from this peer.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another.
    pub(super) async fn count_code(
        &self,
        user: UserId,
        peer: &Peer,
        caller: Caller<'_>,
    ) -> Result<Counted, Error> {
        let user = user.to_string();
        let rules = match caller {
            Caller::Known(caller) => vec![known_rule("known code", CODE_WAITS, &user, caller)],
            Caller::Stranger => {
                let of_account = rule("code", CODE_WAITS, &user);
                std::iter::once(of_account).chain(network_rule(peer)).collect()
            }
        };
        self.count(rules).await
    }

    async fn count(&self, rules: Vec<Rule>) -> Result<Counted, Error> {
        let at = self.core.clock.now();
        self.forget_old_counters(at).await;
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

    /// Counts a try to open a link from this peer: a link is a secret that could
    /// be guessed at.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another.
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
    /// [`Error::Throttled`] when it is too early for another.
    pub(super) async fn count_question(&self, peer: &Peer) -> Result<(), Error> {
        let rule = |address| Rule {
            kind: "question",
            key: network(address),
            waits: QUESTION_WAITS,
            forget_after: FORGET_QUESTIONS_AFTER,
        };
        // Never given back: an answer is what is limited.
        self.count(peer.address.map(rule).into_iter().collect()).await.map(drop)
    }

    /// Counts a mail with a link of this kind to this account, whether it exists
    /// or not. Without a peer the person has proved who they are.
    ///
    /// # Errors
    /// [`Error::Throttled`] when it is too early for another.
    pub(super) async fn count_mail(
        &self,
        kind: &'static str,
        account: &str,
        peer: Option<&Peer>,
    ) -> Result<(), Error> {
        let of_account = Rule {
            kind,
            key: secrets::sha256_hex(account),
            waits: MAIL_WAITS,
            forget_after: FORGET_AFTER,
        };
        let of_network = peer.and_then(|peer| peer.address).map(|address| Rule {
            kind: "mail",
            key: network(address),
            waits: NETWORK_WAITS,
            forget_after: FORGET_AFTER,
        });
        let rules = std::iter::once(of_account).chain(of_network).collect();
        // Never given back: the mail is what is limited.
        self.count(rules).await.map(drop)
    }

    /// The try succeeded: the account's counter of such tries starts anew, the network gets
    /// this one try back. (Else whoever owns one account could guess at others
    /// without end.)
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

    async fn forget_old_counters(&self, now: Timestamp) {
        let last = self.pruned_at.load(Ordering::Relaxed);
        // Either way: a clock that was ahead put it into the future.
        if (now.micros() - last).abs() < PRUNE_EVERY {
            return;
        }
        let ours = self.pruned_at.compare_exchange(
            last,
            now.micros(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if ours.is_ok() {
            let seconds = i64::try_from(FORGET_AFTER).unwrap_or(i64::MAX);
            if let Err(error) = throttle::prune(&self.core.store, now.plus_seconds(-seconds)).await
            {
                tracing::warn!(%error, "old sign-in counters were not removed");
            }
        }
    }
}

/// The counter of tries for this account. The hash keeps addresses out of the counters,
/// and their keys short.
fn rule(kind: &'static str, waits: &'static [u64], account: &str) -> Rule {
    Rule { kind, key: secrets::sha256_hex(account), waits, forget_after: FORGET_AFTER }
}

/// The counter of tries for this account by a known caller.
fn known_rule(kind: &'static str, waits: &'static [u64], account: &str, caller: &str) -> Rule {
    rule(kind, waits, &format!("{account} {caller}"))
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
fn network(address: IpAddr) -> String {
    prefix(address, 32, 64)
}

/// What belongs to one site or one customer of a provider.
fn site(address: IpAddr) -> String {
    prefix(address, 24, 48)
}

/// What belongs to one provider, or a part of a large one.
fn provider(address: IpAddr) -> String {
    prefix(address, 16, 32)
}

/// So many bits of an address of the older or the newer kind.
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
    use super::{
        ACCOUNT_WAITS, CODE_WAITS, EVERYWHERE_WAITS, NETWORK_WAITS, network, provider, site,
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
        for waits in [ACCOUNT_WAITS, CODE_WAITS, NETWORK_WAITS] {
            assert!(waits.is_sorted());
            assert_eq!(waits.last(), Some(&900));
        }
        assert!(EVERYWHERE_WAITS.is_sorted() && EVERYWHERE_WAITS.last() == Some(&60));
        assert_eq!(EVERYWHERE_WAITS.iter().filter(|wait| **wait == 0).count(), 20);
        assert_eq!(ACCOUNT_WAITS.iter().filter(|wait| **wait == 0).count(), 5);
        assert_eq!(NETWORK_WAITS.iter().filter(|wait| **wait == 0).count(), 20);
    }
}
