//! Requests to the webhooks of alerts (API-68).
//!
//! What belongs here: their content, and when one is tried again. What does not: sending them
//! (the server).

use serde_json::json;
use weir_model::Timestamp;
use weir_store::alerts::{self as rows, AlertRow, WebhookRow};
use weir_store::ids;
use weir_store::insights::InsightRow;
use weir_store::projects::ProjectRow;

use super::Alerts;
use crate::Result;
use crate::mail::{GIVE_UP_AFTER, wait};
use crate::update::update;

/// Requests that are sent at a time.
const CONCURRENT: u32 = 20;

/// A request that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueWebhook {
    /// The address of the webhook.
    pub url: String,
    row: WebhookRow,
}

impl DueWebhook {
    /// The body: a JSON object. `origin` is the address of this instance.
    pub fn body(&self, origin: &str) -> String {
        let mut body: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&self.row.body).unwrap_or_default();
        body.insert("url".to_owned(), json!(format!("{origin}{}", self.row.path)));
        serde_json::Value::Object(body).to_string()
    }
}

/// The request about an alert that begins to fire. Chats show `text`.
pub(super) fn request(
    project: &ProjectRow,
    insight: &InsightRow,
    row: &AlertRow,
    sentence: &str,
    path: String,
    now: Timestamp,
) -> WebhookRow {
    let id = ids::time_ordered(now);
    let name = insight.name.as_ref().or(insight.derived_name.as_ref());
    let body = json!({
        "id": id,
        "text": escaped(&format!("The alert {} fires. {sentence}", row.name)),
        "state": "Firing",
        "alert": {"id": row.id, "name": row.name},
        "insight": {"id": insight.id, "short_id": insight.short_id, "name": name},
        "project": {"id": project.brief.id, "name": project.brief.name},
        "reason": sentence,
        "value": row.checks.first().and_then(|check| check.value),
        "lower": row.lower,
        "upper": row.upper,
        "checked_at": now,
    });
    WebhookRow {
        id,
        project: row.project,
        alert: row.id,
        due_at: now,
        created_at: now,
        tries: 0,
        path,
        body: body.to_string(),
    }
}

/// A text in which chats see no link and no mention: the value of an event can have both.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Alerts {
    /// Requests that are due. Those of alerts that are deleted or have no webhook any more are
    /// removed.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn due_webhooks(&self) -> Result<Vec<DueWebhook>> {
        let store = &self.core.store;
        let mut due = Vec::new();
        for row in rows::due_webhooks(store, self.core.clock.now(), CONCURRENT).await? {
            let alert = rows::find(store, row.project, row.alert).await?;
            match alert.and_then(|alert| alert.webhook) {
                Some(url) => due.push(DueWebhook { url, row }),
                None => rows::forget_webhook(store, &row).await?,
            }
        }
        Ok(due)
    }

    /// Records the result of a request: why it failed, or that it succeeded. A request that
    /// failed is tried again later, for a day.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn webhook_sent(&self, sent: &DueWebhook, failure: Option<String>) -> Result<()> {
        let (store, row) = (&self.core.store, &sent.row);
        let now = self.core.clock.now();
        let next = now.plus_seconds(wait(u32::try_from(row.tries).unwrap_or(u32::MAX)));
        if failure.is_some() && next <= row.created_at.plus_seconds(GIVE_UP_AFTER) {
            rows::retry_webhook(store, row, next).await?;
        } else {
            rows::forget_webhook(store, row).await?;
        }
        if let Some(failure) = &failure {
            tracing::warn!(
                project.id = %row.project, alert.id = %row.alert, failure,
                "the webhook of an alert was not reached"
            );
        }
        let change = |alert: &mut AlertRow| {
            alert.webhook_error.clone_from(&failure);
            Ok(())
        };
        let key = rows::key(row.project, row.alert);
        update(&self.core, key, now, (), change, |_, _| Vec::new()).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn chats_see_no_mention_in_a_text() {
        assert_eq!(escaped("<!channel> & co"), "&lt;!channel&gt; &amp; co");
    }
}
