//! Reading, checking and writing settings.

use super::{ByteSize, Config, NameServers, Networks, PublicUrl, Settings, SignInProviders};

fn file(text: &str) -> Result<Settings, String> {
    toml::from_str(text).map_err(|e| e.to_string())
}

#[test]
fn flags_win_over_the_file_and_that_over_defaults() {
    let given = Settings { listen: Some("[::]:1".to_owned()), ..Settings::default() };
    let config = given.over(file("listen = '1.2.3.4:5'\nrate_per_hour = 7").unwrap());
    assert_eq!((config.listen.as_str(), config.rate_per_hour), ("[::]:1", 7));
    assert_eq!(config.rate_per_minute, 480);
}

#[test]
fn unknown_keys_and_bad_values_are_named() {
    let unknown = file("listne = 'x'").unwrap_err();
    assert!(unknown.contains("listne"), "{unknown}");
    let bad = file("log_format = 'xml'").unwrap_err();
    assert!(bad.contains("text"), "{bad}");
}

#[test]
fn faults_of_a_file_are_described_without_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.toml");
    for (text, position) in [
        ("log = 'warn'\nsmtp_url = smtp://user:hushed@mail.example\n", "line 2, column "),
        ("smtp_url = 'imap://user:hushed@mail.example'\n", "line 1, column "),
        ("smtp_url = \"smtp://user:hushed@mail.example\nlog = 'warn'\n", "line "),
        ("\nlogs = 'warn'\n", "line 2, column 1: unknown field `logs`"),
    ] {
        std::fs::write(&path, text).unwrap();
        let fault = Config::load(Settings::default(), Some(&path)).unwrap_err().to_string();
        assert!(fault.contains(position) && !fault.contains("hushed"), "{fault}");
        assert!(!fault.contains('\n'), "{fault}");
    }
}

#[test]
fn what_is_written_can_be_read_again() {
    let text = "public_url = 'https://weir.example'\ntrusted_proxies = ['10.0.0.0/8', '::1']\n\
                disk_low = '3MiB'\nmetrics_listen = 'off'\nstore = 'mem://'\n\
                egress_allow = '127.0.0.1, 10.1.0.0/16'\nlocal_exports = '/srv/exports'\n\
                smtp_url = 'smtps://u:hushed@mail.example'\n\
                segments = 's3://events/weir/'\nsegments_secret_key = 'hushed'\n\
                segments_access_key = 'key'\nsegments_endpoint = 'http://127.0.0.1:9'\n\
                limit_events_per_month = '1000000 reject'\nlimit_disk = '20GiB drop'\n\
                sign_in_providers = ['github id hushed', 'okta id hushed https://o.example']\n\
                proxy_protocol = true\nacme_domains = ['weir.example', 't.shop.example']\n\
                acme_contact = 'ada@mail.example'\nredirect_listen = '0.0.0.0:80'\n\
                traces_endpoint = 'http://127.0.0.1:4318/v1/traces'\ntraces_share = 0.1\n\
                traces_headers = ['authorization=Bearer hushed', 'x-team=hushed']\n\
                backup_every = '90m'\nbackup_keep = 7";
    let config: Config = Settings::default().over(file(text).unwrap());
    let written = config.to_toml().unwrap();
    let again = Settings::default().over(file(&written).unwrap()).to_toml().unwrap();
    assert_eq!(written, again);
    assert!(written.contains("disk_low = \"3MiB\""), "{written}");
    assert!(!written.contains("hushed") && written.contains("smtps://u:***@"), "{written}");
    assert!(written.contains("segments_secret_key = \"***\""), "{written}");
    assert!(written.contains("segments = \"s3://events/weir\""), "{written}");
    let providers = "sign_in_providers = \"github id ***, okta id *** https://o.example\"";
    assert!(written.contains(providers), "{written}");
    assert!(written.contains("trusted_proxies = \"10.0.0.0/8,::1/128\""), "{written}");
    assert!(written.contains("egress_allow = \"127.0.0.1/32,10.1.0.0/16\""), "{written}");
    assert!(written.contains("local_exports = \"/srv/exports\""), "{written}");
    assert!(written.contains("limit_events_per_month = \"1000000 reject\""), "{written}");
    assert!(written.contains("limit_disk = \"20GiB drop\""), "{written}");
    assert!(written.contains("limit_members = \"\""), "{written}");
    assert!(written.contains("backup_every = \"90m\""), "{written}");
    assert!(written.contains("proxy_protocol = true"), "{written}");
    let names = "acme_domains = \"weir.example,t.shop.example\"";
    assert!(written.contains(names), "{written}");
    let headers = "traces_headers = \"authorization=***,x-team=***\"";
    assert!(written.contains(headers), "{written}");
    assert!(written.contains("traces_share = \"0.1\""), "{written}");
}

#[test]
fn the_password_of_the_database_is_not_written() {
    let text = "store = 'postgres://weir:hushed@a,b:5433/events?sslmode=require'\n\
                store_connections = 8\naccept_single_database = true";
    let config: Config = Settings::default().over(file(text).unwrap());
    let written = config.to_toml().unwrap();
    let store = "store = \"postgres://weir:***@a:5432,b:5433/events?sslmode=require\"";
    assert!(written.contains(store) && !written.contains("hushed"), "{written}");
    let fault = file("store = 'postgres://weir:hushed@/events'").unwrap_err();
    assert!(fault.contains("expected postgres://") && !fault.contains("hushed"), "{fault}");
    let few = Settings::default().over(file("store_connections = 1").unwrap()).checked();
    assert!(few.is_err());
}

#[test]
fn values_are_checked() {
    for bad in ["ftp://a", "http://", "http://a/b", "http://u@a", "a.example", "http://a?b"] {
        assert!(bad.parse::<PublicUrl>().is_err(), "{bad}");
    }
    let url: PublicUrl = "https://a.example:8443/".parse().unwrap();
    assert_eq!(url.origin().as_deref(), Some("https://a.example:8443"));
    for bad in ["", "x", "1TB", "-1", "99999999999GiB"] {
        assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
    }
    let networks: Networks = "10.0.0.0/8, 192.0.2.1".parse().unwrap();
    assert!(networks.contain("::ffff:10.1.2.3".parse().unwrap()));
    assert!(!networks.contain("192.0.2.2".parse().unwrap()));
    assert!("10.0.0.0/33".parse::<Networks>().is_err());
    let servers: NameServers = "9.9.9.9, ::1,[::1]:5353".parse().unwrap();
    assert_eq!(servers.to_string(), "9.9.9.9:53,[::1]:53,[::1]:5353");
    assert!("dns.example".parse::<NameServers>().is_err());
    for bad in [
        "segments = 's3://events'",
        "segments = 's3://events'\nsegments_access_key = 'key'",
        "segments = 's3://events'\nsegments_access_key = 'key'\n\
         segments_secret_key = 'secret'\nsegments_region = 'a b'",
    ] {
        assert!(Settings::default().over(file(bad).unwrap()).checked().is_err(), "{bad}");
    }
    assert!(file("segments = '/srv/events'").is_err());
    let bucket = "segments = 's3://events'\nsegments_access_key = 'key'\n\
                  segments_secret_key = 'secret'";
    for (text, fault) in [
        ("backup_to = '/mnt/backups'".to_owned(), None),
        ("backup_to = 'ftp://backups'".to_owned(), Some("a directory or s3://")),
        ("backup_to = 's3://backups'".to_owned(), Some("an access key and its secret")),
        (
            "backup_to = 's3://backups/weir'\nbackup_access_key = 'key'\n\
             backup_secret_key = 'secret'"
                .to_owned(),
            None,
        ),
        ("backup_to = '/mnt/backups'\nstore = 'mem://'".to_owned(), Some("in memory")),
        (
            "backup_to = '/mnt/backups'\nstore = 'postgres://weir@db/weir'".to_owned(),
            Some("its own tools"),
        ),
        (format!("backup_to = '/mnt/backups'\n{bucket}"), None),
    ] {
        let checked = Settings::default().over(file(&text).unwrap()).checked();
        let found = checked.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(found.is_empty(), fault.is_none(), "{text}: {found}");
        assert!(found.contains(fault.unwrap_or_default()), "{text}: {found}");
    }
    for (bad, part) in [
        ("okta id secret", "needs an issuer"),
        ("github id", "needs a client id and a client secret"),
        ("Okta id secret https://o.example", "needs another name"),
        ("github a b, github c d", "is there twice"),
        ("github id secret https://o.example more", "has more than"),
    ] {
        let error = bad.parse::<SignInProviders>().unwrap_err();
        assert!(error.contains(part) && !error.contains("secret https"), "{error}");
    }
    for bad in [
        "query_memory = '1MiB'",
        "query_seconds = 4",
        "query_seconds = 301",
        "query_concurrency = 0",
    ] {
        assert!(Settings::default().over(file(bad).unwrap()).checked().is_err(), "{bad}");
    }
    let low_above_high = file("disk_low = '2GiB'").unwrap();
    assert!(Settings::default().over(low_above_high).checked().is_err());
}

#[test]
fn settings_of_connections_agree() {
    let url = "public_url = 'https://weir.example'";
    let files = "tls_certificate = '/a.pem'\ntls_key = '/a.key'";
    let acme = "acme_domains = 'weir.example'";
    for (text, fault) in [
        (format!("{url}\n{files}\nredirect_listen = '0.0.0.0:80'"), None),
        (format!("{url}\n{acme}\nredirect_listen = '0.0.0.0:80'"), None),
        ("proxy_protocol = true\ntrusted_proxies = '10.0.0.1'".to_owned(), None),
        (format!("{url}\ntls_key = '/a.key'"), Some("need each other")),
        (format!("{url}\ntls_certificate = '/a.pem'"), Some("need each other")),
        (format!("{url}\n{files}\n{acme}"), Some("either tls_certificate or acme_domains")),
        (files.to_owned(), Some("begins with https://")),
        (format!("public_url = 'http://weir.example'\n{acme}"), Some("begins with https://")),
        (format!("{url}\nredirect_listen = '0.0.0.0:80'"), Some("redirect_listen needs")),
        ("proxy_protocol = true".to_owned(), Some("needs trusted_proxies")),
        ("traces_parent = true".to_owned(), Some("traces_parent needs trusted_proxies")),
    ] {
        let checked = Settings::default().over(file(&text).unwrap()).checked();
        match (checked, fault) {
            (Ok(_), None) => {}
            (Err(error), Some(part)) => assert!(error.to_string().contains(part), "{error}"),
            (checked, _) => panic!("{text}: {:?}", checked.map(drop)),
        }
    }
}

#[test]
fn the_header_that_demands_https_has_the_seconds_of_the_setting() {
    for (text, expected) in [
        ("public_url = 'https://weir.example'", Some("max-age=31536000")),
        ("public_url = 'https://weir.example'\nhsts_seconds = 300", Some("max-age=300")),
        ("public_url = 'https://weir.example'\nhsts_seconds = 0", None),
        ("public_url = 'http://weir.example'", None),
        ("", None),
    ] {
        let config = Settings::default().over(file(text).unwrap());
        let found = config.hsts();
        assert_eq!(found.as_ref().map(|value| value.to_str().unwrap()), expected, "{text}");
    }
}
