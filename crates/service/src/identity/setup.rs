//! The set-up of an empty instance: the first user, organization and project.

use weir_model::activity::AuditAction;
use weir_model::keys::{PersonalKey, PersonalKeyInput};
use weir_model::organizations::OrganizationPatch;
use weir_model::projects::NAME_MAX as PROJECT_NAME_MAX;
use weir_model::{MembershipId, Timestamp, UserId, validate};
use weir_store::instance::{self, NewInstance, SetUp};
use weir_store::organizations::NewOrganization;
use weir_store::projects::{self, ProjectRow};
use weir_store::sessions::Proved;
use weir_store::users::{self as user_rows, UserRow};

use super::passwords::PasswordContext;
use super::{Identity, Peer, SetupInput, SetupOutcome, SetupToken, SetupTokenState, emails};
use crate::activity::Changes;
use crate::ctx::{Actor, Ctx};
use crate::error::{Error, NOT_FOUND};
use crate::{Result, keys, organizations, secrets, users};

/// Seconds for which a set-up token works.
const TOKEN_SECONDS: i64 = 30 * 60;

impl Identity {
    /// Whether any user exists.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn is_set_up(&self) -> Result<bool> {
        Ok(instance::get(&self.core.store).await?.first_user.is_some())
    }

    /// A new token for the set-up. It replaces an earlier one. `None` when a user
    /// exists.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn issue_setup_token(&self) -> Result<Option<SetupToken>> {
        let token = secrets::token()?;
        let expires_at = self.core.clock.now().plus_seconds(TOKEN_SECONDS);
        if !instance::put_token(&self.core.store, &token.hash(), expires_at).await? {
            return Ok(None);
        }
        Ok(Some(SetupToken { token: token.reveal(), expires_at }))
    }

    /// The state of this token now.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn setup_token_state(&self, token: &str) -> Result<SetupTokenState> {
        Ok(match self.setup_token_end(token).await? {
            None => SetupTokenState::Unknown,
            Some(end) if end <= self.core.clock.now() => SetupTokenState::Expired,
            Some(_) => SetupTokenState::Valid,
        })
    }

    /// A token that was issued before this process started, while it works: a link that
    /// was handed out still works after a restart.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn resume_setup_token(&self, token: &str) -> Result<Option<SetupToken>> {
        let end = self.setup_token_end(token).await?;
        let valid = end.filter(|end| *end > self.core.clock.now());
        Ok(valid.map(|expires_at| SetupToken { token: token.to_owned(), expires_at }))
    }

    /// When the token that was issued last expires, if it is this one and the instance
    /// is not set up.
    async fn setup_token_end(&self, token: &str) -> Result<Option<Timestamp>> {
        let row = instance::get(&self.core.store).await?;
        let hash = secrets::sha256_hex(token);
        Ok(match row.token {
            Some((stored, end)) if row.first_user.is_none() && stored == hash => Some(end),
            Some(_) | None => None,
        })
    }

    /// Creates the first user, organization and project in one transaction. Without a
    /// token the caller runs on the host, and no session is opened.
    ///
    /// # Errors
    /// [`Error::Invalid`] at the first field that is wrong; [`Error::NotFound`] when
    /// the token is not valid or a user exists, also when a concurrent call was first.
    pub async fn setup(
        &self,
        token: Option<&str>,
        input: SetupInput,
        peer: &Peer,
    ) -> Result<SetupOutcome> {
        let (mut outcome, _) = self.create_instance(token, input, None).await?;
        if token.is_some() {
            let user = user_rows::get(&self.core.store, outcome.user.uuid).await?;
            let user = user.ok_or(Error::NotFound(NOT_FOUND))?;
            outcome.session =
                Some(self.open_session(user.id, peer, None, Proved::of(&user)).await?);
        }
        Ok(outcome)
    }

    /// Like [`Identity::setup`], for a caller on the host (`weir setup`), with a key in
    /// the same transaction. Only this answer contains the value of the key.
    ///
    /// # Errors
    /// As [`Identity::setup`].
    pub async fn setup_with_key(
        &self,
        input: SetupInput,
        key: PersonalKeyInput,
    ) -> Result<(SetupOutcome, PersonalKey)> {
        let (outcome, key) = self.create_instance(None, input, Some(key)).await?;
        let missing = || Error::Internal("the set-up made no key".to_owned());
        Ok((outcome, key.ok_or_else(missing)?))
    }

    async fn create_instance(
        &self,
        token: Option<&str>,
        input: SetupInput,
        key: Option<PersonalKeyInput>,
    ) -> Result<(SetupOutcome, Option<PersonalKey>)> {
        self.refuse_setup(token).await?;
        let first_name = validate::text("first_name", &input.first_name, users::NAME_MAX)?;
        let email = validate::email("email", &input.email)?;
        let organization_names = [input.organization.as_str()];
        let about = PasswordContext {
            email: &email,
            organizations: &organization_names,
            first_name: &first_name,
        };
        let password = self.hasher.queue()?.choose(&input.password, &about).await?;
        let organization = OrganizationPatch::named("organization", &input.organization)?;
        let project_name = validate::text("project", &input.project, PROJECT_NAME_MAX)?;
        let hash = self.hasher.queue()?.hash(password).await?;

        let store = &self.core.store;
        let now = self.core.clock.now();
        let user = UserRow {
            distinct_id: secrets::name()?,
            first_name,
            email,
            password: Some(hash),
            is_staff: true,
            ..UserRow::new(
                UserId(weir_store::ids::time_ordered(now)),
                user_rows::next_number(store).await?,
                now,
            )
        };
        let organization = organizations::new_row(organization, now)?;
        let project = ProjectRow::new(
            projects::next_number(store).await?,
            organization.id,
            project_name,
            secrets::project_key()?,
            now,
        );
        let key = key.map(|key| keys::new_row(key, &user, now)).transpose()?;
        let (key, secret) = key.unzip();
        let actor = Actor::Session { user: user.id, session: String::new(), signed_in_at: now };
        let ctx = Ctx { actor, now, request_id: String::new() };
        let changes = Changes::none().field("name", &None, &Some(&organization.name));
        let created =
            organizations::audit_entry(&ctx, &organization, AuditAction::Created, changes);
        let new = NewInstance {
            activities: vec![created],
            key,
            email_key: emails::normalise(&user.email),
            token: token.map(secrets::sha256_hex),
            organization: NewOrganization {
                row: organization,
                owner: user.id,
                membership: MembershipId(weir_store::ids::time_ordered(now)),
                project,
            },
            user,
        };
        match instance::set_up(store, &new, now).await? {
            SetUp::Refused => return Err(Error::NotFound(NOT_FOUND)),
            SetUp::Done => tracing::info!(user.id = %new.user.id, "the instance is set up"),
        }
        let project = new.organization.project.brief;
        let outcome = SetupOutcome {
            user: users::shown(&new.user),
            organization: project.organization,
            project: project.id,
            project_api_key: project.api_token,
            session: None,
        };
        let key = new.key.zip(secret);
        let key = key.map(|(row, secret)| PersonalKey { value: Some(secret.reveal()), ..row.key });
        Ok((outcome, key))
    }

    /// Refuses early, before a hash is computed, a call that the transaction would
    /// refuse.
    async fn refuse_setup(&self, token: Option<&str>) -> Result<()> {
        let allowed = match token {
            Some(token) => self.setup_token_state(token).await? == SetupTokenState::Valid,
            None => !self.is_set_up().await?,
        };
        if allowed { Ok(()) } else { Err(Error::NotFound(NOT_FOUND)) }
    }
}
