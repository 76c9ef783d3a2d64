//! The backups of the instance: whether the server makes them, and the last one.

use leptos::prelude::*;

use crate::process_facts::{BackupFacts, BackupFailure, BackupSchedule, LastBackupFacts};
use crate::ui::bytes;
use crate::ui::number::duration;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::time::Time;

/// Intervals after which a backup that the server makes is late.
const LATE: u64 = 2;

pub(super) fn draw(found: BackupFacts) -> AnyView {
    let BackupFacts { schedule, last, failure, is_running } = found;
    let tone = tone(schedule.as_ref(), last.as_ref());
    view! {
        <Section id="backups" title="Backups">
            <dl class="facts">
                <dt>"Schedule"</dt><dd>{planned(schedule)}</dd>
                <dt>"Last backup"</dt><dd>{age(last.as_ref(), tone)}</dd>
                {last.map(about)}
                {is_running.then(running)}
                {failure.map(failed)}
            </dl>
        </Section>
    }
    .into_any()
}

/// Without a schedule nothing says how old a backup may be.
fn tone(schedule: Option<&BackupSchedule>, last: Option<&LastBackupFacts>) -> Tone {
    match (schedule, last) {
        (None, _) => Tone::Quiet,
        (Some(_), None) => Tone::Warn,
        (Some(BackupSchedule { every_seconds, .. }), Some(last))
            if last.age_seconds > every_seconds.saturating_mul(LATE) =>
        {
            Tone::Warn
        }
        (Some(_), Some(_)) => Tone::Good,
    }
}

fn planned(schedule: Option<BackupSchedule>) -> AnyView {
    let Some(BackupSchedule { directory, every_seconds, keep }) = schedule else {
        return view! {
            <Status tone=Tone::Quiet label="Not set up" />
            " " <a href="/help/backup#let-weir-make-backups">"Set up backups"</a>
        }
        .into_any();
    };
    let every = duration(every_seconds.saturating_mul(1000));
    let stay = match keep {
        Some(1) => "Only the newest stays.".to_owned(),
        Some(keep) => format!("The newest {keep} stay."),
        None => "All of them stay.".to_owned(),
    };
    view! { "Every " {every} " to " <code class="wrap">{directory}</code> ". " {stay} }.into_any()
}

fn age(last: Option<&LastBackupFacts>, tone: Tone) -> AnyView {
    let Some(last) = last else {
        return view! { <Status tone=tone label="None known" /> }.into_any();
    };
    let label = format!("{} ago", duration(last.age_seconds.saturating_mul(1000)));
    let began_at = last.began_at.clone();
    view! { <Status tone=tone label=label /> " " <Time iso=began_at /> }.into_any()
}

fn about(last: LastBackupFacts) -> impl IntoView {
    let LastBackupFacts { directory, took_ms, bytes, new_bytes, .. } = last;
    view! {
        <dt>"Stored in"</dt><dd><code class="wrap">{directory}</code></dd>
        <dt>"Its size"</dt>
        <dd>{bytes::text(bytes)} ", of which " {bytes::text(new_bytes)} " were new"</dd>
        <dt>"It took"</dt><dd>{duration(took_ms)}</dd>
    }
}

fn running() -> impl IntoView {
    view! { <dt>"Now"</dt><dd><Status tone=Tone::Busy label="Making a backup" /></dd> }
}

fn failed(failure: BackupFailure) -> impl IntoView {
    let BackupFailure { at, reason } = failure;
    view! {
        <dt>"Last attempt"</dt>
        <dd>
            <Status tone=Tone::Bad label="Failed" />
            " " <Time iso=at /> " " {reason} ". "
            <a href="/help/backup#let-weir-make-backups">"What to do"</a>
        </dd>
    }
}

#[cfg(test)]
mod tests {
    use super::{BackupSchedule, LastBackupFacts, Tone, tone};

    #[test]
    fn only_a_schedule_says_how_old_a_backup_may_be() {
        let schedule = BackupSchedule { every_seconds: 3_600, ..BackupSchedule::default() };
        let aged = |age_seconds| LastBackupFacts { age_seconds, ..LastBackupFacts::default() };
        assert_eq!(tone(None, Some(&aged(7_201))), Tone::Quiet);
        assert_eq!(tone(Some(&schedule), None), Tone::Warn);
        assert_eq!(tone(Some(&schedule), Some(&aged(7_200))), Tone::Good);
        assert_eq!(tone(Some(&schedule), Some(&aged(7_201))), Tone::Warn);
    }
}
