//! The data of a page on its way from the server to the browser, without its type.

use std::any::Any;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::UiError;
use crate::json;

/// The data of a page: a value, or its JSON in the document of the server.
#[derive(Clone)]
pub(crate) enum PageData {
    /// The value, and how it is written. The browser writes none.
    Value(Arc<dyn Any + Send + Sync>, fn(&dyn Any) -> Option<String>),
    /// JSON.
    Text(Arc<str>),
}

impl PageData {
    /// The data with this value.
    pub(crate) fn of<D: Serialize + Send + Sync + 'static>(value: D) -> Self {
        #[cfg(feature = "ssr")]
        let write = |value: &dyn Any| serde_json::to_string(value.downcast_ref::<D>()?).ok();
        #[cfg(not(feature = "ssr"))]
        let write = |_: &dyn Any| None;
        Self::Value(Arc::new(value), write)
    }

    /// The value. `None` if the text is not one.
    pub(crate) fn get<D: Clone + DeserializeOwned + 'static>(&self) -> Option<D> {
        match self {
            Self::Value(value, _) => value.downcast_ref::<D>().cloned(),
            Self::Text(text) => json::read(text).ok(),
        }
    }
}

impl Serialize for PageData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self {
            Self::Value(value, write) => write(&**value),
            Self::Text(text) => Some(text.to_string()),
        };
        let raw = text.and_then(|text| RawValue::from_string(text).ok());
        raw.ok_or_else(|| serde::ser::Error::custom("not JSON"))?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PageData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::Text(raw.get().into()))
    }
}

/// The result of loading data, as resources have it: of one type, so that their code is
/// compiled once.
#[derive(Clone)]
pub(crate) struct LoadResult(pub(crate) Result<PageData, UiError>);

impl LoadResult {
    /// The value. `None` if loading failed, or the data is of another type.
    pub(crate) fn get<D: Clone + DeserializeOwned + 'static>(&self) -> Option<D> {
        self.0.as_ref().ok()?.get()
    }
}

impl Serialize for LoadResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LoadResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Leptos reads documents with another parser: it gets the text only.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        json::read(raw.get()).map(Self).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{LoadResult, PageData};
    use crate::error::UiError;

    #[test]
    fn data_survives_the_document() {
        let value = (7_i64, vec!["a\"b".to_owned()], None::<bool>);
        let data = PageData::of(value.clone());
        assert_eq!(data.get::<(i64, Vec<String>, Option<bool>)>(), Some(value.clone()));
        let written = serde_json::to_string(&data).unwrap();
        let read: PageData = serde_json::from_str(&written).unwrap();
        assert_eq!(read.get::<(i64, Vec<String>, Option<bool>)>(), Some(value));
        assert_eq!(read.get::<String>(), None);
    }

    #[test]
    fn a_result_survives_the_document() {
        let again = |result: LoadResult| {
            let written = serde_json::to_string(&result).unwrap();
            serde_json::from_str::<LoadResult>(&written).unwrap()
        };
        let loaded = again(LoadResult(Ok(PageData::of("a\"b".to_owned()))));
        assert_eq!(loaded.get::<String>().as_deref(), Some("a\"b"));
        let failed = again(LoadResult(Err(UiError::Throttled { seconds: 7 })));
        assert_eq!(failed.get::<String>(), None);
        assert_eq!(failed.0.err(), Some(UiError::Throttled { seconds: 7 }));
    }
}
