//! Records each call that is made with a personal API key, and the scope that was missing
//! for a refused call. The owner sees both with the key. Only the pattern of the route is
//! recorded, never the key, the path or the query.

use std::sync::{Arc, OnceLock};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use weir_model::keys::KeyCall;
use weir_model::{KeyId, UserId};

use crate::app::App;
use crate::http::error::Failure;
use crate::http::peer::ClientAddress;

/// The owner and id of a request's key, once they are known. It is in the extensions of
/// the request.
#[derive(Debug, Clone, Default)]
pub struct Caller(Arc<OnceLock<(UserId, KeyId)>>);

impl Caller {
    /// Sets the owner and the id.
    pub fn is(&self, user: UserId, key: &KeyId) {
        // A second call sets the same key.
        let _ = self.0.set((user, key.clone()));
    }
}

/// The data of a route that recording needs.
#[derive(Clone)]
pub struct NoteUse {
    /// The dependencies of the handlers.
    pub app: App,
    /// The pattern of the route, with names in place of ids.
    pub pattern: &'static str,
}

/// Records a call after its answer, in memory.
pub async fn note(State(path): State<NoteUse>, mut request: Request, next: Next) -> Response {
    let caller = Caller::default();
    request.extensions_mut().insert(caller.clone());
    let method = request.method().clone();
    let address = request.extensions().get::<ClientAddress>().map(|address| address.0);
    let response = next.run(request).await;
    if let Some((user, key)) = caller.0.get() {
        let missing_scope =
            response.extensions().get::<Failure>().and_then(|failure| failure.missing_scope);
        let call = KeyCall {
            at: path.app.services.clock.now(),
            address: address.map(|address| address.to_string()),
            method: method.to_string(),
            route: path.pattern.to_owned(),
        };
        path.app.services.keys.note_call(*user, key, call, missing_scope);
    }
    response
}
