//! The weir server: configuration, wiring, HTTP, capture endpoints, command line.
//!
//! What belongs here: code that knows HTTP or the process. Requests arrive through
//! [`listener`] and [`dispatcher`]. [`router`] has the routes of [`api`]; [`capture`], [`mcp`],
//! [`probes`], [`scim`] and [`web`] answer the others.
//! What does not: rules of management data (`weir-service`), what a captured event means
//! (`weir-capture`), statements (`weir-store`).

pub mod alerts;
pub mod api;
pub mod app;
pub mod applying;
pub mod background;
pub mod backup;
pub mod capture;
pub mod cli;
pub mod config;
pub mod demo;
pub mod dispatcher;
pub mod doctor;
pub mod domains;
pub mod exports;
pub mod files;
pub mod http;
pub mod limits;
pub mod listener;
pub mod log_tools;
pub mod logs;
pub mod mail;
pub mod master_key;
pub mod mcp;
pub mod metrics;
pub mod openapi;
pub mod organizations;
pub mod plugins;
pub mod probes;
pub mod questions;
pub mod redirect;
pub mod router;
pub mod scim;
pub mod seal;
pub mod serve;
pub mod setup;
pub mod site_apps;
pub mod sso;
pub mod starting;
pub mod subscriptions;
pub mod throttle;
pub mod tokens;
pub mod traces;
pub mod upgrade;
pub mod users;
pub mod web;

pub use app::App;
pub use config::Config;
