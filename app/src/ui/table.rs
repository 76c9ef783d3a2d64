//! Tables. On narrow screens each line becomes a card with labels. The ARIA roles are
//! explicit because browsers drop the implicit roles when the style sheet changes the
//! display.

use leptos::prelude::*;

use super::icon::Icon;

/// Up to this number of columns, the table has the roomy layout.
const ROOMY: usize = 7;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// For texts.
    Start,
    /// For numbers.
    End,
}

/// The sort direction of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Ascending.
    Up,
    /// Descending.
    Down,
}

/// Sorting by a column.
pub(crate) struct Sort {
    /// The address of the sorted table, for the link in the heading.
    pub(crate) href: String,
    /// The current direction, if the table is sorted by this column.
    pub(crate) now: Option<Direction>,
}

pub(crate) struct Column {
    /// The heading.
    pub(crate) label: &'static str,
    pub(crate) align: Align,
    /// Sorting by this column, if it is possible.
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

    /// The column with a heading that changes the order.
    pub(crate) fn sorted(self, sort: Sort) -> Self {
        Self { sort: Some(sort), ..self }
    }
}

/// A line. Its first cell is the row header.
pub(crate) struct Line {
    /// Id of the line, for links to it.
    pub(crate) id: Option<String>,
    /// Class of the line.
    pub(crate) class: &'static str,
    /// The cells, one for each column.
    pub(crate) cells: Vec<AnyView>,
}

impl Line {
    /// A line of these cells.
    pub(crate) fn new(cells: Vec<AnyView>) -> Self {
        Self { id: None, class: "", cells }
    }

    /// The line with an id.
    pub(crate) fn id(self, id: String) -> Self {
        Self { id: Some(id), ..self }
    }

    /// The line with a class.
    pub(crate) fn class(self, class: &'static str) -> Self {
        Self { class, ..self }
    }
}

/// A cell of any content.
pub(crate) fn cell(view: impl IntoView + 'static) -> AnyView {
    view.into_any()
}

#[component]
pub(crate) fn Table(
    /// The caption, for screen readers.
    #[prop(into)]
    caption: String,
    columns: Vec<Column>,
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
    let aria_sort = order.map(|order| match order {
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
        <th scope="col" role="columnheader" class=class(align) aria-sort=aria_sort>
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
