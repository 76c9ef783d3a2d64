//! PostgreSQL with the COPY of Redshift from a bucket: a proxy that passes all statements
//! on but this one, which it executes. There is no Redshift that runs locally.
//!
//! The statement must have exactly the form that Redshift's documentation allows and a
//! run needs. Any other form ends the connection with a panic that names the reason.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

use super::python::python;

/// Reads the manifest and its files, and checks them. Prints the rows in the form that
/// `COPY … FROM STDIN` reads.
const READ: &str = r#"
import gzip, json, sys, boto3
given = json.load(sys.stdin)
s3 = boto3.client("s3", endpoint_url=given["s3"], region_name="eu-west-1",
                  aws_access_key_id="a", aws_secret_access_key="b")
def get(url):
    place = url.removeprefix("s3://events/")
    assert place != url, url
    return s3.get_object(Bucket="events", Key=place)["Body"].read()
manifest = json.loads(get(given["manifest"]))
assert list(manifest) == ["entries"] and manifest["entries"], manifest
def cell(value):
    assert value is None or type(value) is str, value
    if value is None:
        return "\\N"
    for plain, written in [("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")]:
        value = value.replace(plain, written)
    return value
rows = []
for entry in manifest["entries"]:
    assert sorted(entry) == ["mandatory", "url"] and entry["mandatory"] is True, entry
    for line in gzip.decompress(get(entry["url"])).decode().removesuffix("\n").split("\n"):
        assert len(line.encode()) < 4 << 20
        row = json.loads(line, object_pairs_hook=list)
        assert [name for name, _ in row] == given["columns"], row
        rows.append("\t".join(cell(value) for _, value in row) + "\n")
print(json.dumps("".join(rows)))
"#;

/// The proxy. Ends when dropped.
pub struct RedshiftCopy {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    to: SocketAddr,
    /// The address of the server with the bucket `events`.
    s3: String,
    asked: Mutex<Vec<String>>,
}

impl RedshiftCopy {
    /// The role that has access to the bucket.
    pub const ROLE: &'static str = "arn:aws:iam::123456789012:role/reader";
    /// The keys that have access to the bucket, as the settings contain them. One needs
    /// quoting in SQL.
    pub const KEYS: [&'static str; 2] = ["AKIAREADER", "its'key"];

    /// Starts a proxy to this server. The bucket `events` is at the address `s3`.
    pub async fn start(to: SocketAddr, s3: String) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let shared = Arc::new(Shared { to, s3, asked: Mutex::default() });
        let accepting = Arc::clone(&shared);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = tcp.accept().await {
                let shared = Arc::clone(&accepting);
                tokio::spawn(async move {
                    // Either side may be gone.
                    let _ = shared.serve(client).await;
                });
            }
        });
        Self { address, shared, serving }
    }

    /// The address that the proxy listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The COPY statements that the proxy executed.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for RedshiftCopy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A message of the protocol: its kind and its body.
type Message = (u8, Vec<u8>);

impl Shared {
    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let mut server = TcpStream::connect(self.to).await?;
        // The client asks whether the server speaks TLS. It does not.
        let mut question = [0; 8];
        client.read_exact(&mut question).await?;
        server.write_all(&question).await?;
        let answer = server.read_u8().await?;
        client.write_all(&[answer]).await?;
        // The only message without a kind.
        let length = client.read_u32().await?;
        let mut start = vec![0; usize::try_from(length).unwrap() - 4];
        client.read_exact(&mut start).await?;
        server.write_all(&[&length.to_be_bytes()[..], &start].concat()).await?;

        let (from_client, mut to_client) = client.into_split();
        let (from_server, mut to_server) = server.into_split();
        let (mut asked, mut answers) = (messages(from_client), messages(from_server));
        loop {
            tokio::select! {
                message = asked.recv() => {
                    let Some(message) = message else { return Ok(()) };
                    match statement(&message) {
                        Some(sql) => {
                            self.load(sql, &mut to_server, &mut answers, &mut to_client).await?;
                        }
                        None => send(&mut to_server, &message).await?,
                    }
                }
                message = answers.recv() => {
                    let Some(message) = message else { return Ok(()) };
                    send(&mut to_client, &message).await?;
                }
            }
        }
    }

    /// Inserts the rows, or makes the server report the error of Redshift. The caller
    /// passes on the last answers.
    #[expect(clippy::panic, reason = "test support fails by panicking")]
    async fn load(
        &self,
        sql: &str,
        to_server: &mut OwnedWriteHalf,
        answers: &mut UnboundedReceiver<Message>,
        to_client: &mut OwnedWriteHalf,
    ) -> io::Result<()> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(sql.to_owned());
        let asked = CopyParts::read(sql).unwrap_or_else(|| panic!("not a statement: {sql}"));
        if let Some(words) = refusal(&asked.authorization) {
            let raise = format!(
                "DO $$BEGIN RAISE EXCEPTION USING ERRCODE = 'XX000', MESSAGE = '{words}'; END$$"
            );
            return send(to_server, &query(&raise)).await;
        }
        let given = json!({"s3": self.s3, "manifest": asked.manifest, "columns": asked.columns});
        let Value::String(rows) = python(READ, &given).await else { panic!("no rows") };
        send(to_server, &query(&format!("COPY {} FROM STDIN", asked.target))).await?;
        let Some(answer) = answers.recv().await else { return Ok(()) };
        if answer.0 != b'G' {
            return send(to_client, &answer).await;
        }
        send(to_server, &(b'd', rows.into_bytes())).await?;
        send(to_server, &(b'c', Vec::new())).await
    }
}

/// The parts of a COPY statement.
struct CopyParts {
    /// The table and its columns, such as `weir_rows ("uuid", "event")`.
    target: String,
    columns: Vec<String>,
    manifest: String,
    authorization: String,
}

impl CopyParts {
    fn read(sql: &str) -> Option<Self> {
        let rest = sql.strip_prefix("COPY ")?;
        let (target, rest) = rest.split_once(" FROM ")?;
        let (manifest, rest) = literal(rest)?;
        let (authorization, rest) = rest.strip_prefix(' ')?.split_once(" REGION ")?;
        let options = "'eu-west-1' MANIFEST FORMAT AS JSON 'auto' GZIP TIMEFORMAT 'auto' \
                       COMPUPDATE OFF";
        if rest != options {
            return None;
        }
        let columns = target.strip_prefix("weir_rows (")?.strip_suffix(')')?;
        let unquoted = |name: &str| Some(name.strip_prefix('"')?.strip_suffix('"')?.to_owned());
        Some(Self {
            target: target.to_owned(),
            columns: columns.split(", ").map(unquoted).collect::<Option<_>>()?,
            manifest,
            authorization: authorization.to_owned(),
        })
    }
}

/// A text in quotation marks, and the rest of the statement.
fn literal(sql: &str) -> Option<(String, &str)> {
    let mut rest = sql.strip_prefix('\'')?;
    let mut text = String::new();
    loop {
        let (part, behind) = rest.split_once('\'')?;
        text.push_str(part);
        match behind.strip_prefix('\'') {
            Some(behind) => {
                text.push('\'');
                rest = behind;
            }
            None => return Some((text, behind)),
        }
    }
}

/// Redshift's error for credentials without access.
fn refusal(authorization: &str) -> Option<&'static str> {
    let [id, secret] = RedshiftCopy::KEYS.map(|key| key.replace('\'', "''"));
    if authorization == format!("IAM_ROLE '{}'", RedshiftCopy::ROLE)
        || authorization == format!("ACCESS_KEY_ID '{id}' SECRET_ACCESS_KEY '{secret}'")
    {
        return None;
    }
    Some(match authorization.starts_with("IAM_ROLE ") {
        true => {
            "User arn:aws:redshift:eu-west-1:123456789012:dbuser:c/weir is not authorized to \
             assume IAM Role arn:aws:iam::123456789012:role/other"
        }
        false => {
            "S3ServiceException:The AWS Access Key Id you provided does not exist in our \
             records.,Status 403,Error InvalidAccessKeyId"
        }
    })
}

/// The COPY statement in a message, if it has one.
fn statement((kind, body): &Message) -> Option<&str> {
    let sql = std::str::from_utf8(body).ok()?.strip_suffix('\0')?;
    (*kind == b'Q' && sql.starts_with("COPY ") && sql.contains("s3://")).then_some(sql)
}

fn query(sql: &str) -> Message {
    (b'Q', [sql.as_bytes(), b"\0"].concat())
}

/// The messages of one side, until its end.
fn messages(mut stream: OwnedReadHalf) -> UnboundedReceiver<Message> {
    let (given, taken) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok(kind) = stream.read_u8().await {
            let Ok(length) = stream.read_u32().await else { return };
            let mut body = vec![0; usize::try_from(length).unwrap() - 4];
            if stream.read_exact(&mut body).await.is_err() || given.send((kind, body)).is_err() {
                return;
            }
        }
    });
    taken
}

async fn send(to: &mut OwnedWriteHalf, (kind, body): &Message) -> io::Result<()> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    to.write_all(&[&[*kind], &length[..], body].concat()).await
}
