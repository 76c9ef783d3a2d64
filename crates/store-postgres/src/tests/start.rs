//! Which databases are opened.

use super::*;
use crate::OpenError;

async fn refusal(settings: &Settings, directory: Uuid) -> OpenError {
    match Postgres::open(settings, directory).await {
        Ok(_) => panic!("the database was opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_server_that_could_lose_data_is_refused() {
    let server = Server::start().await;
    let error = refusal(&settings(&server.url("postgres")), Uuid::nil()).await;
    let OpenError::Unsuitable(faults) = &error else { panic!("{error}") };
    assert_eq!(faults, &["its fsync is not on", "its data_checksums is not on"]);
    assert_eq!(server.ask("SELECT to_regclass('weir.kv') IS NULL"), ["t"], "nothing was changed");
}

#[tokio::test]
async fn a_server_without_standbys_is_accepted_if_the_operator_accepts_that() {
    let server = Server::durable().await;
    let accepts = settings(&server.url("postgres"));
    let strict = Settings { accepts_single_database: false, ..accepts.clone() };
    let error = refusal(&strict, Uuid::nil()).await.to_string();
    assert!(error.contains("synchronous_standby_names is empty"), "{error}");
    let storage = Postgres::open(&accepts, Uuid::nil()).await.unwrap();
    set(&storage, "a", "1").await;
}

#[tokio::test]
async fn a_database_belongs_to_one_data_directory() {
    let server = Server::durable().await;
    let settings = settings(&server.url("postgres"));
    let storage = Postgres::open(&settings, Uuid::from_u128(1)).await.unwrap();
    set(&storage, "a", "1").await;
    let error = refusal(&settings, Uuid::from_u128(2)).await;
    assert!(matches!(error, OpenError::OtherDirectory), "{error}");
    let again = Postgres::open(&settings, Uuid::from_u128(1)).await.unwrap();
    assert_eq!(stored(&again, "a").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_table_of_a_newer_program_is_refused() {
    let server = Server::durable().await;
    open(&server).await;
    let _ = server.ask("UPDATE weir.layout SET version = 2");
    let error = refusal(&settings(&server.url("postgres")), Uuid::nil()).await;
    assert!(matches!(error, OpenError::NewerLayout { found: 2, known: 1 }), "{error}");
}

#[tokio::test]
async fn a_wrong_password_or_database_is_named_and_the_password_is_not() {
    let server = Server::durable().await;
    let url = format!("postgres://weir:wrong-horse@{}/postgres", server.address());
    for url in [url, server.url("missing")] {
        let error = refusal(&settings(&url), Uuid::nil()).await.to_string();
        assert!(error.contains("SQLSTATE"), "{error}");
        assert!(!error.contains("horse"), "{error}");
    }
}
