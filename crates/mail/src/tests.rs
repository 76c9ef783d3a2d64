//! Mails as users see them, compared with the files in `snapshots`, and content that must
//! never get into a header. `WEIR_WRITE=1 cargo test -p weir-mail` rewrites the files.

use std::path::Path;

use rustls::RootCertStore;
use uuid::Uuid;
use weir_model::invites::LinkToken;
use weir_model::limits::{LimitAction, LimitName};
use weir_model::mail::{
    AlertNews, ExportNamed, Mail, MailContent, OneTimeLink, SignInChange, TokenChange, UserChange,
};
use weir_model::organizations::Level;
use weir_model::reports::{Chart, ChartKind, ChartSeries, Digest, Finite, Report, ReportTable};
use weir_model::{InviteId, MailId, Timestamp, UserId};

use crate::{Failure, MailSender, Message, Site, SmtpUrl, message};

fn site() -> Site {
    Site { origin: "https://weir.example".to_owned() }
}

fn sender() -> MailSender {
    let url: SmtpUrl = "smtp://mail.example".parse().unwrap();
    MailSender::trusting(url.0.unwrap(), &site(), RootCertStore::empty()).unwrap()
}

fn at() -> Timestamp {
    Timestamp::parse("2026-11-21T10:00:00Z").unwrap()
}

fn invited(change: impl FnOnce(&mut Mail)) -> Message {
    let mut mail = Mail {
        to: "grace@mail.example".to_owned(),
        news: MailContent::Invited {
            invite: InviteId(Uuid::nil()),
            token: Some(LinkToken("8mSe7ahXnDZiJqLLFAN3O4FE1ejA0xLUjvlZHVZKWdY".to_owned())),
            first_name: "Grace".to_owned(),
            inviter_name: "Ada".to_owned(),
            inviter_email: "ada@mail.example".to_owned(),
            organization: "Acme Tea & Co".to_owned(),
            message: Some("Welcome!\nHave a look at <the> \"live\" page.".to_owned()),
            expires_at: at().plus_seconds(3 * 24 * 60 * 60),
        },
    };
    change(&mut mail);
    message(&mail, &site())
}

fn joined() -> Message {
    let news = MailContent::Joined {
        member_name: "Grace".to_owned(),
        member_email: "grace@mail.example".to_owned(),
        organization: "Acme Tea & Co".to_owned(),
    };
    message(&Mail { to: "ada@mail.example".to_owned(), news }, &site())
}

fn about_export(news: impl FnOnce(ExportNamed) -> MailContent) -> Message {
    let export = ExportNamed {
        name: "Nightly <warehouse>".to_owned(),
        destination: "PostgreSQL".to_owned(),
        project: "Shop".to_owned(),
        organization: "Acme Tea & Co".to_owned(),
    };
    message(&Mail { to: "ada@mail.example".to_owned(), news: news(export) }, &site())
}

fn export_failed() -> Message {
    about_export(|export| MailContent::ExportFailed {
        export,
        start: Some(at().plus_seconds(-24 * 60 * 60)),
        end: at(),
        error: Some("ConnectionRefused: The server refused the connection.".to_owned()),
    })
}

fn export_failed_early() -> Message {
    about_export(|export| MailContent::ExportFailed { export, start: None, end: at(), error: None })
}

fn export_paused() -> Message {
    let error = Some("AccessDenied: The user may not write into the table.".to_owned());
    about_export(|export| MailContent::ExportPaused { export, failed: 10, of: 12, error })
}

fn plugin_disabled() -> Message {
    let news = MailContent::PluginDisabled {
        plugin: "Hash <names>".to_owned(),
        project: "Shop".to_owned(),
        organization: "Acme Tea & Co".to_owned(),
        error: "index.js:3:7: TypeError: name is not a function".to_owned(),
    };
    message(&Mail { to: "ada@mail.example".to_owned(), news }, &site())
}

fn to_account(
    must_confirm: bool,
    news: impl FnOnce(UserId, Option<OneTimeLink>) -> MailContent,
) -> Message {
    let user = UserId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0003));
    let link = OneTimeLink {
        user,
        first_name: "Grace".to_owned(),
        must_confirm,
        token: "8mSe7ahXnDZiJqLLFAN3O4FE1ejA0xLUjvlZHVZKWdY".to_owned(),
        expires_at: at().plus_seconds(24 * 60 * 60),
    };
    assert!(!format!("{link:?}").contains("8mSe"));
    message(&Mail { to: "grace@mail.example".to_owned(), news: news(user, Some(link)) }, &site())
}

fn confirm(must_confirm: bool) -> Message {
    to_account(must_confirm, |user, link| MailContent::ConfirmAddress { user, link })
}

fn reset() -> Message {
    let account = "grace@mail.example".to_owned();
    to_account(true, |_, link| MailContent::ResetPassword { account, link })
}

fn changed(change: UserChange) -> Message {
    let news = MailContent::UserChanged { first_name: "Grace".to_owned(), change, at: at() };
    message(&Mail { to: "grace@mail.example".to_owned(), news }, &site())
}

fn sign_in(by: Option<&str>, change: SignInChange, path: &str) -> Message {
    let news = MailContent::SignInChanged {
        first_name: "Grace".to_owned(),
        change,
        by: by.map(str::to_owned),
        at: at(),
        path: path.to_owned(),
    };
    message(&Mail { to: "grace@mail.example".to_owned(), news }, &site())
}

fn of_domain(fields: &[&str]) -> SignInChange {
    SignInChange::DomainRules {
        domain: "acme.example".to_owned(),
        organization: "Acme Tea & Co".to_owned(),
        fields: fields.iter().map(|field| (*field).to_owned()).collect(),
    }
}

/// A mail about the domain of an organization: the change of its names.
fn of_acme(change: fn(String, String) -> SignInChange) -> Message {
    let change = change("acme.example".to_owned(), "Acme Tea & Co".to_owned());
    sign_in(Some("ada@mail.example"), change, "/organizations/1/domains/2")
}

fn verified_domain(domain: String, organization: String) -> SignInChange {
    SignInChange::DomainVerified { domain, organization }
}

fn renamed_domain(domain: String, organization: String) -> SignInChange {
    SignInChange::DomainRenamed { domain, before: "tea.example".to_owned(), organization }
}

fn suspended(domain: String, organization: String, is_suspended: bool) -> SignInChange {
    SignInChange::RulesSuspended { domain, organization, is_suspended }
}

fn expiring(domain: String, organization: String) -> SignInChange {
    let expires_at = at().plus_seconds(30 * 24 * 60 * 60);
    SignInChange::CertificateExpires { domain, organization, expires_at }
}

fn token(domain: String, organization: String, change: TokenChange) -> SignInChange {
    SignInChange::ScimToken { domain, organization, change }
}

fn group_level(domain: String, organization: String) -> SignInChange {
    let level = Some(Level::Administrator);
    SignInChange::GroupLevel { domain, organization, group: "Tea & Co".to_owned(), level }
}

fn deactivated(domain: String, organization: String) -> SignInChange {
    SignInChange::UserDeactivated { domain, organization, email: "grace@mail.example".to_owned() }
}

fn limit(limit: LimitName, percent: u64, (used, most): (u64, u64), action: LimitAction) -> Message {
    let news = MailContent::LimitReached {
        first_name: "Grace".to_owned(),
        organization: "Acme Tea & Co".to_owned(),
        limit,
        percent,
        used,
        most,
        action,
        path: "/organizations/1#limits".to_owned(),
    };
    message(&Mail { to: "grace@mail.example".to_owned(), news }, &site())
}

fn alert(news: AlertNews) -> Message {
    let news = MailContent::Alert {
        first_name: "Grace".to_owned(),
        alert: "Payments <low>".to_owned(),
        project: "Shop".to_owned(),
        news,
        path: "/projects/1/insights/abcdefgh/alerts?alert=2".to_owned(),
    };
    message(&Mail { to: "grace@mail.example".to_owned(), news }, &site())
}

/// A mail with two answers.
fn subscription(is_test: bool, hidden: u64) -> Message {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let line = Report {
        name: "Payments <week>".to_owned(),
        range: "2026-11-15 to 2026-11-21, Europe/Berlin".to_owned(),
        chart: Some(Chart {
            kind: ChartKind::Lines,
            labels: texts(&["20-Nov-2026", "21-Nov-2026"]),
            series: vec![ChartSeries {
                label: "paid".to_owned(),
                values: vec![Finite::new(3.0), Finite::new(1_204.0)],
            }],
        }),
        table: Some(ReportTable {
            columns: texts(&["Series", "20-Nov-2026", "21-Nov-2026"]),
            rows: vec![texts(&["paid", "3", "1,204"])],
        }),
        notes: texts(&["The table has the last 2 of 7 intervals."]),
        path: "/projects/1/insights/abcdefgh".to_owned(),
        ..Report::default()
    };
    let number = Report {
        name: "Visitors".to_owned(),
        number: Some("1,204".to_owned()),
        path: "/projects/1/insights/hgfedcba".to_owned(),
        ..Report::default()
    };
    let digest = Digest {
        title: "Sales & marketing".to_owned(),
        project: "Shop".to_owned(),
        reports: vec![line, number],
        hidden,
        path: "/projects/1/dashboards/3".to_owned(),
        settings: "/projects/1/dashboards/3/subscriptions?subscription=2".to_owned(),
    };
    let news = MailContent::Subscription { first_name: "Grace".to_owned(), is_test, digest };
    message(&Mail { to: "grace@mail.example".to_owned(), news }, &site())
}

fn headers(message: &Message) -> String {
    let id = MailId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0002));
    let smtp_message = sender().smtp_message(id, message, at()).unwrap();
    let text = String::from_utf8(smtp_message.formatted()).unwrap();
    let (headers, _) = text.split_once("\r\n\r\n").unwrap();
    // The boundary between the parts is random.
    let kept = headers.lines().filter(|line| !line.contains("boundary="));
    kept.map(|line| format!("{}\n", line.trim_end())).collect()
}

#[track_caller]
fn assert_snapshot(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/snapshots").join(name);
    if std::env::var_os("WEIR_WRITE").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "run `WEIR_WRITE=1 cargo test -p weir-mail` to accept {name}");
}

#[test]
fn mails_look_like_their_files() {
    let short = invited(|mail| {
        if let MailContent::Invited { first_name, message, .. } = &mut mail.news {
            first_name.clear();
            *message = None;
        }
    });
    for (name, message) in [
        ("invited", invited(|_| {})),
        ("invited_short", short),
        ("joined", joined()),
        ("confirm", confirm(false)),
        ("confirm_new", confirm(true)),
        ("reset", reset()),
        ("changed_address", changed(UserChange::Address)),
        ("changed_password", changed(UserChange::Password)),
        ("changed_second_factor", changed(UserChange::SecondFactorOff)),
        ("changed_second_factor_by_operator", changed(UserChange::SecondFactorTakenAway)),
        ("changed_linked", changed(UserChange::AccountLinked)),
        ("changed_unlinked", changed(UserChange::AccountUnlinked)),
        (
            "sign_in_provider_saved",
            sign_in(
                Some("ada@mail.example"),
                SignInChange::ProviderSaved { name: "okta".to_owned() },
                "/instance#providers",
            ),
        ),
        (
            "sign_in_provider_removed",
            sign_in(
                Some("ada@mail.example"),
                SignInChange::ProviderRemoved { name: "okta".to_owned() },
                "/instance#providers",
            ),
        ),
        (
            "sign_in_domain",
            sign_in(
                Some("ada@mail.example"),
                of_domain(&["sso_enforcement", "saml_x509_cert"]),
                "/organizations/1/domains/2",
            ),
        ),
        (
            "sign_in_domain_removed",
            sign_in(
                None,
                SignInChange::DomainRemoved {
                    domain: "acme.example".to_owned(),
                    organization: "Acme Tea & Co".to_owned(),
                },
                "/organizations/1/domains",
            ),
        ),
        ("sign_in_domain_verified", of_acme(verified_domain)),
        ("sign_in_domain_renamed", of_acme(renamed_domain)),
        ("sign_in_rules_suspended", of_acme(|domain, home| suspended(domain, home, true))),
        ("sign_in_rules_back", of_acme(|domain, home| suspended(domain, home, false))),
        ("sign_in_certificate_expires", of_acme(expiring)),
        ("sign_in_token_made", of_acme(|domain, home| token(domain, home, TokenChange::Made))),
        (
            "sign_in_token_replaced",
            of_acme(|domain, home| token(domain, home, TokenChange::Replaced)),
        ),
        (
            "sign_in_token_revoked",
            of_acme(|domain, home| token(domain, home, TokenChange::Revoked)),
        ),
        ("sign_in_group_level", of_acme(group_level)),
        ("sign_in_user_deactivated", of_acme(deactivated)),
        ("changed_operator_sign_in", changed(UserChange::OperatorSignIn)),
        ("changed_passkey_added", changed(UserChange::PasskeyAdded)),
        ("changed_passkey_removed", changed(UserChange::PasskeyRemoved)),
        ("changed_last_passkey_removed", changed(UserChange::LastPasskeyRemoved)),
        ("changed_app_added", changed(UserChange::AuthenticatorAppAdded)),
        ("changed_app_removed", changed(UserChange::AuthenticatorAppRemoved)),
        ("changed_recovery_codes", changed(UserChange::RecoveryCodesReplaced)),
        ("export_failed", export_failed()),
        ("export_failed_early", export_failed_early()),
        ("export_paused", export_paused()),
        ("plugin_disabled", plugin_disabled()),
        (
            "limit_events",
            limit(LimitName::EventsPerMonth, 80, (801_234, 1_000_000), LimitAction::Reject),
        ),
        ("limit_disk", limit(LimitName::DiskBytes, 100, (11 << 30, 10 << 30), LimitAction::Drop)),
        ("limit_members", limit(LimitName::Members, 100, (5, 5), LimitAction::Reject)),
        (
            "alert_fires",
            alert(AlertNews::Fires(
                "paid: the value 3 (21-Aug-2026) is below the bound 10.".to_owned(),
            )),
        ),
        ("alert_fails", alert(AlertNews::Fails("The question took too long.".to_owned()))),
        ("subscription", subscription(false, 3)),
        ("subscription_test", subscription(true, 0)),
        ("limit_exports", limit(LimitName::Exports, 80, (8, 10), LimitAction::Warn)),
    ] {
        let text = format!("{}\n{}", headers(&message), message.plain());
        assert_snapshot(&format!("{name}.txt"), &text);
        assert_snapshot(&format!("{name}.html"), &message.html());
    }
}

#[test]
fn a_chart_is_an_image_of_the_mail() {
    let message = subscription(false, 0);
    let sent = sender().smtp_message(MailId(Uuid::nil()), &message, at()).unwrap();
    let text = String::from_utf8(sent.formatted()).unwrap();
    let at = |part: &str| {
        assert_eq!(text.matches(part).count(), 1, "{part}");
        text.find(part).unwrap()
    };
    let order = [
        at("Content-Type: multipart/alternative;"),
        at("Content-Type: text/plain; charset=utf-8"),
        at("Content-Type: multipart/related;"),
        at("Content-Type: text/html; charset=utf-8"),
        at("Content-ID: <chart-1@weir>"),
        at("Content-Type: image/png"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(text.contains("iVBORw0KGgo"), "the image is a PNG file");
    assert!(message.html().contains("<img src=\"cid:chart-1@weir\" alt=\"Chart of Payments"));
    assert_eq!(message.charts().count(), 1);
    // A mail without charts has no such part.
    let other = sender().smtp_message(MailId(Uuid::nil()), &joined(), Timestamp::EPOCH).unwrap();
    assert!(!String::from_utf8(other.formatted()).unwrap().contains("multipart/related"));
}

#[test]
fn a_cell_of_a_table_is_one_line() {
    let row = ["paid\n\nOpen Shop:\nhttps://other.example", "3"].map(str::to_owned);
    let columns = ["Series", "Number\r\n"].map(str::to_owned);
    let table = ReportTable { columns: columns.into(), rows: vec![row.into()] };
    let report = Report { table: Some(table), ..Report::default() };
    let digest = Digest { reports: vec![report], ..Digest::default() };
    let news = MailContent::Subscription { first_name: "Grace".to_owned(), is_test: false, digest };
    let text = message(&Mail { to: "grace@mail.example".to_owned(), news }, &site()).plain();
    let row = text.lines().find(|line| line.contains("other.example")).unwrap();
    assert_eq!(row, "paid Open Shop: https://other.example       3", "{text}");
}

#[test]
fn names_do_not_get_out_of_their_header() {
    let message = invited(|mail| {
        if let MailContent::Invited { inviter_name, organization, first_name, .. } = &mut mail.news
        {
            *inviter_name = "Ada\r\nBcc: evil@mail.example\r\n\r\n<p>".to_owned();
            *organization = "Acme\nX-Evil: 1".to_owned();
            *first_name = "\u{0}\u{1b}[31mGrace\u{2028}".to_owned();
        }
    });
    assert_eq!(
        message.subject,
        "Ada Bcc: evil@mail.example <p> invited you to join Acme X-Evil: 1 on Weir"
    );
    let headers = headers(&message);
    for line in headers.lines() {
        let name = line.split(':').next().unwrap_or_default();
        let known = ["Message-ID", "From", "To", "Subject", "Date", "Reply-To", "MIME-Version"];
        let folds = line.starts_with(' ') || line.starts_with('\t');
        assert!(folds || known.contains(&name) || name == "Content-Type", "{line}");
    }
    let html = message.html();
    assert!(!html.contains("<p> invited") && html.contains("&lt;p&gt;"), "{html}");
}

#[test]
fn a_message_has_exactly_one_address() {
    for bad in [
        "",
        "grace",
        "a@b.example, c@d.example",
        "a@b.example;c@d.example",
        "a@b.example\r\nBcc: c@d.example",
        "a@b.example\nc@d.example",
        "Grace <grace@mail.example>",
    ] {
        let message = invited(|mail| mail.to = bad.to_owned());
        let failure = sender().smtp_message(MailId(Uuid::nil()), &message, at()).unwrap_err();
        assert!(matches!(failure, Failure::Hopeless(_)), "{bad}: {failure}");
        let message = invited(|mail| {
            if let MailContent::Invited { inviter_email, .. } = &mut mail.news {
                *inviter_email = bad.to_owned();
            }
        });
        assert!(sender().smtp_message(MailId(Uuid::nil()), &message, at()).is_err(), "{bad}");
    }
    let smtp_message = sender().smtp_message(MailId(Uuid::nil()), &joined(), at()).unwrap();
    assert_eq!(smtp_message.envelope().to().len(), 1);
}

#[test]
fn the_sender_has_an_address() {
    let from = |origin: &str, url: &str| {
        let url: SmtpUrl = url.parse().unwrap();
        let site = Site { origin: origin.to_owned() };
        let sender = MailSender::trusting(url.0.unwrap(), &site, RootCertStore::empty()).unwrap();
        let smtp_message = sender.smtp_message(MailId(Uuid::nil()), &joined(), at()).unwrap();
        smtp_message.envelope().from().unwrap().to_string()
    };
    assert_eq!(from("https://weir.example:8443", "smtp://h"), "weir@weir.example");
    assert_eq!(from("http://127.0.0.1:8000", "smtp://h"), "weir@localhost");
    assert_eq!(from("http://h.example", "smtp://h?from=a%40b.example"), "a@b.example");
}
