//! Testing a destination before an export depends on it (EXP-7).
//!
//! What belongs here: who may test, and which settings are tested. What does not:
//! connecting (`weir-export`, which the server calls with a [`Trial`]).

use serde_json::Map;
use weir_model::OrganizationId;
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::{ExportModel, SentConfig};

use super::{ExportScope, Exports, config, model};
use crate::Result;
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;

/// A destination as a caller sends it.
#[derive(Debug, Clone, Default)]
pub struct SentDestination {
    /// Its kind; none: the kind of the export.
    pub kind: Option<&'static DestinationType>,
    /// Its settings, not yet checked; none: the settings of the export.
    pub config: Option<SentConfig>,
}

/// A destination of an export that is not stored yet.
#[derive(Debug, Clone)]
pub struct NewTrial {
    /// The type of the destination.
    pub kind: &'static DestinationType,
    /// Its settings, not yet checked.
    pub config: SentConfig,
    /// The records that the export would write there.
    pub model: ExportModel,
}

/// A destination that the caller may test.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The organization of the caller.
    pub organization: OrganizationId,
    /// The type of the destination.
    pub kind: &'static DestinationType,
    /// All of its settings, with secrets.
    pub config: SentConfig,
    /// The records that the export would write there.
    pub model: ExportModel,
}

impl Exports {
    /// Checks that the caller may see the result of a test.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope).
    pub fn may_see_tests(&self, within: ExportScope<'_>) -> Result<()> {
        policy::check(within.org, Action::ReadExports)
    }

    /// Which secrets of an export's destination are set: their names. Names of nested
    /// settings are joined with two underscores.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn secrets_set(&self, within: ExportScope<'_>, export: &str) -> Result<Vec<String>> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        let whole = config::open(&self.core.sealer, &row)?;
        Ok(config::changed_secrets(config::kind(&row.kind)?, &Map::new(), &whole))
    }

    /// The destination of an export that is not stored yet.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::SignInAgain`](crate::Error::SignInAgain),
    /// [`Error::Invalid`](crate::Error::Invalid).
    pub fn trial_of_new<'a>(
        &self,
        within: ExportScope<'_>,
        input: impl Into<Unchecked<'a, NewTrial>>,
    ) -> Result<Trial> {
        policy::check(within.org, Action::WriteExports)?;
        let NewTrial { kind, config, model } = input.into().read()?;
        policy::recent_if_person(&within.org.ctx)?;
        let config = SentConfig(config::complete(kind, &config)?);
        Ok(Trial { organization: within.org.organization, kind, config, model })
    }

    /// The destination that an export would have with these settings. Missing secrets
    /// are taken from the stored ones, as long as address and user of the destination
    /// are the same.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::SignInAgain`](crate::Error::SignInAgain),
    /// [`Error::NotFound`](crate::Error::NotFound),
    /// [`Error::Invalid`](crate::Error::Invalid).
    pub async fn trial_of_stored(
        &self,
        within: ExportScope<'_>,
        export: &str,
        sent: impl Into<Unchecked<'_, SentDestination>>,
    ) -> Result<Trial> {
        policy::check(within.org, Action::WriteExports)?;
        let row = self.find(within, export).await?;
        let sent = sent.into().read()?;
        policy::recent_if_person(&within.org.ctx)?;
        let present = config::kind(&row.kind)?;
        let kind = sent.kind.unwrap_or(present);
        let sent = sent.config.unwrap_or_default();
        let whole = if kind == present {
            config::changed(kind, &config::open(&self.core.sealer, &row)?, &sent)?
        } else {
            // A new destination takes no settings from the old one.
            config::complete(kind, &sent)?
        };
        let (organization, model) = (row.organization, model(&row)?);
        Ok(Trial { organization, kind, config: SentConfig(whole), model })
    }
}
