//! Tables. Where there is little room each line becomes a card with its labels,
//! so the roles are written out: a style sheet may not take them away.

use leptos::prelude::*;

use super::icon::Icon;

/// Columns that fit beside each other, two of them times; more share what room there
/// is.
const ROOMY: usize = 7;

/// Where the content of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Texts.
    Start,
    /// Numbers.
    End,
}

/// The order of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The least first.
    Up,
    /// The most first.
    Down,
}

/// How a table can be ordered by a column.
pub(crate) struct Sort {
    /// Where the heading leads.
    pub(crate) href: String,
    /// How it is ordered by it now.
    pub(crate) now: Option<Direction>,
}

/// A column.
pub(crate) struct Column {
    /// Its heading.
    pub(crate) label: &'static str,
    /// Where its content stands.
    pub(crate) align: Align,
    /// How the table can be ordered by it.
    pub(crate) sort: Option<Sort>,
}

impl Column {
    /// A column of texts.
    pub(crate) fn text(label: &'static str) -> Self {
        Self { label, align: Align::Start, sort: None }
    }

    /// A column of numbers.
    pub(crate) fn number(label: &'static str) -> Self {
        Self { label, align: Align::End, sort: None }
    }

    /// The same with a heading that changes the order.
    pub(crate) fn sorted(self, sort: Sort) -> Self {
        Self { sort: Some(sort), ..self }
    }
}

/// A line. Its first cell says what it is about.
pub(crate) struct Line {
    /// Id of the line, for links to it.
    pub(crate) id: Option<String>,
    /// Class of the line.
    pub(crate) class: &'static str,
    /// One view for each column.
    pub(crate) cells: Vec<AnyView>,
}

impl Line {
    /// A line of these cells.
    pub(crate) fn new(cells: Vec<AnyView>) -> Self {
        Self { id: None, class: "", cells }
    }

    /// The same with an id.
    pub(crate) fn id(self, id: String) -> Self {
        Self { id: Some(id), ..self }
    }

    /// The same with a class.
    pub(crate) fn class(self, class: &'static str) -> Self {
        Self { class, ..self }
    }
}

/// A cell of any content.
pub(crate) fn cell(view: impl IntoView + 'static) -> AnyView {
    view.into_any()
}

/// A table.
#[component]
pub(crate) fn Table(
    /// What the table shows, for people who do not see it.
    #[prop(into)]
    caption: String,
    /// Its columns.
    columns: Vec<Column>,
    /// Its lines.
    lines: Vec<Line>,
) -> impl IntoView {
    let shape: Vec<(&'static str, Align)> =
        columns.iter().map(|column| (column.label, column.align)).collect();
    let class = if shape.len() > ROOMY { "table" } else { "table table-roomy" };
    let headings = columns.into_iter().map(heading).collect_view();
    let lines = lines.into_iter().map(|line| drawn(line, &shape)).collect_view();
    view! {
        <div class="table-frame">
            <table class=class role="table">
                <caption class="hidden">{caption}</caption>
                <thead role="rowgroup">
                    <tr role="row">{headings}</tr>
                </thead>
                <tbody role="rowgroup">{lines}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Start => "cell",
        Align::End => "cell number",
    }
}

fn heading(column: Column) -> AnyView {
    let Column { label, align, sort } = column;
    let order = sort.as_ref().and_then(|sort| sort.now);
    let told = order.map(|order| match order {
        Direction::Up => "ascending",
        Direction::Down => "descending",
    });
    let content = match sort {
        None => label.into_any(),
        Some(Sort { href, now }) => {
            let icon = now.map(|order| match order {
                Direction::Up => "up",
                Direction::Down => "down",
            });
            view! {
                <a class="sort" href=href>
                    {label}
                    {icon.map(|name| view! { <Icon name=name /> })}
                </a>
            }
            .into_any()
        }
    };
    view! {
        <th scope="col" role="columnheader" class=class(align) aria-sort=told>
            {content}
        </th>
    }
    .into_any()
}

fn drawn(line: Line, shape: &[(&'static str, Align)]) -> AnyView {
    let cells = line
        .cells
        .into_iter()
        .zip(shape)
        .enumerate()
        .map(|(at, (content, (label, align)))| {
            let (label, class) = (*label, class(*align));
            let content = view! { <div class="cell-content">{content}</div> };
            if at == 0 {
                view! { <th scope="row" role="rowheader" class=class>{content}</th> }.into_any()
            } else {
                view! { <td role="cell" class=class data-label=label>{content}</td> }.into_any()
            }
        })
        .collect_view();
    view! {
        <tr role="row" id=line.id class=line.class>
            {cells}
        </tr>
    }
    .into_any()
}
