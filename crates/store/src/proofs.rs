//! Parts of transactions about how a user signs in: the first proof of an address, and the
//! sign-in methods that are left when one of them is removed.

use surrealdb::types::SurrealValue;
use weir_model::organizations::Level;
use weir_model::{OrganizationId, Timestamp};

/// The proof that a user owns the address. It counts once: for a user whose address was
/// never proved.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct FirstProof {
    identity: Option<String>,
    leaves: Vec<OrganizationId>,
    owner_level: i64,
    at: Timestamp,
}

impl FirstProof {
    /// A proof by the identity with this hash, which stays linked. The user leaves these
    /// organizations, of which the user must not be the only owner.
    #[must_use]
    pub fn new(identity: Option<&str>, leaves: Vec<OrganizationId>, at: Timestamp) -> Self {
        let owner_level = i64::from(Level::Owner);
        Self { identity: identity.map(str::to_owned), leaves, owner_level, at }
    }
}

/// Takes the first proof `$proof` of the address of `$user`, if there is one. Any person
/// can have created the user of an address that was never proved, except the staff of the
/// instance ([`UserRow::is_unproved`](crate::users::UserRow::is_unproved)). So everything ends that
/// this person could use: password, sessions, links, known browsers, second factor,
/// passkeys, identities, keys, and the memberships that the proof lists. Writing the
/// user's record makes this conflict with transactions that open a session or add a key.
/// Idempotent.
macro_rules! first_proof {
    () => {
        concat!(
            "LET $is_unproved = (SELECT VALUE is_staff != true
                                 AND (is_email_verified != true OR must_confirm = true)
                             FROM ONLY type::record('user', $user));
         IF $proof != NONE AND $is_unproved = true {
             UPDATE type::record('user', $user) SET
                 password = NONE, pending_email = NONE, second_factor = NONE,
                 is_email_verified = true, must_confirm = false,
                 current_organization = IF $proof.leaves CONTAINS current_organization { NONE }
                                        ELSE { current_organization },
                 current_project = IF $proof.leaves CONTAINS current_organization { NONE }
                                   ELSE { current_project },
                 sessions_made = (sessions_made ?? 0) + 1, updated_at = $proof.at
             RETURN NONE;",
            crate::sessions::end_sessions!(),
            "DELETE account_link:[$user]..=[$user, ..] RETURN NONE;
             DELETE known_browser:[$user]..=[$user, ..] RETURN NONE;
             DELETE type::record('second_factor', $user) RETURN NONE;
             DELETE type::record('passkey_handle', $user) RETURN NONE;",
            crate::passkeys::delete_passkeys!(),
            "FOR $identity_of IN (SELECT VALUE record::id(id)[1]
                               FROM user_identity:[$user]..=[$user, ..]) {
                 IF $identity_of != $proof.identity {
                     DELETE type::record('external_identity', $identity_of) RETURN NONE;
                     DELETE type::record('user_identity', [$user, $identity_of]) RETURN NONE;
                 };
             };
             FOR $key IN (SELECT VALUE record::id(id)[1] FROM user_key:[$user]..=[$user, ..]) {
                 LET $hash_of = (SELECT VALUE hash
                                 FROM ONLY type::record('user_key', [$user, $key]));",
            crate::keys::remove_key!(),
            "};
             FOR $left IN $proof.leaves {
                 UPDATE type::record('organization', $left)
                     SET additions = (additions ?? 0) + 1 RETURN NONE;
                 LET $held = (SELECT * FROM ONLY type::record('membership', [$left, $user]));
                 IF $held != NONE {
                     IF $held.level = $proof.owner_level {
                         LET $owners = (SELECT VALUE is_active FROM (
                             SELECT VALUE type::record('user', record::id(id)[1])
                             FROM membership:[$left]..=[$left, ..]
                             WHERE level = $proof.owner_level AND record::id(id)[1] != $user));
                         IF !($owners CONTAINS true) { THROW 'owner' };
                     };
                     DELETE type::record('org_member', [$left, $held.joined_at, $user])
                         RETURN NONE;
                     DELETE type::record('membership', [$left, $user]) RETURN NONE;
                     DELETE type::record('user_membership', [$user, $left]) RETURN NONE;
                 };
             };
         };"
        )
    };
}
pub(crate) use first_proof;

/// The sign-in methods of a user: a password, passkeys and identities, by their
/// hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, SurrealValue)]
pub struct SignInMethods {
    /// Whether the user can sign in with a password.
    pub password: bool,
    /// Hashes of passkeys.
    pub passkeys: Vec<String>,
    /// Hashes of identities.
    pub identities: Vec<String>,
}

impl SignInMethods {
    /// The methods that are left without the passkey or identity with this hash; `None`: it
    /// is none of the methods, so its removal changes nothing.
    #[must_use]
    pub fn without(mut self, hash: &str) -> Option<Self> {
        let count = |methods: &Self| methods.passkeys.len() + methods.identities.len();
        let before = count(&self);
        self.passkeys.retain(|one| one != hash);
        self.identities.retain(|one| one != hash);
        (count(&self) < before).then_some(self)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.password && self.passkeys.is_empty() && self.identities.is_empty()
    }
}

/// Refuses to continue if `$user` has none of the `$methods` any more. Used by the
/// transactions that remove a method. They write the user's record, so that two of them
/// conflict.
macro_rules! keep_a_method {
    () => {
        "IF $methods != NONE {
             LET $password_left = (SELECT VALUE password FROM ONLY type::record('user', $user));
             LET $passkeys_left = (SELECT VALUE record::id(id)[1]
                                   FROM user_passkey:[$user]..=[$user, ..]);
             LET $identities_left = (SELECT VALUE record::id(id)[1]
                                     FROM user_identity:[$user]..=[$user, ..]);
             IF !($methods.password AND $password_left != NONE)
                 AND array::intersect($passkeys_left, $methods.passkeys) = []
                 AND array::intersect($identities_left, $methods.identities) = [] {
                 THROW 'last'
             };
         };"
    };
}
pub(crate) use keep_a_method;
