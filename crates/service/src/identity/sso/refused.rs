//! What administrators of a domain learn about refused sign-ins (SSO-26, SSO-42).
//!
//! What belongs here: the audit entry. What does not: why a sign-in is refused (`decide`,
//! the protocols).

use weir_model::activity::{AuditAction, Subject};
use weir_model::sso::Connection;
use weir_store::activity as activity_rows;
use weir_store::domains::DomainRow;

use crate::Result;
use crate::activity::{self, About, Changes};
use crate::identity::Identity;

impl Identity {
    /// Records a refused sign-in for the administrators of the domain's organization.
    pub(super) async fn record_refusal(
        &self,
        domain: &DomainRow,
        connection: Connection,
        email: Option<&str>,
        why: &str,
    ) -> Result<()> {
        let about = About {
            subject: Subject::Domain,
            id: domain.id.to_string(),
            name: Some(&domain.domain),
            project: None,
        };
        let name = self.core.connection_name(connection).await?;
        let changes = Changes::none()
            .field("connection", &None, &Some(name))
            .field("email", &None, &email)
            .field("reason", &None, &Some(why));
        let now = self.core.clock.now();
        let action = AuditAction::SignInRefused;
        let entry = activity::own_entry(now, domain.organization, about, action, changes);
        Ok(activity_rows::write(&self.core.store, &[entry]).await?)
    }

    /// As [`Identity::record_refusal`], for a refusal that anyone can cause: only some of
    /// them are recorded. `why` has no text of a visitor.
    pub(super) async fn record_unproved(
        &self,
        domain: &DomainRow,
        connection: Connection,
        why: &str,
    ) -> Result<()> {
        if !self.may_record_refusal(domain.id).await? {
            return Ok(());
        }
        self.record_refusal(domain, connection, None, why).await
    }
}
