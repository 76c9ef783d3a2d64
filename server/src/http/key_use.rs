//! Notes each call that is made with a personal API key, and the scope for which it
//! was refused: its owner sees both beside the key. Only the pattern of the route is
//! noted, never the key, the path or the query.

use std::sync::{Arc, OnceLock};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use weir_model::keys::KeyCall;
use weir_model::{KeyId, UserId};

use crate::app::App;
use crate::http::error::Failure;
use crate::http::peer::ClientAddress;

/// Whose key a request came with, once that is known. Stands beside the request.
#[derive(Debug, Clone, Default)]
pub struct Caller(Arc<OnceLock<(UserId, KeyId)>>);

impl Caller {
    /// Says whose key it is.
    pub fn is(&self, user: UserId, key: &KeyId) {
        // A second time it is the same one.
        let _ = self.0.set((user, key.clone()));
    }
}

/// What noting needs to know of a path.
#[derive(Clone)]
pub struct NoteUse {
    /// The application.
    pub app: App,
    /// The path with names in place of ids.
    pub pattern: &'static str,
}

/// Notes a call when it has been answered, in memory.
pub async fn note(State(path): State<NoteUse>, mut request: Request, next: Next) -> Response {
    let caller = Caller::default();
    request.extensions_mut().insert(caller.clone());
    let method = request.method().clone();
    let address = request.extensions().get::<ClientAddress>().map(|address| address.0);
    let response = next.run(request).await;
    if let Some((user, key)) = caller.0.get() {
        let lacked = response.extensions().get::<Failure>().and_then(|failure| failure.lacked);
        let call = KeyCall {
            at: path.app.services.clock.now(),
            address: address.map(|address| address.to_string()),
            method: method.to_string(),
            route: path.pattern.to_owned(),
        };
        path.app.services.keys.note_call(*user, key, call, lacked);
    }
    response
}
