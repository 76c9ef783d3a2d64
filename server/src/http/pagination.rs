//! Pages of lists in HTTP: reading `limit` and `offset`, and the links of the envelope
//! (API-12, API-13).

use std::borrow::Cow;
use std::convert::Infallible;
use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use http::request::Parts;
use weir_model::pagination::{DEFAULT_LIMIT, Envelope, MAX_LIMIT, Page, Paged};

use crate::http::peer::{Origin, RequestedUri};

/// A query parameter of a list, in addition to `limit` and `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Type of its values.
    pub kind: ParameterKind,
    /// Description for the API document.
    pub description: &'static str,
}

/// The type of a query parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// A required text.
    RequiredText,
    /// A UUID.
    Uuid,
    /// A time or date.
    Time,
    /// A whole number from 1.
    Number,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these words; required.
    RequiredOneOf(&'static [&'static str]),
    /// A word that asks for another form of the answer. The API document omits the
    /// parameter, because the schema of an answer is that of the usual form: clients
    /// generated from both forms would have to check the form of each value.
    OtherForm,
}

impl ParameterKind {
    /// Whether the parameter is required.
    pub const fn is_required(self) -> bool {
        matches!(self, Self::RequiredText | Self::RequiredOneOf(_))
    }

    /// Whether the API document has the parameter.
    pub const fn is_documented(self) -> bool {
        !matches!(self, Self::OtherForm)
    }
}

/// The query parameters of an operation; for a list those in addition to `limit` and
/// `offset`. Made with [`filters!`](crate::filters).
pub trait Filters: Send + Sync + 'static {
    /// All parameters, in the order of the API document.
    const PARAMETERS: &'static [Parameter];
    /// Most results of a page of the list.
    const MOST: u64 = MAX_LIMIT;
    /// Results of a page without a limit in the request.
    const USUAL: u64 = DEFAULT_LIMIT;
}

/// The filters of a list without filters.
#[derive(Debug, Clone, Copy)]
pub struct NoFilters;

impl Filters for NoFilters {
    const PARAMETERS: &'static [Parameter] = &[];
}

/// The query parameters of a list, for its handler and for the API document:
///
/// ```ignore
/// filters! {
///     /// What the list of things can be narrowed by.
///     ThingFilters {
///         "search": Text, "Only things whose name contains this.";
///     }
/// }
/// // in the handler: listing: Listing<ThingFilters>
/// ```
///
/// `ThingFilters, up to 500 { … }` gives the list another largest page, and
/// `ThingFilters, pages of 50 { … }` another one when no limit is named.
#[macro_export]
macro_rules! filters {
    ($(#[$doc:meta])* $name:ident $(, up to $most:literal)? $(, pages of $usual:literal)? {
        $($parameter:literal: $kind:ident $(($words:expr))?, $description:literal;)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl $crate::http::pagination::Filters for $name {
            const PARAMETERS: &'static [$crate::http::pagination::Parameter] = &[$(
                $crate::http::pagination::Parameter {
                    name: $parameter,
                    kind: $crate::http::pagination::ParameterKind::$kind $(($words))?,
                    description: $description,
                },
            )+];
            $(const MOST: u64 = $most;)?
            $(const USUAL: u64 = $usual;)?
        }
    };
}

/// The query parameters of an operation, which `F` names. For a list there is
/// [`Listing`].
#[derive(Debug)]
pub struct Params<F: Filters> {
    query: Query,
    filters: PhantomData<fn() -> F>,
}

impl<F: Filters> Params<F> {
    /// A query parameter; the last one when it is given several times.
    pub fn param(&self, name: &str) -> Option<&str> {
        Self::check(name);
        self.query.param(name)
    }

    /// The words of a query parameter that can be given several times, or as a
    /// list with commas.
    pub fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        Self::check(name);
        let given = self.query.pairs.iter().filter(move |(other, _)| other == name);
        let words = given.flat_map(|(_, value)| value.split(',')).map(str::trim);
        words.filter(|word| !word.is_empty())
    }

    fn check(name: &str) {
        debug_assert!(
            F::PARAMETERS.iter().any(|parameter| parameter.name == name),
            "name the query parameter `{name}` with filters!, see docs/adding-an-endpoint.md",
        );
    }

    /// A link to the same operation with some parameters set or, with `None`,
    /// removed. All others are kept, sorted by name.
    pub fn link(&self, changes: &[(&str, Option<String>)]) -> String {
        self.query.link(changes)
    }
}

impl<S: Sync, F: Filters> FromRequestParts<S> for Params<F> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self { query: Query::of(parts), filters: PhantomData })
    }
}

/// The query of a request, and links to other pages of the same list. `F` names the
/// parameters in addition to `limit` and `offset`.
#[derive(Debug)]
pub struct Listing<F: Filters = NoFilters>(Params<F>);

impl<F: Filters> Listing<F> {
    /// A query parameter; the last one when it is given several times.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.0.param(name)
    }

    /// The words of a query parameter that can be given several times, or as a list
    /// with commas.
    pub fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.words(name)
    }

    /// The requested page.
    pub fn page(&self) -> Page {
        self.0.query.page(F::USUAL, F::MOST)
    }

    /// Whether the caller counts offsets. Such a caller takes a page that is not full for
    /// the last one.
    pub fn is_by_offset(&self) -> bool {
        self.0.query.param("offset").is_some()
    }

    /// A link to the same list with some parameters set or, with `None`, removed.
    /// All others are kept, sorted by name.
    pub fn link(&self, changes: &[(&str, Option<String>)]) -> String {
        self.0.link(changes)
    }

    /// The list answer for a page of results.
    pub fn envelope<T>(&self, paged: Paged<T>) -> Envelope<T> {
        self.0.query.envelope(self.page(), paged)
    }
}

impl<S: Sync, F: Filters> FromRequestParts<S> for Listing<F> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Params::from_request_parts(parts, state).await.map(Self)
    }
}

/// The query of a request and its address.
#[derive(Debug)]
pub(crate) struct Query {
    base: String,
    pairs: Vec<(String, String)>,
}

impl Query {
    /// The query as the client sent it.
    pub(crate) fn of(parts: &Parts) -> Self {
        let requested = parts.extensions.get::<RequestedUri>().map(|uri| &uri.0);
        let uri = requested.unwrap_or(&parts.uri);
        let origin = parts.extensions.get::<Origin>().map(|origin| origin.0.as_str());
        Self::new(origin.unwrap_or_default(), uri.path(), uri.query().unwrap_or_default())
    }

    fn new(origin: &str, path: &str, query: &str) -> Self {
        let owned = |text: Cow<'_, str>| text.into_owned();
        let pairs = form_urlencoded::parse(query.as_bytes());
        Self {
            base: format!("{origin}{path}"),
            pairs: pairs.map(|(name, value)| (owned(name), owned(value))).collect(),
        }
    }

    /// A parameter; the last one when it is given several times.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let last = self.pairs.iter().rev().find(|(given, _)| given == name);
        last.map(|(_, value)| value.as_str())
    }

    fn page(&self, usual: u64, most: u64) -> Page {
        Page::within(usual, most, self.param("limit"), self.param("offset"))
    }

    fn link(&self, changes: &[(&str, Option<String>)]) -> String {
        let changed = |name: &str| changes.iter().any(|(other, _)| *other == name);
        let mut pairs: Vec<(&str, &str)> = self
            .pairs
            .iter()
            .filter(|(name, _)| !changed(name))
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain(changes.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))))
            .collect();
        pairs.sort_by_key(|(name, _)| *name);
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        if query.is_empty() { self.base.clone() } else { format!("{}?{query}", self.base) }
    }

    fn envelope<T>(&self, page: Page, paged: Paged<T>) -> Envelope<T> {
        let Page { limit, offset } = page;
        let to = |offset: u64| {
            let offset = (offset > 0).then(|| offset.to_string());
            self.link(&[("limit", Some(limit.to_string())), ("offset", offset)])
        };
        let end = offset.saturating_add(limit);
        Envelope {
            count: paged.count,
            next: (end < paged.count).then(|| to(end)),
            previous: (offset > 0).then(|| to(offset.saturating_sub(limit))),
            results: paged.results,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Query;
    use weir_model::pagination::{DEFAULT_LIMIT, MAX_LIMIT, Paged};

    fn links(query: &str, count: u64) -> (Option<String>, Option<String>) {
        let query = Query::new("http://h", "/api/x/", query);
        let paged = Paged { count, results: Vec::<u8>::new() };
        let envelope = query.envelope(query.page(DEFAULT_LIMIT, MAX_LIMIT), paged);
        (envelope.next, envelope.previous)
    }

    #[test]
    fn links_follow_the_table() {
        let to = |query: &str| Some(format!("http://h/api/x/{query}"));
        let cases = [
            ("limit=2&offset=2", 14, to("?limit=2&offset=4"), to("?limit=2")),
            ("", 200, to("?limit=100&offset=100"), None),
            ("", 100, None, None),
            ("limit=2&offset=3", 5, None, to("?limit=2&offset=1")),
            ("limit=5&offset=3", 9, to("?limit=5&offset=8"), to("?limit=5")),
            ("offset=500", 3, None, to("?limit=100&offset=400")),
            ("limit=9999", 5000, to("?limit=1000&offset=1000"), None),
            ("limit=0&offset=-1", 101, to("?limit=100&offset=100"), None),
            ("limit=1&limit=2", 5, to("?limit=2&offset=2"), None),
            ("z=a%20b&a=1&a=2&limit=1", 3, to("?a=1&a=2&limit=1&offset=1&z=a+b"), None),
        ];
        for (query, count, next, previous) in cases {
            assert_eq!(links(query, count), (next, previous), "{query}");
        }
    }
}
