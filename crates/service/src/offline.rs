//! Services for commands that change the store while the server is stopped.
//!
//! What belongs here: dependencies that refuse what such a command never does, which is
//! asking name servers, connecting to hosts, signing in through providers, running
//! plugins and opening secrets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;
use weir_model::errors::FieldError;
use weir_model::limits::LimitSet;
use weir_model::plugin_configs::DryStep;
use weir_model::plugins::address::Address;
use weir_model::{OrganizationId, PersonId, ProjectId, UserId};
use weir_store::Store;

use crate::domains::{LookupError, Pending, TxtLookup};
use crate::exports::HostPolicy;
use crate::identity::HashParameters;
use crate::limits::Limiter;
use crate::mail::Mailing;
use crate::persons::Applying;
use crate::plugins::code::{Busy, CodeFault, DryTrial, Fetched, Inspected, PluginCode};
use crate::questions::{self, Asker, Ended, QuestionHost, QuestionPermit};
use crate::sealing::Sealer;
use crate::sso::{
    Asking, Begun, Examined, Protocols, Provider, Refusal, SamlIdentityProvider, SamlKey,
    SamlServiceProvider, UsedAssertions, Verified,
};
use crate::{Clock, Core, Dependencies, Services};

impl Services {
    /// Services for a command that runs while the server is stopped. `mailing` says
    /// whether the server will send the mails that the command stores. To be called in a
    /// runtime.
    pub fn offline(store: Store, mailing: Mailing) -> Self {
        let sealer = Sealer::without_key(store.clone());
        let hosts = Arc::new(Offline);
        let clock = Clock::default();
        // Such a command takes no events, and adds no members or exports.
        let limiter = Arc::new(Limiter::new(LimitSet::default(), clock.clone()));
        let core = Core {
            store,
            clock,
            mailing,
            sealer,
            hosts,
            providers: Vec::new(),
            offers_organizations: false,
            limiter,
        };
        let dependencies = Dependencies {
            hashing: HashParameters::default(),
            lookup: Arc::new(Offline),
            plugin_code: Arc::new(Offline),
            protocols: Arc::new(Offline),
            applying: Arc::new(Offline),
            questions: questions::Settings {
                threads: Handle::current(),
                host: Arc::new(Offline),
                memory: 0,
                kept: 0,
                time: Duration::ZERO,
            },
        };
        Self::new(Arc::new(core), dependencies)
    }
}

/// The dependencies of an offline command.
pub(crate) struct Offline;

fn unreachable() -> CodeFault {
    CodeFault::Unreachable("Plugins do not run here.".to_owned())
}

impl TxtLookup for Offline {
    fn txt<'a>(&'a self, _name: &'a str) -> Pending<'a> {
        Box::pin(async { Err(LookupError("there are none to ask".to_owned())) })
    }
}

#[async_trait]
impl Applying for Offline {
    async fn applied(&self) {}

    fn forget_persons(&self, _: ProjectId, _: &[PersonId]) {}
}

/// No question is asked.
#[async_trait]
impl QuestionHost for Offline {
    async fn permit(&self, _: Asker) -> Option<QuestionPermit> {
        None
    }

    fn lag_bytes(&self) -> u64 {
        0
    }

    fn ended(&self, _: Ended) {}
}

#[async_trait]
impl Protocols for Offline {
    fn check(&self, _: &Provider) -> Result<(), FieldError> {
        Ok(())
    }

    async fn begin(&self, _: &Provider, _: &str, _: Asking) -> Result<Begun, Refusal> {
        Err(no_sign_in())
    }

    async fn finish(&self, _: &Provider, _: &str, _: &str) -> Result<Verified, Refusal> {
        Err(no_sign_in())
    }

    fn saml_metadata(&self, _: &SamlServiceProvider, _: Option<&str>) -> String {
        String::new()
    }

    fn new_saml_key(&self) -> Result<SamlKey, Refusal> {
        Err(no_sign_in())
    }

    fn begin_saml(
        &self,
        _: &SamlIdentityProvider,
        _: &SamlServiceProvider,
        _: &str,
        _: Option<&SamlKey>,
        _: Asking,
    ) -> Result<Begun, Refusal> {
        Err(no_sign_in())
    }

    async fn finish_saml(
        &self,
        _: &SamlIdentityProvider,
        _: &SamlServiceProvider,
        _: &str,
        _: &str,
        _: &dyn UsedAssertions,
    ) -> Examined {
        Examined {
            outcome: Err(no_sign_in()),
            is_signed: false,
            checks: Vec::new(),
            attributes: Vec::new(),
        }
    }
}

fn no_sign_in() -> Refusal {
    Refusal("Users do not sign in here.".to_owned())
}

impl HostPolicy for Offline {
    fn refuses(&self, _host: &str) -> bool {
        true
    }
}

#[async_trait]
impl PluginCode for Offline {
    async fn inspect(
        &self,
        _: UserId,
        _: OrganizationId,
        _: &BTreeMap<String, String>,
    ) -> Result<Inspected, Busy> {
        Ok(Inspected::default())
    }

    async fn fetch(&self, _: &Address, _: Option<&str>) -> Result<Fetched, CodeFault> {
        Err(unreachable())
    }

    async fn latest(&self, _: &Address, _: Option<&str>) -> Result<Option<String>, CodeFault> {
        Err(unreachable())
    }

    async fn extract(&self, _: Bytes) -> Result<Fetched, CodeFault> {
        Err(unreachable())
    }

    async fn dry_run(&self, _: DryTrial) -> Result<Vec<DryStep>, Busy> {
        Ok(Vec::new())
    }
}
