//! A name server for tests: plain DNS on a free port, over UDP and TCP. The test sets its
//! answers. It reads and writes messages by hand, so that a bug of the resolver's library
//! cannot hide in both sides.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::{JoinHandle, JoinSet};

/// The answer to a query for a name. A name without an answer does not exist.
#[derive(Debug, Clone)]
pub enum DnsAnswer {
    /// TXT records, each with its strings. The answer to queries of every type.
    Txt(Vec<Vec<String>>),
    /// The same, too large for UDP.
    TxtOverTcp(Vec<Vec<String>>),
    /// A CNAME record, with the records of its target in the same answer.
    Alias(String),
    /// A CNAME record alone: the resolver must ask for the target.
    AliasAlone(String),
    /// An A record. The name has no other records.
    Address(Ipv4Addr),
    /// The name exists and has no record.
    Nothing,
    /// The server failed.
    Failure,
    /// The server refuses.
    Refusal,
    /// The query is not answered.
    Silence,
    /// An answer that is not a DNS message.
    Garbage,
}

impl DnsAnswer {
    /// One record of one string.
    pub fn txt(text: &str) -> Self {
        Self::Txt(vec![vec![text.to_owned()]])
    }
}

/// The name server. When it is dropped, it stops and closes its connections.
pub struct DnsServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Default)]
struct Shared {
    answers: Mutex<HashMap<String, DnsAnswer>>,
    query_count: AtomicUsize,
}

impl DnsServer {
    /// Starts the server on a free port.
    pub async fn start() -> Self {
        let (tcp, udp) = loop {
            let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
            // Another program may use the same port for the other protocol.
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
                break (tcp, udp);
            }
        };
        let address = tcp.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let over_udp = tokio::spawn(serve_udp(udp, Arc::clone(&shared)));
        let over_tcp = tokio::spawn(serve_tcp(tcp, Arc::clone(&shared)));
        Self { address, shared, tasks: [over_udp, over_tcp] }
    }

    /// The address of the server, in the form of the setting `dns_servers`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the answer to queries for this name from now on.
    pub fn set(&self, name: &str, answer: DnsAnswer) {
        let mut answers = self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(name.to_ascii_lowercase(), answer);
    }

    /// The number of queries so far.
    pub fn query_count(&self) -> usize {
        self.shared.query_count.load(Ordering::SeqCst)
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn serve_udp(udp: UdpSocket, shared: Arc<Shared>) {
    let mut buffer = [0; 1500];
    while let Ok((length, from)) = udp.recv_from(&mut buffer).await {
        if let Some(answer) = shared.answer(&buffer[..length], false) {
            // The resolver may be gone.
            let _ = udp.send_to(&answer, from).await;
        }
    }
}

async fn serve_tcp(tcp: TcpListener, shared: Arc<Shared>) {
    // Its tasks end when it is dropped with this one.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = tcp.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // The resolver may close the connection.
            let _ = serve_connection(stream, &shared).await;
        });
    }
}

async fn serve_connection(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    loop {
        let length = stream.read_u16().await?;
        let mut query = vec![0; usize::from(length)];
        stream.read_exact(&mut query).await?;
        if let Some(answer) = shared.answer(&query, true) {
            stream.write_u16(u16::try_from(answer.len()).unwrap()).await?;
            stream.write_all(&answer).await?;
        }
    }
}

/// Types of records.
const A: u16 = 1;
const CNAME: u16 = 5;
const TXT: u16 = 16;
/// Response codes.
const NO_ERROR: u8 = 0;
const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;
const REFUSED: u8 = 5;

impl Shared {
    fn answer_for(&self, name: &str) -> Option<DnsAnswer> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(&name.to_ascii_lowercase()).cloned()
    }

    /// The bytes to send, if there are any.
    fn answer(&self, query: &[u8], is_tcp: bool) -> Option<Vec<u8>> {
        let (name, question) = parse_question(query)?;
        self.query_count.fetch_add(1, Ordering::SeqCst);
        let message = |code: u8, is_truncated: bool, records: &[Vec<u8>]| {
            let mut bytes = query[..2].to_vec();
            // Flags: a response, authoritative, recursion desired and available.
            let flags = 0x85 | if is_truncated { 0x02 } else { 0 };
            bytes.extend([flags, 0x80 | code, 0, 1]);
            bytes.extend(u16::try_from(records.len()).unwrap().to_be_bytes());
            bytes.extend([0, 0, 0, 0]);
            bytes.extend(question);
            bytes.extend(records.concat());
            Some(bytes)
        };
        match self.answer_for(&name) {
            None => message(NO_SUCH_NAME, false, &[]),
            Some(DnsAnswer::Nothing) => message(NO_ERROR, false, &[]),
            Some(DnsAnswer::Address(address)) => {
                // The question ends with its type and its class.
                let is_asked = question[question.len() - 4..question.len() - 2] == [0, 1];
                let records = is_asked.then(|| record(&name, A, &address.octets()));
                message(NO_ERROR, false, records.as_slice())
            }
            Some(DnsAnswer::Failure) => message(SERVER_FAILURE, false, &[]),
            Some(DnsAnswer::Refusal) => message(REFUSED, false, &[]),
            Some(DnsAnswer::Silence) => None,
            Some(DnsAnswer::Garbage) => Some(b"\xff\xff this is no message \0\0".to_vec()),
            Some(DnsAnswer::TxtOverTcp(_)) if !is_tcp => message(NO_ERROR, true, &[]),
            Some(DnsAnswer::Txt(records) | DnsAnswer::TxtOverTcp(records)) => {
                message(NO_ERROR, false, &texts(&name, &records))
            }
            Some(DnsAnswer::AliasAlone(target)) => {
                message(NO_ERROR, false, &[record(&name, CNAME, &encoded(&target))])
            }
            Some(DnsAnswer::Alias(target)) => {
                let mut records = vec![record(&name, CNAME, &encoded(&target))];
                if let Some(DnsAnswer::Txt(behind)) = self.answer_for(&target) {
                    records.extend(texts(&target, &behind));
                }
                message(NO_ERROR, false, &records)
            }
        }
    }
}

/// The name in the question of a query, and the bytes of the question.
fn parse_question(query: &[u8]) -> Option<(String, &[u8])> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = query.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).into_owned());
        at += length;
    }
    Some((labels.join("."), query.get(12..at + 4)?))
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes
}

fn texts(name: &str, records: &[Vec<String>]) -> Vec<Vec<u8>> {
    let data = |strings: &Vec<String>| {
        let mut bytes = Vec::new();
        for string in strings {
            bytes.push(u8::try_from(string.len()).unwrap());
            bytes.extend(string.bytes());
        }
        bytes
    };
    records.iter().map(|strings| record(name, TXT, &data(strings))).collect()
}

fn record(name: &str, kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = encoded(name);
    bytes.extend(kind.to_be_bytes());
    // Class IN, valid for an hour.
    bytes.extend([0, 1, 0, 0, 0x0e, 0x10]);
    bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend(data);
    bytes
}
