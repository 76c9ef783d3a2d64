//! Trying out a destination before an export depends on it (EXP-7).
//!
//! What belongs here: who may, and which settings are tried. What does not:
//! connecting (`weir-export`, which the server calls with what stands here).

use serde_json::Map;
use weir_model::OrganizationId;
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::{ExportModel, SentConfig};

use super::{Exports, Within, config, model};
use crate::Result;
use crate::policy::{self, Action};

/// A destination as far as a caller says what it is.
#[derive(Debug, Clone, Default)]
pub struct SentDestination {
    /// Its kind; none: that of the export.
    pub kind: Option<&'static DestinationType>,
    /// Its settings, not yet checked; none: those of the export.
    pub config: Option<SentConfig>,
}

/// A destination that the caller may try out.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Whose it is.
    pub organization: OrganizationId,
    /// Its kind.
    pub kind: &'static DestinationType,
    /// All of its settings, secrets included.
    pub config: SentConfig,
    /// What is to be exported there.
    pub model: ExportModel,
}

impl Exports {
    /// Whether the caller may see what a test of a destination does.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope).
    pub fn may_see_tests(&self, within: Within<'_>) -> Result<()> {
        policy::check(within.org, Action::ReadExports)
    }

    /// Which secrets of an export's destination are set: names, those within other
    /// settings joined with two underscores.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn secrets_set(&self, within: Within<'_>, export: &str) -> Result<Vec<String>> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        let whole = config::open(&self.core.sealer, &row)?;
        Ok(config::changed_secrets(config::kind(&row.kind)?, &Map::new(), &whole))
    }

    /// The destination of an export that is not there yet.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::SignInAgain`](crate::Error::SignInAgain),
    /// [`Error::Invalid`](crate::Error::Invalid).
    pub fn trial_of_new(
        &self,
        within: Within<'_>,
        kind: &'static DestinationType,
        config: &SentConfig,
        model: ExportModel,
    ) -> Result<Trial> {
        policy::check(within.org, Action::WriteExports)?;
        policy::recent_if_person(&within.org.ctx)?;
        let config = SentConfig(config::complete(kind, config)?);
        Ok(Trial { organization: within.org.organization, kind, config, model })
    }

    /// The destination that an export would have with these settings. Its secrets
    /// take the place of those that are left out, while address and user of the
    /// destination are the same.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::SignInAgain`](crate::Error::SignInAgain),
    /// [`Error::NotFound`](crate::Error::NotFound),
    /// [`Error::Invalid`](crate::Error::Invalid).
    pub async fn trial_of_stored(
        &self,
        within: Within<'_>,
        export: &str,
        sent: SentDestination,
    ) -> Result<Trial> {
        policy::check(within.org, Action::WriteExports)?;
        policy::recent_if_person(&within.org.ctx)?;
        let row = self.find(within, export).await?;
        let present = config::kind(&row.kind)?;
        let kind = sent.kind.unwrap_or(present);
        let sent = sent.config.unwrap_or_default();
        let whole = if kind == present {
            config::changed(kind, &config::open(&self.core.sealer, &row)?, &sent)?
        } else {
            // Nothing of the old destination gets to the new one.
            config::complete(kind, &sent)?
        };
        let (organization, model) = (row.organization, model(&row)?);
        Ok(Trial { organization, kind, config: SentConfig(whole), model })
    }
}
