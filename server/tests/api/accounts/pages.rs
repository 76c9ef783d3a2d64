//! The pages, and their forms as browsers without scripts send them.

use http::Method;
use serde_json::json;
use weir_testkit::{Answer, TestApp};

use super::{Instance, OTHER_PASSWORD, PASSWORD, VOID, cookie};

const ADA: &str = "ada@mail.example";

impl Instance {
    /// The text of a page.
    async fn page(&self, path: &str) -> String {
        let answer = self.anonymous().get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        answer.text()
    }

    /// Sends a form from this page.
    async fn form(&self, name: &str, back: &str, fields: &[(&str, &str)]) -> Answer {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.append_pair("back", back).extend_pairs(fields);
        self.function(name, &body.finish()).header("accept", "text/html").send().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_user_is_guided_through_the_pages() {
    let instance = Instance::open().await;
    let user = instance.sign_up().await.json()["uuid"].as_str().unwrap().to_owned();
    let waiting = format!("/verify_email/{user}");
    let text = instance.page(&waiting).await;
    assert!(text.contains("We sent you an e-mail with a link."), "{text}");
    // The same page for a user that does not exist.
    let other = instance.page(&format!("/verify_email/{}", uuid::Uuid::from_u128(7))).await;
    assert!(other.contains("We sent you an e-mail with a link."), "{other}");

    let fields = [("email", "grace@mail.example"), ("password", PASSWORD), ("next", "/")];
    let answer = instance.form("sign_in", "/login", &fields).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some(waiting.as_str())));
    assert_eq!(answer.header("set-cookie"), None);
    let answer = instance.form("ask_confirmation", &waiting, &[("id", &user)]).await;
    let done = format!("{waiting}?__done=/_fn/ask_confirmation");
    assert_eq!(answer.header("location"), Some(done.as_str()));
    assert!(instance.page(&done).await.contains("On its way"));

    let link = instance.confirmation("Grace@mail.example", 3).await;
    let page = format!("{waiting}?token={}", link.token);
    let answer = instance.anonymous().get(&page).await;
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    let text = answer.text();
    assert!(text.contains("Confirm address") && text.contains("Grace@mail.example"), "{text}");
    // The user is older than this proof, so another person may have created it.
    assert!(text.contains("The account has a password already."), "{text}");
    let fields = [("id", user.as_str()), ("token", link.token.as_str())];
    let answer = instance.form("confirm_address", &page, &fields).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{:?}", answer.body);
    assert!(instance.is_open(&cookie(&answer)).await);

    assert!(instance.page(&page).await.contains(VOID));
    let answer = instance.form("confirm_address", &page, &fields).await;
    let location = answer.header("location").unwrap().to_owned();
    assert!(location.starts_with(&page) && location.contains("__err="), "{location}");
    // Entered values are kept for the page; a token is not.
    let kept = answer.header("set-cookie").unwrap_or_default();
    assert!(!kept.contains(&link.token), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_password_is_reset() {
    let instance = Instance::open().await;
    assert!(instance.page("/login").await.contains("href=\"/reset\""));
    assert!(instance.page("/reset").await.contains("We mail you a link"));
    let sent = "/reset?sent=yes";
    for email in [ADA, "nobody@mail.example"] {
        let answer = instance.form("ask_reset", "/reset", &[("email", email)]).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some(sent)), "{email}");
    }
    assert!(instance.page(sent).await.contains("If there is an account with this address"));
    let answer = instance.form("ask_reset", "/reset", &[("email", "ada")]).await;
    let location = answer.header("location").unwrap().to_owned();
    let kept = cookie(&answer);
    let call = instance.anonymous().call(Method::GET, &location).header("cookie", &kept);
    let text = String::from_utf8(call.send().await.body.to_vec()).unwrap();
    assert!(text.contains("Enter a valid email address.") && text.contains("value=\"ada\""));

    let link = instance.link(ADA, "Set a new password on Weir", 1).await;
    let page = format!("/reset/{}?token={}", link.user, link.token);
    let answer = instance.anonymous().get(&page).await;
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    let text = answer.text();
    assert!(text.contains("New password") && text.contains(ADA), "{text}");
    let set = async |password: &str| {
        let fields =
            [("id", link.user.as_str()), ("token", link.token.as_str()), ("password", password)];
        instance.form("reset_password", &page, &fields).await
    };
    let answer = set("short").await;
    let text = instance.page(answer.header("location").unwrap()).await;
    assert!(text.contains("This password is too short."), "{text}");
    let answer = set(OTHER_PASSWORD).await;
    let done = "/login?reset=done";
    assert_eq!((answer.status, answer.header("location")), (303, Some(done)), "{:?}", answer.body);
    // The browser is known from now on, but no session is opened.
    let set: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert!(set.len() == 1 && set[0].as_bytes().starts_with(b"__Host-browser="), "{set:?}");
    assert!(instance.page(done).await.contains("Your password is changed."));
    instance.session(ADA, OTHER_PASSWORD).await;
    let text = instance.page(&page).await;
    assert!(text.contains(VOID) && text.contains("Ask for a new link"), "{text}");
    assert!(instance.page(&format!("/reset/{}", link.user)).await.contains("not complete"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_shows_a_pending_address() {
    let instance = Instance::open().await;
    let session = instance.session(ADA, PASSWORD).await;
    let account = async || {
        let call = instance.anonymous().call(Method::GET, "/account").header("cookie", &session);
        String::from_utf8(call.send().await.body.to_vec()).unwrap()
    };
    assert!(!account().await.contains("Keep the current address"));
    let call = instance.function("change_address", "email=ada%40new.example&back=%2Faccount");
    let answer = call.header("accept", "text/html").header("cookie", &session).send().await;
    assert_eq!(answer.header("location"), Some("/account?__done=/_fn/change_address"));
    let text = account().await;
    assert!(
        text.contains("ada@new.example") && text.contains("Keep the current address"),
        "{text}"
    );
    let link = instance.confirmation("ada@new.example", 1).await;
    let text = instance.page(&format!("/verify_email/{}?token={}", link.user, link.token)).await;
    assert!(text.contains("Confirm address") && !text.contains("has a password already"), "{text}");
    assert_eq!(instance.confirm(&link).await.status, 200);
    assert!(!account().await.contains("Keep the current address"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_the_pages_say_so() {
    let app = TestApp::with_owner().await;
    let page = async |path: &str| {
        let answer = app.anonymous().get(path).await;
        answer.text()
    };
    assert!(page("/login").await.contains("href=\"/reset\""));
    assert!(page("/reset").await.contains("This instance sends no mail"));
    let user = app.owner().id().to_string();
    assert!(page(&format!("/verify_email/{user}")).await.contains("This instance sends no mail"));
    let answer = app.anonymous().post("/_fn/ask_reset", &json!({})).await;
    assert_eq!(answer.status, 403, "not from a page of ours");
}
