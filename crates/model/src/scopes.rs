//! Scopes of personal API keys (API-19): `*`, `<object>:read`,
//! `<object>:write`. Router, key form, permission checks and tests read this
//! one list.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! objects {
    ($($variant:ident => $text:literal),+ $(,)?) => {
        /// The kind of object that a scope is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ScopeObject {
            $(#[doc = concat!("`", $text, "`")] $variant),+
        }

        impl ScopeObject {
            /// Every object, in the order of the protocol.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

objects! {
    Action => "action", AccessControl => "access_control", ActivityLog => "activity_log",
    Alert => "alert", Annotation => "annotation", BatchExport => "batch_export",
    BatchImport => "batch_import",
    Cohort => "cohort", Dashboard => "dashboard", DashboardTemplate => "dashboard_template",
    EarlyAccessFeature => "early_access_feature", ErrorTracking => "error_tracking",
    Event => "event", EventDefinition => "event_definition", Experiment => "experiment",
    Export => "export", FeatureFlag => "feature_flag", FileSystem => "file_system",
    FileSystemShortcut => "file_system_shortcut", Group => "group",
    HogFunction => "hog_function", Insight => "insight", Link => "link", Logs => "logs",
    Notebook => "notebook", Organization => "organization",
    OrganizationMember => "organization_member", PersistedFolder => "persisted_folder",
    Person => "person", Plugin => "plugin", Project => "project",
    PropertyDefinition => "property_definition", Query => "query",
    SessionRecording => "session_recording",
    SessionRecordingPlaylist => "session_recording_playlist",
    SharingConfiguration => "sharing_configuration", Subscription => "subscription",
    Survey => "survey", User => "user", WarehouseTable => "warehouse_table",
    WarehouseView => "warehouse_view", Webhook => "webhook",
}

impl ScopeObject {
    /// The objects that Weir checks scopes for; the key form offers them.
    pub const OFFERED: &'static [Self] = &[
        Self::Organization,
        Self::OrganizationMember,
        Self::Project,
        Self::Event,
        Self::Query,
        Self::Person,
        Self::Group,
        Self::EventDefinition,
        Self::PropertyDefinition,
        Self::Insight,
        Self::Dashboard,
        Self::Annotation,
        Self::Alert,
        Self::Subscription,
        Self::BatchExport,
        Self::Plugin,
        Self::User,
        Self::ActivityLog,
    ];
}

/// Read or write. Writing includes reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeAction {
    /// `read`
    Read,
    /// `write`
    Write,
}

/// One scope of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `*`: everything.
    All,
    /// `<object>:<action>`.
    On(ScopeObject, ScopeAction),
}

impl Scope {
    /// The read scope of an object.
    pub const fn read(object: ScopeObject) -> Self {
        Self::On(object, ScopeAction::Read)
    }

    /// The write scope of an object.
    pub const fn write(object: ScopeObject) -> Self {
        Self::On(object, ScopeAction::Write)
    }

    /// Whether this scope satisfies the required scope `wanted`.
    pub fn covers(self, wanted: Self) -> bool {
        match (self, wanted) {
            (Self::All, _) => true,
            (Self::On(..), Self::All) => false,
            (Self::On(held, held_action), Self::On(object, action)) => {
                held == object && held_action >= action
            }
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::On(object, ScopeAction::Read) => write!(f, "{}:read", object.text()),
            Self::On(object, ScopeAction::Write) => write!(f, "{}:write", object.text()),
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::All);
        }
        text.split_once(':')
            .and_then(|(object, action)| {
                let object = ScopeObject::ALL.iter().find(|o| o.text() == object)?;
                match action {
                    "read" => Some(Self::read(*object)),
                    "write" => Some(Self::write(*object)),
                    _ => None,
                }
            })
            .ok_or_else(|| format!("Invalid scope: {text}"))
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, ScopeObject};

    #[test]
    fn covering() {
        let read = Scope::read(ScopeObject::Organization);
        let write = Scope::write(ScopeObject::Organization);
        let other = Scope::read(ScopeObject::OrganizationMember);
        assert!(Scope::All.covers(write) && write.covers(read) && read.covers(read));
        assert!(!read.covers(write) && !write.covers(other) && !write.covers(Scope::All));
    }

    #[test]
    fn every_scope_reads_back() {
        for object in ScopeObject::ALL {
            for scope in [Scope::read(*object), Scope::write(*object)] {
                assert_eq!(scope.to_string().parse(), Ok(scope));
            }
        }
        assert_eq!("*".parse(), Ok(Scope::All));
        for bad in ["", "organization", "organization:*", "nothing:read", "organization:READ"] {
            assert!(bad.parse::<Scope>().is_err(), "{bad}");
        }
    }
}
