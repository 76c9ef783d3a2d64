//! CSV files of lists: lines, bounds, and the answer.
//!
//! A file is written while its list is read, a page at a time, so that a long file takes
//! little memory. A file that does not have all rows says so in its last line.

use std::io;
use std::time::Instant;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use http::{HeaderValue, header};
use weir_model::pagination::{Page, Paged};
use weir_service::Result as ServiceResult;

use crate::http::error::ApiResult;
use crate::http::sending;
use crate::limits::{SendLimits, StreamPermit};

/// The maximum number of rows of one file, unless the list has another.
const ROWS: usize = 100_000;
/// The maximum size of one file, in bytes.
const BYTES: usize = 128 << 20;
const ROWS_PER_READ: u64 = 100;
/// The last line of a file that has the maximum size.
const TOO_LARGE: &str = "This file is incomplete: it has at most 128 MiB.";
/// The last line of a file that took too long.
const TOO_LATE: &str = "This file is incomplete: reading the list took too long.";

/// A column: its name, and its cell in a row.
pub(super) type Column<R> = (&'static str, fn(&R) -> String);

/// A list as lines of a file.
pub(super) struct CsvList {
    name: String,
    most: usize,
    head: String,
    pages: BoxStream<'static, ServiceResult<Vec<String>>>,
}

impl CsvList {
    /// The list with these columns. `of` is the name of its project or organization.
    pub(super) fn new<R: 'static>(
        list: &str,
        of: &str,
        columns: &'static [Column<R>],
        pages: impl Stream<Item = ServiceResult<Vec<R>>> + Send + 'static,
    ) -> Self {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let row_line = |row: &R| {
            let cells: Vec<String> = columns.iter().map(|(_, cell)| cell(row)).collect();
            line(&cells)
        };
        let pages = pages.map_ok(move |rows| rows.iter().map(row_line).collect());
        let name = format!("{list}-{}", file_word(of)).trim_end_matches('-').to_owned();
        Self { name, most: ROWS, head: line(&names), pages: pages.boxed() }
    }

    /// The list with another maximum number of rows, in thousands.
    pub(super) fn at_most_thousands(self, thousands: usize) -> Self {
        Self { most: thousands * 1_000, ..self }
    }

    /// The answer with the file. `permit` is held until the end.
    ///
    /// # Errors
    /// When the first page cannot be read: the caller may not see the list, for example.
    pub(super) async fn answer(
        self,
        permit: StreamPermit,
        limits: SendLimits,
    ) -> ApiResult<Response> {
        let Self { name, most, head, mut pages } = self;
        let first = pages.next().await.transpose()?;
        let walk = Walk {
            pages: stream::iter(first.map(Ok)).chain(pages).boxed(),
            head,
            most,
            rows_left: most,
            bytes_left: BYTES,
            // The last line is sent before the time is over.
            until: Instant::now().checked_add(limits.whole.saturating_sub(limits.whole / 10)),
            is_over: false,
        };
        let lines = stream::unfold(walk, |mut walk| async move {
            let lines = walk.next().await?;
            Some((lines, walk))
        });
        let mut response = sending::body(lines, permit, limits).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
        let disposition = format!("attachment; filename=\"{name}.csv\"");
        let disposition = HeaderValue::from_str(&disposition)
            .unwrap_or(HeaderValue::from_static("attachment; filename=\"list.csv\""));
        headers.insert(header::CONTENT_DISPOSITION, disposition);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }
}

/// The pages of a list that is read from one cursor to the next. `read` returns a page and the
/// cursor behind it, `None` after the last page.
pub(super) fn by_cursor<C, R, F>(
    first: C,
    read: impl Fn(C) -> F,
) -> impl Stream<Item = ServiceResult<Vec<R>>>
where
    F: Future<Output = ServiceResult<(Vec<R>, Option<C>)>>,
{
    stream::try_unfold(Some(first), move |cursor| {
        let reading = cursor.map(&read);
        async move {
            match reading {
                Some(reading) => Ok(Some(reading.await?)),
                None => Ok(None),
            }
        }
    })
}

/// The pages of a list that is read by limit and offset.
pub(super) fn by_offset<R, F>(read: impl Fn(Page) -> F) -> impl Stream<Item = ServiceResult<Vec<R>>>
where
    F: Future<Output = ServiceResult<Paged<R>>>,
{
    by_cursor(0, move |offset| {
        let reading = read(Page { limit: ROWS_PER_READ, offset });
        async move {
            let found = reading.await?;
            let behind = offset + ROWS_PER_READ;
            Ok((found.results, (behind < found.count).then_some(behind)))
        }
    })
}

/// A list that is read with one call, as one page.
pub(super) fn one_page<R>(rows: Vec<R>) -> impl Stream<Item = ServiceResult<Vec<R>>> {
    stream::iter([Ok(rows)])
}

/// A value, empty if there is none.
pub(super) fn optional(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

/// One file that is being written.
struct Walk {
    pages: BoxStream<'static, ServiceResult<Vec<String>>>,
    /// The line with the names of the columns, until it is written.
    head: String,
    most: usize,
    rows_left: usize,
    bytes_left: usize,
    until: Option<Instant>,
    is_over: bool,
}

impl Walk {
    /// The lines of the next page that has some.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let mut text = std::mem::take(&mut self.head);
        while !self.is_over {
            if self.until.is_some_and(|until| Instant::now() >= until) {
                self.end(&mut text, TOO_LATE);
                break;
            }
            match self.pages.next().await {
                Some(Ok(lines)) => self.add(&mut text, lines),
                Some(Err(error)) => {
                    tracing::error!(%error, "a CSV file was cut short");
                    self.is_over = true;
                    return Some(Err(io::Error::other("the list cannot be read")));
                }
                None => self.is_over = true,
            }
            if !text.is_empty() {
                break;
            }
        }
        (!text.is_empty()).then(|| Ok(Bytes::from(text)))
    }

    /// Adds lines as long as there is room.
    fn add(&mut self, text: &mut String, lines: Vec<String>) {
        for line in lines {
            if self.rows_left == 0 {
                let thousands = self.most / 1_000;
                let why = format!("This file is incomplete: it has at most {thousands},000 rows.");
                self.end(text, &why);
                return;
            }
            if line.len() > self.bytes_left {
                self.end(text, TOO_LARGE);
                return;
            }
            self.rows_left -= 1;
            self.bytes_left -= line.len();
            text.push_str(&line);
        }
    }

    /// Ends the file before its rows are complete.
    fn end(&mut self, text: &mut String, why: &str) {
        self.is_over = true;
        text.push_str(&line(&[why]));
    }
}

/// A line with these cells.
pub(super) fn line(cells: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for (at, content) in cells.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        cell(&mut text, content.as_ref());
    }
    text.push_str("\r\n");
    text
}

/// A cell in quotation marks. Spreadsheets evaluate some beginnings as formulas, and
/// names are input. Such contents get an apostrophe before them.
pub(super) fn cell(text: &mut String, content: &str) {
    text.push('"');
    if content.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        text.push('\'');
    }
    for c in content.chars() {
        if c == '"' {
            text.push('"');
        }
        text.push(c);
    }
    text.push('"');
}

/// A name as part of the name of a file: short, in ASCII.
pub(super) fn file_word(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use futures::{StreamExt as _, TryStreamExt as _, stream};
    use weir_model::pagination::Page;

    use super::{Column, CsvList, TOO_LARGE, TOO_LATE, Walk, by_offset, file_word, line};

    #[test]
    fn cells_are_no_formulas() {
        for (content, expected) in [
            ("", "\"\""),
            ("a \"b\", c\nd", "\"a \"\"b\"\", c\nd\""),
            ("=1+1", "\"'=1+1\""),
            ("+49 30", "\"'+49 30\""),
            ("-2", "\"'-2\""),
            ("@cmd", "\"'@cmd\""),
            ("\t=1", "\"'\t=1\""),
            ("a=1", "\"a=1\""),
        ] {
            assert_eq!(line(&[content, "b"]), format!("{expected},\"b\"\r\n"));
        }
    }

    #[test]
    fn names_of_files_are_ascii() {
        assert_eq!(file_word("Otter's Tea / EU"), "otter-s-tea-eu");
        assert_eq!(file_word("\"\r\n茶"), "");
        assert_eq!(file_word(&"a".repeat(99)).len(), 40);
        let columns: &[Column<String>] = &[("name", String::clone)];
        let list = |of| CsvList::new("members", of, columns, stream::iter([])).name;
        assert_eq!(
            (list("Otter Tea").as_str(), list("茶").as_str()),
            ("members-otter-tea", "members")
        );
    }

    fn walk(pages: &'static [&'static [&'static str]]) -> Walk {
        let page = |page: &&[&str]| Ok(page.iter().map(|text| line(&[text])).collect());
        Walk {
            pages: stream::iter(pages.iter().map(page)).boxed(),
            head: line(&["name"]),
            most: 2_000,
            rows_left: 3,
            bytes_left: 1_000,
            until: Instant::now().checked_add(Duration::from_secs(600)),
            is_over: false,
        }
    }

    async fn written(mut walk: Walk) -> String {
        let mut file = String::new();
        while let Some(part) = walk.next().await {
            file.push_str(std::str::from_utf8(&part.unwrap()).unwrap());
        }
        file.replace("\r\n", "|").replace('"', "")
    }

    #[tokio::test]
    async fn a_file_says_that_it_is_incomplete() {
        const FOUR: &[&[&str]] = &[&["a", "b"], &[], &["c", "d"]];
        assert_eq!(written(walk(&[])).await, "name|");
        assert_eq!(written(walk(&[&["a", "b"], &["c"]])).await, "name|a|b|c|");
        let rows = "name|a|b|c|This file is incomplete: it has at most 2,000 rows.|";
        assert_eq!(written(walk(FOUR)).await, rows);
        let large = Walk { bytes_left: 12, ..walk(FOUR) };
        assert_eq!(written(large).await, format!("name|a|b|{TOO_LARGE}|"));
        let late = Walk { until: Some(Instant::now()), ..walk(FOUR) };
        assert_eq!(written(late).await, format!("name|{TOO_LATE}|"));
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end() {
        let read = |page: Page| async move { Ok(page.of((0..250).collect())) };
        let pages: Vec<Vec<u32>> = by_offset(read).try_collect().await.unwrap();
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        assert_eq!(pages.concat().last(), Some(&249));
    }
}
