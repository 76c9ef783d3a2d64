//! Retention: the fields of its form, and the answer with a line and a table of cohorts.

use leptos::prelude::*;

use super::links::PersonLinks;
use super::question::{EVENTS, NAME_MAX, computed, notes};
use crate::questions::retention::{PERIODS, RetentionForm, TOTAL_MAX, TYPES};
use crate::server_fns::insights::answers::CohortView;
use crate::ui::chart::{NamedLines, Series};
use crate::ui::field::{Field, Select, choices};
use crate::ui::form::FormResult;
use crate::ui::number::{grouped, percent};
use crate::ui::table::{Align, Column, Table, TableRow, cell};

/// Name of the line and the row of all cohorts together.
const ALL: &str = "All cohorts";
/// Classes of cells by the fifth that their share is in, the first one without a share.
const SHADES: [&str; 6] =
    ["shade", "shade shade-1", "shade shade-2", "shade shade-3", "shade shade-4", "shade shade-5"];

/// What the form does not say in its labels.
pub(super) fn hint() -> String {
    format!(
        "The persons who begin in the same period are a cohort. Without an event, all events count. There are at most {TOTAL_MAX} periods, and the current one is the last."
    )
}

/// The fields of the form.
pub(super) fn fields(form: &RetentionForm, result: FormResult) -> AnyView {
    let RetentionForm { target, returning, kind, period, total } = form.clone();
    view! {
        <Field result=result name="target_event" label="Persons begin with" value=target max=NAME_MAX required=false list=EVENTS />
        <Select result=result name="type" label="They begin" choices=choices(&TYPES) value=kind />
        <Field result=result name="returning_event" label="They come back with" value=returning max=NAME_MAX required=false list=EVENTS />
        <Select result=result name="period" label="Period" choices=choices(&PERIODS) value=period />
        <Field result=result name="total" label="Number of periods" value=total kind="number" required=false inputmode="numeric" />
    }
    .into_any()
}

/// The answer to the question of a form, in a project of this zone.
pub(super) fn answer(
    form: &RetentionForm,
    cohorts: Vec<CohortView>,
    zone: &str,
    links: &PersonLinks,
    computed_at: String,
) -> AnyView {
    let all = totals(&cohorts);
    let began = began(&all);
    if began == 0 {
        return view! {
            <div class="empty">
                <p>"No person began in these periods."</p>
            </div>
        }
        .into_any();
    }
    let names: Vec<String> = (0..all.len()).map(|at| form.period_name(at)).collect();
    let tenths = |(part, whole): &(u64, u64)| {
        part.saturating_mul(1000).saturating_add(whole / 2).checked_div(*whole)
    };
    let values = all.iter().map(tenths).collect();
    let texts = all.iter().map(|(part, whole)| percent(*part, *whole)).collect();
    let line = Series::numbered(ALL.to_owned(), 0, false, values, texts);
    let summary = summary(&cohorts, zone);
    let period = form.period.to_lowercase();
    let remarks = [
        form.is_recurring().then(|| "A person can begin in several periods.".to_owned()),
        Some(format!(
            "The last number of each cohort is that of the current {period}, which is not over. All cohorts together leave these numbers out."
        )),
    ];
    view! {
        <NamedLines id="answer" title=form.title() summary=summary names=names.clone() series=vec![line] unit="percent" decimals=1 />
        {table(&names, &all, cohorts, links)}
        {notes(remarks)}
        {computed(computed_at)}
    }
    .into_any()
}

/// Of the cohorts for which each period is over together: the persons who came back in it, and
/// those who began. The first period has all cohorts.
fn totals(cohorts: &[CohortView]) -> Vec<(u64, u64)> {
    let periods = cohorts.iter().map(|cohort| cohort.counts.len()).max().unwrap_or(0);
    let total = |at: usize| {
        let over = cohorts.iter().filter_map(|cohort| {
            // The last period of each cohort is the current one.
            let is_over = at == 0 || at + 1 < cohort.counts.len();
            let (part, whole) = (cohort.counts.get(at)?, cohort.counts.first()?);
            is_over.then_some((*part, *whole))
        });
        over.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    (0..periods).map(total).collect()
}

/// How many persons began in all periods.
fn began(all: &[(u64, u64)]) -> u64 {
    all.first().map_or(0, |(began, _)| *began)
}

/// The first and the last cohort.
fn summary(cohorts: &[CohortView], zone: &str) -> String {
    match (cohorts.first(), cohorts.last()) {
        (Some(first), Some(last)) if cohorts.len() > 1 => {
            let (first, last) = (&first.label, &last.label);
            format!("Persons who began from {first} to {last}, in {zone}.")
        }
        (Some(only), _) => format!("Persons who began in one period: {}, in {zone}.", only.label),
        _ => String::new(),
    }
}

/// The table: a row for each cohort, and a column for each period after its first one.
fn table(
    names: &[String],
    all: &[(u64, u64)],
    cohorts: Vec<CohortView>,
    links: &PersonLinks,
) -> AnyView {
    let after = names.iter().skip(1);
    let after = after.map(|name| Column { align: Align::End, ..Column::named(name.clone()) });
    let columns = [Column::text("Cohort"), Column::number("Persons")].into_iter().chain(after);
    let of_all = all.iter().skip(1).map(|(part, whole)| share(*part, *whole));
    let of_all = row(ALL.to_owned(), cell(grouped(began(all))), of_all);
    let of_cohorts = cohorts.into_iter().enumerate().map(|(cohort, one)| {
        let CohortView { label, counts } = one;
        let began = counts.first().copied().unwrap_or(0);
        let cohort = cohort.to_string();
        let persons = links.count(began, &[("cohort", cohort.as_str())], grouped(began));
        let returned = counts.into_iter().enumerate().skip(1).map(|(after, part)| {
            let after = after.to_string();
            let name = [("cohort", cohort.as_str()), ("return", after.as_str())];
            links.count(part, &name, share(part, began))
        });
        row(label, persons, returned)
    });
    let rows = std::iter::once(of_all).chain(of_cohorts);
    view! {
        <Table caption="Persons who came back" columns=columns.collect() rows=rows.collect() />
    }
    .into_any()
}

/// A row: its persons, and those who came back.
fn row(label: String, began: AnyView, returned: impl Iterator<Item = AnyView>) -> TableRow {
    TableRow::new([cell(label), began].into_iter().chain(returned).collect())
}

/// A part of a whole in percent, and the number itself, with a darker background for a larger
/// part.
fn share(part: u64, whole: u64) -> AnyView {
    if whole == 0 {
        return cell("-");
    }
    let class = shade(part, whole);
    let text = format!("{} ({})", percent(part, whole), grouped(part));
    view! { <span class=class>{text}</span> }.into_any()
}

/// The class of a share. `whole` is above zero.
fn shade(part: u64, whole: u64) -> &'static str {
    let fifth = part.min(whole).saturating_mul(5).div_ceil(whole);
    let fifth = usize::try_from(fifth).unwrap_or(0);
    SHADES.get(fifth).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{CohortView, SHADES, shade, summary, totals};

    fn cohorts() -> [CohortView; 3] {
        [("19 Aug 2026", vec![4, 2, 1]), ("20 Aug 2026", vec![0, 0]), ("21 Aug 2026", vec![3])]
            .map(|(label, counts)| CohortView { label: label.to_owned(), counts })
    }

    #[test]
    fn a_period_has_the_cohorts_for_which_it_is_over() {
        assert_eq!(totals(&cohorts()), [(7, 7), (2, 4), (0, 0)]);
        assert_eq!(totals(&[]), []);
    }

    #[test]
    fn the_summary_names_the_cohorts() {
        let all = cohorts();
        let expected = "Persons who began from 19 Aug 2026 to 21 Aug 2026, in UTC.";
        assert_eq!(summary(&all, "UTC"), expected);
        let expected = "Persons who began in one period: 19 Aug 2026, in UTC.";
        assert_eq!(summary(&all[..1], "UTC"), expected);
    }

    #[test]
    fn a_larger_share_is_darker() {
        for (part, whole, fifth) in [(0, 3, 0), (1, 1000, 1), (1, 5, 1), (3, 5, 3), (9, 9, 5)] {
            assert_eq!(shade(part, whole), SHADES[fifth], "{part} of {whole}");
        }
    }
}
