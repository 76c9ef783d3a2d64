//! Changes of a config, and their audit entries.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use uuid::Uuid;
use weir_model::activity::{AuditAction, Entry};
use weir_model::errors::FieldError;
use weir_model::plugin_configs::settings::Settings;
use weir_model::plugin_configs::{
    ATTACHMENT_MAX, ATTACHMENTS_MAX, DESCRIPTION_MAX, FILE_NAME_MAX, NAME_MAX, PluginConfigPatch,
    SECRET, SentAttachment,
};
use weir_model::{Patch, Timestamp, validate};
use weir_store::ids;
use weir_store::plugin_configs::{AttachmentRow, ConfigRow, Contents};
use weir_store::plugins::PluginRow;

use super::values::{Opened, location_of_attachment, shown_attachment};
use super::{addresses, audit_entry, name};

use crate::activity::{self, Changes};
use crate::ctx::ProjectCtx;
use crate::plugins::catalogue;
use crate::{Core, Result};

/// A changed config that is not stored yet.
pub(super) struct Draft {
    /// The record.
    pub(super) row: ConfigRow,
    /// Its values, with opened secrets.
    pub(super) opened: Opened,
    /// The contents of new attachments.
    pub(super) added: Vec<Contents>,
    /// Attachments to remove.
    pub(super) dropped: Vec<Uuid>,
}

/// Applies a patch to a config with the values `before`; none: it is new.
pub(super) async fn drafted(
    core: &Core,
    plugin: &PluginRow,
    before: Option<&Opened>,
    mut row: ConfigRow,
    patch: PluginConfigPatch,
    now: Timestamp,
) -> Result<Draft> {
    let settings = Settings::of(plugin.config_schema.as_ref());
    let was_enabled = row.enabled;
    row.deleted = patch.deleted.required("deleted")?.unwrap_or(row.deleted);
    let enabled = patch.enabled.required("enabled")?.unwrap_or(row.enabled);
    row.enabled = enabled && !row.deleted;
    row.order = patch.order.required("order")?.unwrap_or(row.order);
    row.on_failure = patch.on_failure.over(row.on_failure);

    let nothing = Map::new();
    let kept =
        before.map(|before| settings.secrets(&before.shown, &before.secrets)).unwrap_or_default();
    let values = match (before, &patch.config) {
        (None, sent) => settings.complete(sent.as_ref().map_or(&nothing, |sent| &sent.0))?,
        (Some(_), Some(sent)) => settings.changed(&kept, &sent.0)?,
        (Some(before), None) => before.all(),
    };
    let (shown, secrets) = settings.apart(&kept, values);
    let opened = Opened { shown, secrets };
    if before != Some(&opened) {
        opened.store(&core.sealer, &mut row).await?;
    }

    let files_before = row.attachments.clone();
    let (mut added, mut dropped) = (Vec::new(), Vec::new());
    for sent in patch.add_attachments {
        let attachment = attachment(&settings, &row, &sent, now)?;
        take(&mut row, &sent.key, &mut dropped);
        let location = location_of_attachment(row.organization, attachment.uid);
        let sealed = core.sealer.seal(&location, &sent.contents).await?;
        added.push(Contents { uid: attachment.uid, sealed });
        row.attachments.push(attachment);
    }
    for key in &patch.remove_attachments {
        take(&mut row, key, &mut dropped);
    }
    // An attachment that the same call adds and removes is never stored.
    added.retain(|one| row.attachments.iter().any(|attachment| attachment.uid == one.uid));
    if !added.is_empty() && row.attachments.len() > ATTACHMENTS_MAX {
        let detail = format!("At most {ATTACHMENTS_MAX} files may be attached. Remove one first.");
        return Err(FieldError::new("config", "invalid_input", detail).into());
    }
    row.attachments.sort_by(|one, other| one.key.cmp(&other.key));

    let is_other = before != Some(&opened) || !added.is_empty() || !dropped.is_empty();
    if row.enabled && (is_other || !was_enabled) {
        let attached: Vec<&str> = row.attachments.iter().map(|one| one.key.as_str()).collect();
        settings.require(&opened.all(), &attached)?;
    }
    if is_other || (row.enabled && !was_enabled) {
        built_in(plugin, &opened, row.enabled)?;
        if addresses::connects(plugin) {
            let is_sent = |key: &str| {
                let value = patch.config.as_ref().and_then(|sent| sent.0.get(key));
                value.is_some_and(|value| !value.is_null() && value != SECRET)
                    || added.iter().any(|one| attachment_of(&row, key) == Some(one.uid))
            };
            let nothing = Opened::default();
            let change = addresses::Move {
                settings: &settings,
                before: before.unwrap_or(&nothing),
                after: &opened,
                files_before: &files_before,
                files_after: &row.attachments,
            };
            change.keeps_secrets_at_home(&is_sent)?;
            addresses::judge(&*core.hosts, &opened.all())?;
        }
    }
    row.name = text("name", patch.name, NAME_MAX, row.name)?;
    row.description = text("description", patch.description, DESCRIPTION_MAX, row.description)?;
    Ok(Draft { row, opened, added, dropped })
}

/// Checks the values of a plugin of the catalogue. A config that is not enabled may
/// still lack some.
fn built_in(plugin: &PluginRow, opened: &Opened, is_enabled: bool) -> Result<(), FieldError> {
    let Some(entry) = catalogue::of_url(plugin.url.as_deref()) else { return Ok(()) };
    let values = opened.all();
    let Err(fault) = entry.check(&values) else { return Ok(()) };
    let value = values.get(fault.key);
    if !is_enabled && value.is_none_or(|value| value.is_null() || value == "") {
        return Ok(());
    }
    Err(FieldError::new(&format!("config__{}", fault.key), "invalid_input", fault.message))
}

/// A text of the config; an empty one is none.
fn text(
    attr: &str,
    patch: Patch<String>,
    most: usize,
    present: Option<String>,
) -> Result<Option<String>> {
    Ok(match patch {
        Patch::Keep => present,
        Patch::Clear => None,
        Patch::Set(text) => {
            Some(validate::optional_text(attr, &text, most)?).filter(|text| !text.is_empty())
        }
    })
}

fn attachment(
    settings: &Settings<'_>,
    row: &ConfigRow,
    sent: &SentAttachment,
    now: Timestamp,
) -> Result<AttachmentRow> {
    let attr = format!("config__{}", sent.key);
    let wrong = |detail: String| FieldError::new(&attr, "invalid_input", detail);
    if !settings.is_attachment(&sent.key) {
        return Err(wrong("The plugin takes no file here.".to_owned()).into());
    }
    if sent.contents.len() > ATTACHMENT_MAX {
        let detail = format!("Ensure this file has no more than {ATTACHMENT_MAX} bytes.");
        return Err(FieldError::new(&attr, "max_length", detail).into());
    }
    Ok(AttachmentRow {
        uid: ids::time_ordered(now),
        key: sent.key.clone(),
        name: validate::optional_text(&attr, &sent.name, FILE_NAME_MAX)?,
        media_type: validate::optional_text(&attr, &sent.media_type, FILE_NAME_MAX)?,
        size: i64::try_from(sent.contents.len()).unwrap_or(i64::MAX),
        // A file that replaces a secret is a secret.
        secret: settings.is_secret(&sent.key)
            || row.attachments.iter().any(|one| one.key == sent.key && one.secret),
    })
}

fn attachment_of(row: &ConfigRow, key: &str) -> Option<Uuid> {
    row.attachments.iter().find(|attachment| attachment.key == key).map(|one| one.uid)
}

/// Removes the attachment of a setting.
fn take(row: &mut ConfigRow, key: &str, dropped: &mut Vec<Uuid>) {
    row.attachments.retain(|attachment| {
        let stays = attachment.key != key;
        if !stays {
            dropped.push(attachment.uid);
        }
        stays
    });
}

/// The audit entries about a new config.
pub(super) fn created(project: &ProjectCtx, plugin: &PluginRow, draft: &Draft) -> Vec<Entry> {
    let row = &draft.row;
    let changes = Changes::none()
        .field("plugin", &None, &Some(row.plugin))
        .field("order", &None, &Some(row.order))
        .field("name", &None, &name(row, plugin))
        .field("description", &None, &row.description)
        .field("deleted", &false, &row.deleted)
        .field("on_failure", &None, &row.on_failure);
    let changes = of_values(changes, plugin, &Opened::default(), &draft.opened);
    let mut entries = vec![audit_entry(project, row, plugin, AuditAction::Created, changes)];
    entries.extend(of_attachments(project, plugin, &[], row));
    if row.enabled {
        let changes = Changes::none().field("enabled", &false, &true);
        entries.push(audit_entry(project, row, plugin, AuditAction::Enabled, changes));
    }
    entries
}

/// The audit entries about a change; none when nothing changed.
pub(super) fn changed(
    project: &ProjectCtx,
    plugin: &PluginRow,
    before: &ConfigRow,
    opened: &Opened,
    draft: &Draft,
) -> Vec<Entry> {
    let row = &draft.row;
    let tell = |action, changes: Changes| {
        (!changes.is_empty()).then(|| audit_entry(project, row, plugin, action, changes))
    };
    let texts = Changes::none()
        .field("name", &before.name, &row.name)
        .field("description", &before.description, &row.description)
        .field("deleted", &before.deleted, &row.deleted)
        .field("on_failure", &before.on_failure, &row.on_failure);
    let values = of_values(Changes::none(), plugin, opened, &draft.opened);
    let order = Changes::none().field("order", &before.order, &row.order);
    let enabled = Changes::none().field("enabled", &before.enabled, &row.enabled);
    let switched = if row.enabled { AuditAction::Enabled } else { AuditAction::Disabled };
    let mut entries: Vec<Entry> = Vec::new();
    entries.extend(tell(AuditAction::Updated, texts));
    entries.extend(tell(AuditAction::ConfigUpdated, values));
    entries.extend(of_attachments(project, plugin, &before.attachments, row));
    entries.extend(tell(AuditAction::OrderChanged, order));
    entries.extend(tell(switched, enabled));
    entries
}

/// The maximum number of values that are recorded one by one.
const MAX_SHOWN_FIELDS: usize = 50;

/// Adds the values that changed; of secrets only that they changed. Many or long values
/// are recorded together, as `config`.
fn of_values(mut changes: Changes, plugin: &PluginRow, before: &Opened, after: &Opened) -> Changes {
    let settings = Settings::of(plugin.config_schema.as_ref());
    let (all_before, all_after) = (before.all(), after.all());
    let keys: BTreeSet<&String> = all_before.keys().chain(all_after.keys()).collect();
    let changed = keys.into_iter().filter(|key| all_before.get(*key) != all_after.get(*key));
    let (hidden, shown): (Vec<&String>, Vec<&String>) = changed.partition(|key| {
        settings.is_secret(key)
            || before.secrets.contains_key(*key)
            || after.secrets.contains_key(*key)
    });
    let part = |all: &Map<String, Value>| -> Value {
        let value = |key: &&String| Some(((*key).clone(), all.get(*key)?.clone()));
        Value::Object(shown.iter().filter_map(value).collect())
    };
    let (was, is) = (part(&all_before), part(&all_after));
    let is_much = activity::is_long(&was) || activity::is_long(&is);
    if shown.len() > MAX_SHOWN_FIELDS || (shown.len() > 1 && is_much) {
        changes = changes.field("config", &was, &is);
    } else {
        for key in shown {
            let field = format!("config__{key}");
            changes = changes.field(&field, &all_before.get(key), &all_after.get(key));
        }
    }
    if hidden.len() > MAX_SHOWN_FIELDS {
        return changes.secret("config");
    }
    for key in hidden {
        let field = format!("config__{key}");
        changes = match (all_before.get(key), all_after.get(key)) {
            (Some(_), Some(_)) => changes.secret(&field),
            (was, is) => {
                let mark = |value: Option<&Value>| value.map(|_| SECRET);
                changes.field(&field, &mark(was), &mark(is))
            }
        };
    }
    changes
}

fn of_attachments(
    project: &ProjectCtx,
    plugin: &PluginRow,
    before: &[AttachmentRow],
    row: &ConfigRow,
) -> Vec<Entry> {
    let settings = Settings::of(plugin.config_schema.as_ref());
    let all = before.iter().chain(&row.attachments);
    let keys: BTreeSet<&str> = all.map(|attachment| attachment.key.as_str()).collect();
    let entry = |key: &str| {
        let of = |list: &[AttachmentRow]| list.iter().find(|one| one.key == key).cloned();
        let (was, is) = (of(before), of(&row.attachments));
        if was == is {
            return None;
        }
        let action = match (&was, &is) {
            (None, _) => AuditAction::AttachmentCreated,
            (Some(_), Some(_)) => AuditAction::AttachmentUpdated,
            (Some(_), None) => AuditAction::AttachmentDeleted,
        };
        let shown = |attachment: Option<AttachmentRow>| {
            attachment.map(|one| shown_attachment(&one, &settings))
        };
        let changes = Changes::none().field(&format!("config__{key}"), &shown(was), &shown(is));
        Some(audit_entry(project, row, plugin, action, changes))
    };
    keys.into_iter().filter_map(entry).collect()
}
