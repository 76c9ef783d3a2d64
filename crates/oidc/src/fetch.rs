//! Requests to providers: through egress, bounded in bytes and time (SSO-2).
//!
//! What belongs here: sending a request, and reading an answer as JSON. What does not:
//! what the answer means.

use serde_json::Value;
use weir_egress::{
    Body, Egress, Fault, FaultClass, Method, RequestBuilder, Response, StatusCode, header,
};

use crate::object::Object;
use crate::refusal::{Answer, Endpoint, ProviderError, Refusal};
use crate::secret::Secret;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

impl Answer {
    /// The longest answer that is read.
    fn max_bytes(self) -> usize {
        match self {
            Self::Discovery | Self::Keys => 1024 * 1024,
            Self::Token | Self::Userinfo | Self::GitHubUser | Self::GitHubAddresses => 256 * 1024,
        }
    }
}

/// Sends requests to providers.
pub(crate) struct Fetch(pub(crate) Egress);

/// How this instance proves to be the client.
pub(crate) enum ClientProof<'a> {
    /// In a header, as every provider supports unless it says something else.
    Header {
        id: &'a str,
        secret: &'a Secret,
    },
    Form {
        id: &'a str,
        secret: &'a Secret,
    },
}

impl Fetch {
    /// Judges a URL by its text, before a login is begun with it.
    pub(crate) fn judge(&self, endpoint: Endpoint, url: &str) -> Result<(), Refusal> {
        self.0.judge_url(url).map_err(|_| Refusal::EndpointForbidden(endpoint))
    }

    /// The text of a JSON document.
    pub(crate) async fn document(&self, answer: Answer, url: &str) -> Result<String, Refusal> {
        let request = self.request(answer, Method::GET, url)?;
        let response = send(answer, request).await?;
        text(answer, response).await
    }

    /// A JSON object that an access token opens.
    pub(crate) async fn object(
        &self,
        answer: Answer,
        url: &str,
        token: &Secret,
    ) -> Result<Object, Refusal> {
        let text = self.authorized(answer, url, token).await?;
        Object::parse(&text).ok_or(Refusal::NotJson(answer))
    }

    /// A JSON array that an access token opens.
    pub(crate) async fn list(
        &self,
        answer: Answer,
        url: &str,
        token: &Secret,
    ) -> Result<Vec<Value>, Refusal> {
        let text = self.authorized(answer, url, token).await?;
        serde_json::from_str(&text).map_err(|_| Refusal::NotJson(answer))
    }

    async fn authorized(
        &self,
        answer: Answer,
        url: &str,
        token: &Secret,
    ) -> Result<String, Refusal> {
        let request = self.request(answer, Method::GET, url)?.bearer_auth(token.expose());
        let response = send(answer, request).await?;
        text(answer, response).await
    }

    /// Exchanges a code: the object that contains the tokens.
    pub(crate) async fn token(
        &self,
        url: &str,
        proof: ClientProof<'_>,
        form: &[(&str, &str)],
    ) -> Result<Object, Refusal> {
        let answer = Answer::Token;
        let mut fields = form.to_vec();
        let mut request = self.request(answer, Method::POST, url)?;
        match proof {
            // RFC 6749 encodes both as values of a form before they become a header.
            ClientProof::Header { id, secret } => {
                let encode = |text: &str| -> String {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let secret = Secret::new(encode(secret.expose()));
                request = request.basic_auth(encode(id), Some(secret.expose()));
            }
            ClientProof::Form { id, secret } => {
                fields.extend([("client_id", id), ("client_secret", secret.expose())]);
            }
        }
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = request.header(header::CONTENT_TYPE, FORM).body(Body::from(body));
        let response = request.send().await.map_err(|error| unreachable(answer, error))?;
        let status = response.status();
        // Providers explain a refusal in JSON with one of these two, GitHub with a success.
        let is_refused = [StatusCode::BAD_REQUEST, StatusCode::UNAUTHORIZED].contains(&status);
        if status != StatusCode::OK && !(is_refused && is_json(&response)) {
            return Err(failed(answer, status));
        }
        let text = text(answer, response).await?;
        let object = Object::parse(&text).ok_or(Refusal::NotJson(answer))?;
        match object.get("error") {
            None if is_refused => Err(failed(answer, status)),
            None => Ok(object),
            Some(Value::String(code)) => Err(Refusal::NoToken(ProviderError::of_code(code))),
            Some(_) => Err(Refusal::NoToken(ProviderError::Other)),
        }
    }

    fn request(
        &self,
        answer: Answer,
        method: Method,
        url: &str,
    ) -> Result<RequestBuilder, Refusal> {
        let request = self.0.request(method, url);
        let request = request.map_err(|refused| unreachable(answer, refused))?;
        Ok(request.header(header::ACCEPT, JSON))
    }
}

async fn send(answer: Answer, request: RequestBuilder) -> Result<Response, Refusal> {
    let response = request.send().await.map_err(|error| unreachable(answer, error))?;
    match response.status() {
        StatusCode::OK => Ok(response),
        // Also a redirect: no redirect is followed.
        other => Err(failed(answer, other)),
    }
}

async fn text(answer: Answer, response: Response) -> Result<String, Refusal> {
    if !is_json(&response) {
        return Err(Refusal::NotJson(answer));
    }
    let body = Egress::read(response, answer.max_bytes()).await;
    let body = body.map_err(|fault| unreachable(answer, fault))?;
    String::from_utf8(body.into()).map_err(|_| Refusal::NotJson(answer))
}

/// Whether an answer says that it is JSON, such as `application/json` or
/// `application/jwk-set+json`.
fn is_json(response: &Response) -> bool {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = value.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == JSON || (kind.starts_with("application/") && kind.ends_with("+json"))
}

fn unreachable(answer: Answer, error: impl Into<Fault>) -> Refusal {
    Refusal::Unreachable { answer, fault: error.into().class }
}

fn failed(answer: Answer, status: StatusCode) -> Refusal {
    Refusal::Unreachable { answer, fault: FaultClass::Status(status.as_u16()) }
}
