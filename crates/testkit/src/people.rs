//! The users of a test and their keys.

use uuid::Uuid;
use weir_model::keys::PersonalKeyInput;
use weir_model::organizations::Level;
use weir_model::{MembershipId, OrganizationId, ProjectId, UserId};
use weir_server::App;
use weir_service::{Actor, Ctx};
use weir_store::users::{self, UserRow};
use weir_store::{Store, organizations};

use crate::caller::Caller;

/// A user of the instance.
pub struct Person {
    app: App,
    anonymous: Caller,
    user: UserId,
}

impl Person {
    pub(crate) fn new(app: App, anonymous: Caller, user: UserId) -> Self {
        Self { app, anonymous, user }
    }

    /// The user's id.
    pub fn id(&self) -> UserId {
        self.user
    }

    /// The context of a user who signed in just now.
    pub fn ctx(&self) -> Ctx {
        let now = self.app.services.clock.now();
        let session = "test".to_owned();
        let actor = Actor::Session { user: self.user, session, signed_in_at: now };
        Ctx { actor, now, request_id: "test".to_owned() }
    }

    /// A caller with a new key of this user.
    pub async fn key(&self, scopes: &[&str]) -> Caller {
        self.limited_key(scopes, &[], &[]).await
    }

    /// A caller with a new key that is limited to organizations or projects.
    pub async fn limited_key(
        &self,
        scopes: &[&str],
        organizations: &[OrganizationId],
        projects: &[ProjectId],
    ) -> Caller {
        let input = PersonalKeyInput {
            label: "test".to_owned(),
            scopes: scopes.iter().map(|scope| scope.parse().unwrap()).collect(),
            scoped_teams: projects.to_vec(),
            scoped_organizations: organizations.to_vec(),
            expires_at: None,
        };
        let key = self.app.services.keys.create(&self.ctx(), input).await.unwrap();
        self.anonymous.with_key(&key.value.unwrap())
    }
}

pub(crate) async fn create(store: &Store, app: &App, name: &str, address: &str) -> UserId {
    let now = app.services.clock.now();
    let row = UserRow {
        distinct_id: name.to_owned(),
        first_name: name.to_owned(),
        email: address.to_owned(),
        ..UserRow::new(UserId(Uuid::new_v4()), users::next_number(store).await.unwrap(), now)
    };
    assert_eq!(users::create(store, &row, &row.email).await.unwrap(), users::Created::Yes);
    row.id
}

pub(crate) async fn join(
    store: &Store,
    organization: OrganizationId,
    person: &Person,
    level: Level,
) {
    let membership = MembershipId(Uuid::new_v4());
    let now = person.app.services.clock.now();
    organizations::add_member(store, organization, person.user, membership, level, now)
        .await
        .unwrap();
}
