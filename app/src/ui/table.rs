//! Tables. On narrow screens each row becomes a card with labels. The ARIA roles are
//! explicit because browsers drop the implicit roles when the style sheet changes the
//! display.

use std::borrow::Cow;

use leptos::prelude::*;

use super::icon::Icon;
use super::rest::{PART, Part, first_rows, rest};

/// Up to this number of columns, a table is only as wide as its content.
const SMALL: usize = 3;
/// Up to this number of columns, a table has the roomy layout.
pub(crate) const ROOMY: usize = 6;
/// Up to this number of columns, a table fits next to the navigation. A wider one scrolls in
/// its frame.
const FITTING: usize = 8;
/// The heading of the column with the menus of rows, for screen readers.
pub(crate) const ACTIONS: &str = "Actions";
/// Longer texts can be cut, in characters.
const CUT_ABOVE: usize = 24;

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
    Ascending,
    Descending,
}

/// Sorting by a column.
pub(crate) struct Sort {
    /// The address of the sorted table, for the link in the heading.
    pub(crate) href: String,
    /// The current direction, if the table is sorted by this column.
    pub(crate) current: Option<Direction>,
}

pub(crate) struct Column {
    /// The heading.
    pub(crate) label: Cow<'static, str>,
    pub(crate) align: Align,
    /// Sorting by this column, if it is possible.
    pub(crate) sort: Option<Sort>,
}

impl Column {
    /// A column of texts.
    pub(crate) fn text(label: &'static str) -> Self {
        Self { label: Cow::Borrowed(label), align: Align::Start, sort: None }
    }

    /// A column of texts whose heading is data.
    pub(crate) fn named(label: String) -> Self {
        Self { label: Cow::Owned(label), align: Align::Start, sort: None }
    }

    /// A column of numbers.
    pub(crate) fn number(label: &'static str) -> Self {
        Self { label: Cow::Borrowed(label), align: Align::End, sort: None }
    }

    /// The column with a heading that changes the order.
    pub(crate) fn sorted(self, sort: Sort) -> Self {
        Self { sort: Some(sort), ..self }
    }
}

/// A row. Its first cell is the row header.
pub(crate) struct TableRow {
    /// Id of the row, for links to it.
    pub(crate) id: Option<String>,
    pub(crate) class: &'static str,
    /// The cells, one for each column.
    pub(crate) cells: Vec<AnyView>,
}

impl TableRow {
    pub(crate) fn new(cells: Vec<AnyView>) -> Self {
        Self { id: None, class: "", cells }
    }

    pub(crate) fn id(self, id: String) -> Self {
        Self { id: Some(id), ..self }
    }

    pub(crate) fn class(self, class: &'static str) -> Self {
        Self { class, ..self }
    }
}

/// A cell of any content.
pub(crate) fn cell(view: impl IntoView + 'static) -> AnyView {
    view.into_any()
}

/// A text of any length. A narrow column truncates it; the title has the whole text, and the
/// focus shows it.
pub(crate) fn truncated(text: String) -> AnyView {
    if !can_be_truncated(&text) {
        return text.into_any();
    }
    let title = text.clone();
    view! { <span class="cut" title=title tabindex="0"><span>{text}</span></span> }.into_any()
}

/// A link with a text of any length, see [`truncated`].
pub(crate) fn truncated_link(href: String, text: String) -> AnyView {
    if !can_be_truncated(&text) {
        return view! { <a href=href>{text}</a> }.into_any();
    }
    let title = text.clone();
    view! { <a href=href title=title><span class="cut"><span>{text}</span></span></a> }.into_any()
}

fn can_be_truncated(text: &str) -> bool {
    text.chars().count() > CUT_ABOVE
}

#[component]
pub(crate) fn Table(
    /// The caption, for screen readers.
    #[prop(into)]
    caption: String,
    columns: Vec<Column>,
    rows: Vec<TableRow>,
    /// Whether it scrolls in its frame although it has few columns: together they can be too
    /// wide.
    #[prop(optional)]
    can_scroll: bool,
) -> impl IntoView {
    let labels: Vec<(Cow<'static, str>, Align)> =
        columns.iter().map(|column| (column.label.clone(), column.align)).collect();
    let count = labels.len();
    let class = table_class(count);
    let scrolls = can_scroll || is_wide(count);
    let frame = if scrolls { "table-frame table-frame-wide" } else { "table-frame" };
    let headings = columns.into_iter().map(heading).collect_view();
    let mut rows = rows.into_iter();
    let first = rows_view(rows.by_ref().take(first_rows()), &labels);
    let mut parts: Vec<Part> = Vec::new();
    while rows.len() > 0 {
        let (part, labels) = (rows.by_ref().take(PART).collect::<Vec<_>>(), labels.clone());
        parts.push(Box::new(move || rows_view(part.into_iter(), &labels)));
    }
    view! {
        // The keyboard scrolls what has the focus.
        <div class=frame tabindex=scrolls.then_some("0")>
            <table class=class role="table">
                <caption class="hidden">{caption}</caption>
                <thead role="rowgroup">
                    <tr role="row">{headings}</tr>
                </thead>
                <tbody role="rowgroup">{first}{rest(parts)}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// Whether a table with so many columns scrolls in its frame.
pub(crate) fn is_wide(columns: usize) -> bool {
    columns > FITTING
}

/// The class of a table with so many columns.
pub(crate) fn table_class(columns: usize) -> &'static str {
    if columns <= SMALL {
        "table table-small"
    } else if columns <= ROOMY {
        "table"
    } else {
        "table table-large"
    }
}

/// The class of a cell.
pub(crate) fn class(align: Align) -> &'static str {
    match align {
        Align::Start => "cell",
        Align::End => "cell number",
    }
}

pub(crate) fn heading(column: Column) -> AnyView {
    let Column { label, align, sort } = column;
    let order = sort.as_ref().and_then(|sort| sort.current);
    let aria_sort = order.map(|order| match order {
        Direction::Ascending => "ascending",
        Direction::Descending => "descending",
    });
    let content = match sort {
        // A heading that is data can be the same word.
        None if matches!(label, Cow::Borrowed(ACTIONS)) => {
            view! { <span class="hidden">{label}</span> }.into_any()
        }
        None => label.into_any(),
        Some(Sort { href, current }) => {
            let icon = current.map(|order| match order {
                Direction::Ascending => "up",
                Direction::Descending => "down",
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

fn rows_view(
    rows: impl Iterator<Item = TableRow>,
    labels: &[(Cow<'static, str>, Align)],
) -> AnyView {
    rows.map(|row| row_view(row, labels)).collect_view().into_any()
}

pub(crate) fn row_view(row: TableRow, labels: &[(Cow<'static, str>, Align)]) -> AnyView {
    let cells = row
        .cells
        .into_iter()
        .zip(labels)
        .enumerate()
        .map(|(at, (content, (label, align)))| {
            let (label, class) = (label.clone(), class(*align));
            let content = view! { <div class="cell-content">{content}</div> };
            if at == 0 {
                view! { <th scope="row" role="rowheader" class=class>{content}</th> }.into_any()
            } else {
                view! { <td role="cell" class=class data-label=label>{content}</td> }.into_any()
            }
        })
        .collect_view();
    view! {
        <tr role="row" id=row.id class=row.class>
            {cells}
        </tr>
    }
    .into_any()
}
