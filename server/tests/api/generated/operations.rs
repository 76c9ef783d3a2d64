//! The operations of the API document, and how to call them.

use http::Method;
use serde_json::{Map, Value, json};
use weir_server::openapi::document;
use weir_testkit::{Call, Caller};

/// An operation of the document.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// The operation id.
    pub(crate) id: String,
    /// The HTTP method.
    pub(crate) method: Method,
    /// The path with parameters in braces.
    pub(crate) path: String,
    /// Its object in the document.
    pub(crate) item: Value,
}

pub(crate) fn operations() -> Vec<Operation> {
    let paths = document().unwrap()["paths"].as_object().unwrap();
    let of_path = |(path, methods): (&String, &Value)| -> Vec<Operation> {
        let methods = methods.as_object().unwrap().iter();
        methods
            .map(|(method, item)| Operation {
                id: item["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                item: item.clone(),
            })
            .collect()
    };
    paths.iter().flat_map(of_path).collect()
}

/// The operations that need a key.
pub(crate) fn guarded() -> impl Iterator<Item = Operation> {
    operations().into_iter().filter(|operation| !operation.is_public())
}

impl Operation {
    /// Whether it needs no key.
    pub(crate) fn is_public(&self) -> bool {
        self.item["security"].as_array().unwrap().is_empty()
    }

    /// Whether it is refused for every caller.
    pub(crate) fn is_refused(&self) -> bool {
        !self.item["responses"].as_object().unwrap().keys().any(|status| status.starts_with('2'))
    }

    /// Whether it sends a mail, for which the world has no mail server.
    pub(crate) fn needs_mail(&self) -> bool {
        self.id == "test_subscription"
    }

    /// The scopes of which a key needs one.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let scopes = self.item["x-required-scopes"].as_array().into_iter().flatten();
        scopes.map(|scope| scope.as_str().unwrap().to_owned()).collect()
    }

    /// The example of its body.
    pub(crate) fn body(&self) -> Option<Value> {
        let body = &self.item["requestBody"]["content"]["application/json"]["example"];
        (!body.is_null()).then(|| body.clone())
    }

    /// Statuses that it may answer.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        let answers = self.item["responses"].as_object().unwrap().keys();
        answers.map(|status| status.parse().unwrap()).collect()
    }

    /// The status of its success answer.
    pub(crate) fn good(&self) -> Option<u16> {
        self.statuses().into_iter().find(|status| *status < 300)
    }

    /// Its position in a sequence of calls by one user. Operations in the user's current
    /// organization come before those that make another one current. Operations that
    /// delete come last.
    pub(crate) fn place(&self) -> u8 {
        match self.id.as_str() {
            "delete_organization" => 2,
            "create_organization" | "change_project_organization" | "move_organization_project" => {
                1
            }
            _ => 0,
        }
    }

    /// The names of the path parameters, each with the collection before it.
    pub(crate) fn ids(&self) -> Vec<(String, String)> {
        let segments: Vec<&str> = self.path.split('/').collect();
        let pairs = segments.windows(2).filter(|pair| pair[1].starts_with('{'));
        pairs
            .map(|pair| (pair[0].to_owned(), pair[1].trim_matches(['{', '}']).to_owned()))
            .collect()
    }

    /// Whether the object after this collection can no longer be used after this
    /// operation.
    pub(crate) fn ends(&self, collection: &str) -> bool {
        let last = self.path.trim_end_matches('/').rsplit('/').nth(1);
        (self.method == Method::DELETE && last == Some(collection))
            || [
                "reset_project_token",
                "put_reset_project_token",
                "reset_organization_project_token",
                "put_reset_organization_project_token",
                "change_project_organization",
                "move_organization_project",
            ]
            .contains(&self.id.as_str())
                && collection == "projects"
    }

    /// Its path with these ids, and with its required query parameters.
    pub(crate) fn path_with(&self, ids: &[(String, String)]) -> String {
        let mut path = self.path.clone();
        for (name, id) in ids {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        assert!(!path.contains('{'), "{path} lacks an id");
        let parameters = self.item["parameters"].as_array().unwrap().iter();
        let needed = parameters
            .filter(|parameter| parameter["in"] == "query" && parameter["required"] == true)
            .map(|parameter| {
                let word = parameter["schema"]["enum"][0].as_str().unwrap_or("ada");
                format!("{}={word}", parameter["name"].as_str().unwrap())
            });
        let query: Vec<String> = needed.collect();
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }

    /// A valid call by this caller.
    pub(crate) fn call(&self, caller: &Caller, ids: &[(String, String)]) -> Call {
        self.call_with(caller, ids, self.body())
    }

    /// A valid call with another body.
    pub(crate) fn call_with(
        &self,
        caller: &Caller,
        ids: &[(String, String)],
        body: Option<Value>,
    ) -> Call {
        let call = caller.call(self.method.clone(), &self.path_with(ids));
        match body {
            Some(body) => call.json(&body),
            None => call,
        }
    }
}

/// The methods of a path in the document.
pub(crate) fn methods(path: &str) -> Vec<Method> {
    let item = document().unwrap()["paths"][path].as_object().unwrap().clone();
    Map::keys(&item).map(|method| method.to_uppercase().parse().unwrap()).collect()
}

/// The schema of the success answer, if it has a body.
pub(crate) fn answer_schema(operation: &Operation) -> Option<Value> {
    let status = operation.good()?.to_string();
    let schema = &operation.item["responses"][status]["content"]["application/json"]["schema"];
    (!schema.is_null()).then(|| schema.clone())
}

/// An empty object.
pub(crate) fn nothing() -> Value {
    json!({})
}
