//! How pages look for the caller.
//!
//! What belongs here: the valid choices. What does not: the theme (`users`), and how
//! pages follow the choice.

use std::sync::Arc;

use weir_model::errors::FieldError;
use weir_model::preferences::{NumberFormat, Preferences as Chosen, TableRows, Zone};
use weir_model::scopes::{Scope, ScopeObject};
use weir_model::validate;
use weir_store::preferences as rows;

use crate::ctx::Ctx;
use crate::{Core, Result, projects};

/// The service for preferences.
#[derive(Clone)]
pub struct Preferences {
    core: Arc<Core>,
}

impl Preferences {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The choices of the caller, or the defaults.
    ///
    /// # Errors
    /// [`crate::Error::MissingScope`].
    pub async fn get(&self, ctx: &Ctx) -> Result<Chosen> {
        ctx.require(Scope::read(ScopeObject::User))?;
        Ok(rows::get(&self.core.store, ctx.user()).await?.unwrap_or_default())
    }

    /// Stores the choices of the caller.
    ///
    /// # Errors
    /// [`crate::Error::MissingScope`].
    pub async fn set(&self, ctx: &Ctx, chosen: &Chosen) -> Result<()> {
        ctx.require(Scope::write(ScopeObject::User))?;
        Ok(rows::put(&self.core.store, ctx.user(), chosen).await?)
    }
}

/// Preferences from the fields of a form: the zone `browser` or an IANA name, and the words
/// of a number format and of a height of table rows.
///
/// # Errors
/// `invalid_choice` at `zone`, `numbers` or `rows`.
pub fn check(zone: &str, numbers: &str, rows: &str, shortcuts: bool) -> Result<Chosen, FieldError> {
    let zone = match Zone::from_word(zone.trim()) {
        Zone::Named(name) => Zone::Named(projects::timezone(name).map_err(|fault| {
            let detail = "Choose a zone by its IANA name, such as UTC or Europe/Berlin.";
            FieldError::new("zone", &fault.code, detail)
        })?),
        Zone::Browser => Zone::Browser,
    };
    let unknown = || validate::invalid_choice("numbers", &numbers);
    let numbers = NumberFormat::from_word(numbers).ok_or_else(unknown)?;
    let unknown = || validate::invalid_choice("rows", &rows);
    let rows = TableRows::from_word(rows).ok_or_else(unknown)?;
    Ok(Chosen { zone, numbers, rows, shortcuts })
}

#[cfg(test)]
mod tests {
    use weir_model::preferences::{NumberFormat, Preferences as Chosen, TableRows, Zone};

    use super::check;
    use crate::Error;
    use crate::test_support::{ada, key, key_input, outsider, set_up};

    #[test]
    fn what_may_be_chosen() {
        let chosen = check(" Europe/Berlin ", "point", "compact", false).unwrap();
        assert_eq!(chosen.zone, Zone::Named("Europe/Berlin".to_owned()));
        assert_eq!((chosen.numbers, chosen.shortcuts), (NumberFormat::Point, false));
        assert_eq!(chosen.rows, TableRows::Compact);
        assert_eq!(check("browser", "comma", "comfortable", true), Ok(Chosen::default()));
        for (zone, numbers, rows, attr) in [
            ("europe/berlin", "comma", "compact", "zone"),
            ("UTC", "x", "compact", "numbers"),
            ("UTC", "comma", "x", "rows"),
        ] {
            let fault = check(zone, numbers, rows, true).unwrap_err();
            assert_eq!(
                (fault.attr.as_deref(), fault.code.as_str()),
                (Some(attr), "invalid_choice")
            );
        }
    }

    #[tokio::test]
    async fn each_user_has_own_preferences() {
        let services = set_up().await;
        let (ada, eve) = (ada(&services).await, outsider(&services, "eve").await);
        let chosen = check("UTC", "space", "compact", false).unwrap();
        services.preferences.set(&ada, &chosen).await.unwrap();
        assert_eq!(services.preferences.get(&ada).await.unwrap(), chosen);
        assert_eq!(services.preferences.get(&eve).await.unwrap(), Chosen::default());
        services.preferences.set(&ada, &Chosen::default()).await.unwrap();
        assert_eq!(services.preferences.get(&ada).await.unwrap(), Chosen::default());

        let narrow = key_input();
        let scopes = vec!["event:read".parse().unwrap()];
        let narrow = weir_model::keys::PersonalKeyInput { scopes, ..narrow };
        let narrow = key(&services, &ada, narrow).await;
        let refused = services.preferences.get(&narrow).await;
        assert!(matches!(refused, Err(Error::MissingScope(_))));
    }
}
