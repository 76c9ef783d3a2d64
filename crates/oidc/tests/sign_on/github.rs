//! Logins with GitHub: its pages and its API, scripted.

use chrono::TimeDelta;
use serde_json::{Value, json};
use weir_egress::FaultClass;
use weir_oidc::{
    Answer, Callback, Email, Identity, Kind, Provider, ProviderError, Refusal, SignOn,
};
use weir_testservers::{StandIn, StubAnswer};

use crate::issuer::{CLIENT_SECRET, CODE, EGRESS, after, parameter, said, said_text, settings};

const REDIRECT_URI: &str = "https://weir.example/complete/github/";

/// What GitHub answers, and what the browser brings.
struct Plan {
    token: StubAnswer,
    user: StubAnswer,
    addresses: StubAnswer,
    query: String,
    url: String,
}

async fn log_in(changing: impl FnOnce(&mut Plan)) -> (Result<Identity, Refusal>, String) {
    let answers: [(&str, StubAnswer); 3] = [
        ("/login/oauth/access_token", StubAnswer::empty(500)),
        ("/api/v3/user", StubAnswer::empty(500)),
        ("/api/v3/user/emails", StubAnswer::empty(500)),
    ];
    let server = StandIn::start(answers, |answers, request| {
        if request.path == "/login/oauth/access_token" {
            let form = String::from_utf8_lossy(&request.body).into_owned();
            assert!(form.contains("code_verifier=") && form.contains("client_secret=hidden"));
            assert_eq!(request.header("accept"), "application/json");
        } else {
            assert_eq!(request.header("authorization"), "Bearer gho_hidden");
            assert_eq!(request.header("user-agent"), "weir");
        }
        answers.iter().find(|(path, _)| *path == request.path).map(|(_, said)| said.clone())
    })
    .await;
    let url = server.url();
    let provider = Provider::new(settings(Kind::GitHub, "github", &url)).unwrap();
    let sign_on = SignOn::new(EGRESS.clone());
    let now = after(TimeDelta::zero());
    let begun = sign_on.begin(&provider, REDIRECT_URI, now).await.unwrap();
    assert_eq!(begun.url.path(), "/login/oauth/authorize");
    assert_eq!(parameter(&begun.url, "scope"), "read:user user:email");
    assert_eq!(parameter(&begun.url, "code_challenge_method"), "S256");
    assert_eq!(parameter(&begun.url, "nonce"), "");
    let mut plan = Plan {
        token: said(&json!({"access_token": "gho_hidden", "token_type": "bearer", "scope": "a"})),
        user: said(
            &json!({"id": 583_231, "login": "ada", "name": "Ada", "email": "public@x.example"}),
        ),
        addresses: said(&json!([
            {"email": "old@x.example", "primary": false, "verified": true},
            {"email": "ada@x.example", "primary": true, "verified": true, "visibility": null},
        ])),
        query: format!("code={CODE}&state={}", parameter(&begun.url, "state")),
        url: url.clone(),
    };
    changing(&mut plan);
    {
        let mut answers = server.lock();
        answers[0].1 = plan.token.clone();
        answers[1].1 = plan.user.clone();
        answers[2].1 = plan.addresses.clone();
    }
    let callback = Callback::read(&plan.query).unwrap();
    (sign_on.finish(&provider, begun.pending, &callback, now).await, url)
}

#[tokio::test]
async fn the_number_and_the_verified_primary_address_are_the_identity() {
    let rows: [fn(&mut Plan); 3] = [
        |_| {},
        |plan| plan.query += &format!("&iss={}", plan.url),
        |plan| plan.query += &format!("&iss={}/login/oauth", plan.url),
    ];
    for changing in rows {
        let (identity, issuer) = log_in(changing).await;
        let email = Email { address: "ada@x.example".to_owned(), verified: true };
        let expected = Identity {
            provider: "github".to_owned(),
            issuer,
            subject: "583231".to_owned(),
            email: Some(email),
            name: Some("Ada".to_owned()),
            // GitHub does not say it.
            signed_in_at: None,
        };
        assert_eq!(identity, Ok(expected));
    }
}

#[tokio::test]
async fn an_address_that_is_not_both_is_no_address() {
    for addresses in [
        json!([]),
        json!([{"email": "ada@x.example", "primary": true, "verified": false}]),
        json!([{"email": "ada@x.example", "primary": false, "verified": true}]),
        json!([{"email": "ada@x.example", "primary": true, "verified": "true"}]),
        json!([{"email": "ada@x.example", "primary": 1, "verified": true}]),
        json!([{"email": ["ada@x.example"], "primary": true, "verified": true}]),
        json!(["ada@x.example"]),
    ] {
        let (identity, _) = log_in(|plan| plan.addresses = said(&addresses)).await;
        assert_eq!(identity.unwrap().email, None, "{addresses}");
    }
}

#[tokio::test]
async fn hostile_answers_are_refused() {
    type Row = (&'static str, Refusal, fn(&mut Plan));
    let user = Refusal::Member { answer: Answer::GitHubUser, member: "id" };
    let rows: [Row; 14] = [
        ("the issuer of another provider", Refusal::CallbackIssuer, |plan| {
            plan.query += "&iss=https%3A%2F%2Fevil.example";
        }),
        ("denied", Refusal::RefusedByProvider(ProviderError::AccessDenied), |plan| {
            plan.query = plan.query.replace(&format!("code={CODE}"), "error=access_denied");
        }),
        ("another state", Refusal::State, |plan| plan.query = format!("code={CODE}&state=other")),
        ("a used code", Refusal::NoToken(ProviderError::InvalidCode), |plan| {
            plan.token = said(&json!({"error": "bad_verification_code"}));
        }),
        ("a wrong secret", Refusal::NoToken(ProviderError::InvalidClient), |plan| {
            plan.token = said(&json!({"error": "incorrect_client_credentials"}));
        }),
        ("a form", Refusal::NotJson(Answer::Token), |plan| {
            let kind = "application/x-www-form-urlencoded";
            plan.token = said_text(200, kind, "access_token=gho_hidden&token_type=bearer");
        }),
        (
            "no access token",
            Refusal::Member { answer: Answer::Token, member: "access_token" },
            |plan| plan.token = said(&json!({"token_type": "bearer"})),
        ),
        ("a name instead of the number", user, |plan| plan.user = said(&json!({"id": "583231"}))),
        ("no number", user, |plan| plan.user = said(&json!({"login": "ada"}))),
        ("number zero", user, |plan| plan.user = said(&json!({"id": 0}))),
        ("two numbers", Refusal::NotJson(Answer::GitHubUser), |plan| {
            plan.user = said_text(200, "application/json", r#"{"id": 1, "id": 2}"#);
        }),
        (
            "no right to read addresses",
            Refusal::Unreachable {
                answer: Answer::GitHubAddresses,
                fault: FaultClass::Status(404),
            },
            |plan| plan.addresses = StubAnswer::empty(404),
        ),
        ("addresses that are no list", Refusal::NotJson(Answer::GitHubAddresses), |plan| {
            plan.addresses = said(&json!({"email": "ada@x.example"}));
        }),
        (
            "addresses without end",
            Refusal::Unreachable { answer: Answer::GitHubAddresses, fault: FaultClass::TooLarge },
            |plan| plan.addresses = said(&Value::from(vec!["a".repeat(1000); 1000])),
        ),
    ];
    for (name, expected, changing) in rows {
        assert_eq!(log_in(changing).await.0, Err(expected), "{name}");
        assert!(!expected.for_administrators().contains(CLIENT_SECRET), "{name}");
    }
}
