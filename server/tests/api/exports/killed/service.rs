//! The service as a process of this test program. The real program has no setting for the
//! addresses of Snowflake, Google, Databricks and the S3 of Redshift, and must not have
//! one. All other parts are the same.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;
use weir_export::destinations::DestinationAddresses;
use weir_server::config::Settings;
use weir_server::serve::{Options, Server};

use super::WITH_THE_TEST;

/// Environment variable with the data directory of the process.
const DATA: &str = "WEIR_TEST_DATA";
const HOST: &str = "WEIR_TEST_HOST";
/// The path of [`the_process_of_another_test`].
const NAME: &str = "exports::killed::service::the_process_of_another_test";

/// A process that serves the data in this folder.
pub(super) fn command(folder: &Path, host: &str) -> Command {
    let [program, arguments @ ..] = WITH_THE_TEST;
    let mut command = Command::new(program);
    command.args(arguments).arg(std::env::current_exe().unwrap());
    command.args(["--exact", NAME, "--nocapture"]);
    command.env_clear().env(DATA, folder.join("data")).env(HOST, host);
    // See .cargo/config.toml.
    command.env("RUST_MIN_STACK", "16777216");
    command.current_dir(folder).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Not a test on its own: [`command`] starts it as the service, until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn the_process_of_another_test() {
    let (Some(data), Ok(host)) = (std::env::var_os(DATA), std::env::var(HOST)) else { return };
    let config = Settings {
        listen: Some("127.0.0.1:0".to_owned()),
        data: Some(data.into()),
        metrics_listen: Some("off".parse().unwrap()),
        egress_allow: Some("127.0.0.1".parse().unwrap()),
        rate_per_minute: Some(0),
        rate_per_hour: Some(0),
        ..Settings::default()
    }
    .over(Settings::default());
    let destination_addresses = DestinationAddresses {
        bigquery: host.clone(),
        databricks: host.clone(),
        s3: host.clone(),
        snowflake: host,
    };
    let options = Options { destination_addresses, ..Options::default() };
    let server = Server::start(config, options).await.unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "Listening on http://{}", server.address).unwrap();
    out.flush().unwrap();
    server.failed().await;
}
