//! The text of a mail with answers: for each insight its name, range, chart and numbers.
//!
//! What does not belong here: which numbers there are (`weir-service`), and drawing a chart
//! (`weir-charts`).

use weir_model::reports::{Digest, Report, ReportTable};

use crate::message::Part;
use crate::texts::{Site, one_line};

/// The subject of a mail with answers, and its parts after the greeting.
pub(crate) fn parts(digest: &Digest, is_test: bool, site: &Site) -> (String, Vec<Part>) {
    let (title, project) = (one_line(&digest.title), one_line(&digest.project));
    let mut parts = vec![Part::Text(match is_test {
        false => format!("Here are the numbers of {title} of the project {project}."),
        true => format!(
            "Here are the numbers of {title} of the project {project}. You asked for this mail as \
             a test of the subscription."
        ),
    })];
    for report in &digest.reports {
        parts.extend(of_insight(report, site));
    }
    if digest.hidden > 0 {
        let plural = if digest.hidden == 1 { "insight" } else { "insights" };
        parts.push(Part::Text(format!(
            "The dashboard has {} more {plural}. A mail shows the first {}.",
            digest.hidden,
            digest.reports.len()
        )));
    }
    let url = format!("{}{}", site.origin, digest.path);
    parts.push(Part::Link { label: format!("Open {title}"), url });
    let settings = format!("{}{}", site.origin, digest.settings);
    parts.push(Part::Reference {
        label: "Unsubscribe, or change the times".to_owned(),
        url: settings,
    });
    parts.push(Part::Remark(format!(
        "This mail was sent by the Weir instance at {}, because a member of {project} entered you \
         as a recipient of the subscription.",
        site.origin
    )));
    let subject = if is_test { format!("Test: {title}") } else { title };
    (subject, parts)
}

fn of_insight(report: &Report, site: &Site) -> Vec<Part> {
    let name = one_line(&report.name);
    let mut parts = vec![Part::Heading(name.clone())];
    if !report.range.is_empty() {
        parts.push(Part::Text(one_line(&report.range)));
    }
    parts.extend(report.number.as_deref().map(|number| Part::Number(one_line(number))));
    let chart = report.chart.clone();
    parts.extend(chart.map(|chart| Part::Chart { description: format!("Chart of {name}"), chart }));
    parts.extend(report.table.as_ref().map(|table| Part::Table(lines(table))));
    parts.extend(report.notes.iter().map(|note| Part::Text(one_line(note))));
    let url = format!("{}{}", site.origin, report.path);
    parts.push(Part::Reference { label: format!("Open {name}"), url });
    parts
}

/// A table whose cells are one line each. They can have texts of events, which anybody sends.
fn lines(table: &ReportTable) -> ReportTable {
    let cells = |cells: &Vec<String>| cells.iter().map(|cell| one_line(cell)).collect::<Vec<_>>();
    ReportTable { columns: cells(&table.columns), rows: table.rows.iter().map(cells).collect() }
}
