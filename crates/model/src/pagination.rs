//! Limit and offset, and the envelope of lists (API-12).

use serde::{Deserialize, Serialize};

/// Results per page if the caller sets no limit.
pub const DEFAULT_LIMIT: u64 = 100;
/// Largest page size; a larger limit is reduced silently.
pub const MAX_LIMIT: u64 = 1000;

/// Limit and offset of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Maximum number of results, 1 to [`MAX_LIMIT`] for most lists.
    pub limit: u64,
    /// Number of results to skip.
    pub offset: u64,
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT, offset: 0 }
    }
}

impl Page {
    /// Parses the query parameters leniently: invalid values are ignored. `usual` and `most`
    /// are the default and the maximum size.
    pub fn within(usual: u64, most: u64, limit: Option<&str>, offset: Option<&str>) -> Self {
        let number = |text: Option<&str>| text.and_then(|t| t.trim().parse::<u64>().ok());
        Self {
            limit: number(limit).filter(|l| *l > 0).map_or(usual.min(most), |l| l.min(most)),
            offset: number(offset).unwrap_or(0).min(1_000_000_000),
        }
    }

    /// The page as a part of a complete list.
    pub fn slice<T>(self, all: Vec<T>) -> Vec<T> {
        let skip = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.limit).unwrap_or(usize::MAX);
        all.into_iter().skip(skip).take(take).collect()
    }

    /// The same, with the total number of results.
    pub fn of<T>(self, all: Vec<T>) -> Paged<T> {
        Paged { count: all.len() as u64, results: self.slice(all) }
    }
}

/// A page of results with the total number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paged<T> {
    /// Total number of results.
    pub count: u64,
    /// The results of the page.
    pub results: Vec<T>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// Total number of results.
    pub count: u64,
    /// Link to the next page.
    pub next: Option<String>,
    /// Link to the previous page.
    pub previous: Option<String>,
    /// The resources of this page.
    pub results: Vec<T>,
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_LIMIT, MAX_LIMIT, Page};

    #[test]
    fn reads_leniently() {
        let cases = [
            ((None, None), (100, 0)),
            ((Some("0"), Some("-1")), (100, 0)),
            ((Some("-5"), Some("x")), (100, 0)),
            ((Some("abc"), Some("")), (100, 0)),
            ((Some("5000"), Some("7")), (1000, 7)),
            ((Some("2"), Some("2")), (2, 2)),
        ];
        for ((limit, offset), (l, o)) in cases {
            let page = Page::within(DEFAULT_LIMIT, MAX_LIMIT, limit, offset);
            assert_eq!(page, Page { limit: l, offset: o });
        }
    }
}
