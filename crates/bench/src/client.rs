//! An HTTP/1.1 client with one connection and little overhead: on a small machine the
//! load generator takes processor time from the service.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer; its body is in the buffer of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Status code.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
}

/// The parsed header of an answer.
struct Head {
    status: u16,
    /// Start of the body in the buffer.
    body: usize,
    length: Length,
}

enum Length {
    Bytes(usize),
    Chunked,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If the connection is refused.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 << 10) })
    }

    /// Sends a complete request and reads the answer.
    ///
    /// # Errors
    /// If the connection ends before the answer. The connection cannot be used
    /// afterwards.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            self.more().await?;
            if let Some(head) = head(&self.buffer)? {
                break head;
            }
        };
        let end = match head.length {
            Length::Bytes(length) => {
                while self.buffer.len() < head.body + length {
                    self.more().await?;
                }
                head.body + length
            }
            Length::Chunked => self.join_chunks(head.body).await?,
        };
        Ok(Answer { status: head.status, body: &self.buffer[head.body..end] })
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Joins the chunks that begin at `start`; returns the end of the body.
    async fn join_chunks(&mut self, start: usize) -> io::Result<usize> {
        let (mut written, mut at) = (start, start);
        loop {
            let line = loop {
                if let Some(length) = find(&self.buffer[at..], b"\r\n") {
                    break at + length;
                }
                self.more().await?;
            };
            let size = std::str::from_utf8(&self.buffer[at..line])
                .ok()
                .and_then(|text| usize::from_str_radix(text.trim(), 16).ok())
                .ok_or(io::ErrorKind::InvalidData)?;
            let from = line + 2;
            while self.buffer.len() < from + size + 2 {
                self.more().await?;
            }
            if size == 0 {
                return Ok(written);
            }
            self.buffer.copy_within(from..from + size, written);
            written += size;
            at = from + size + 2;
        }
    }
}

/// The header of an answer, if it is complete.
fn head(buffer: &[u8]) -> io::Result<Option<Head>> {
    let Some(end) = find(buffer, b"\r\n\r\n") else { return Ok(None) };
    let mut lines = buffer[..end].split(|byte| *byte == b'\n');
    let status = lines
        .next()
        .and_then(|line| line.get(9..12))
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    let mut length = Length::Bytes(0);
    for line in lines {
        if let Some(value) = value_of(line, "content-length") {
            length = Length::Bytes(value.parse().map_err(|_| io::ErrorKind::InvalidData)?);
        } else if value_of(line, "transfer-encoding").is_some() {
            length = Length::Chunked;
        }
    }
    Ok(Some(Head { status, body: end + 4, length }))
}

/// The value, if the line is the header with this name.
fn value_of<'a>(line: &'a [u8], name: &str) -> Option<&'a str> {
    let (found, value) = line.split_at_checked(name.len())?;
    if !found.eq_ignore_ascii_case(name.as_bytes()) || value.first() != Some(&b':') {
        return None;
    }
    Some(std::str::from_utf8(value.get(1..)?).ok()?.trim())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::Connection;

    #[tokio::test]
    async fn answers_of_both_forms_and_in_pieces() {
        let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = tcp.accept().await.unwrap();
            let mut asked = [0; 4];
            for answer in [
                &["HTTP/1.1 200 OK\r\nContent-", "Length: 5\r\n\r\nhe", "llo"][..],
                &["HTTP/1.1 204 No Content\r\n\r\n"],
                &[
                    "HTTP/1.1 503 x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc",
                    "\r\n2\r\nde\r\n0\r\n\r\n",
                ],
            ] {
                stream.read_exact(&mut asked).await.unwrap();
                for piece in answer {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        });
        let mut connection = Connection::open(address).await.unwrap();
        for (status, body) in [(200, "hello"), (204, ""), (503, "abcde")] {
            let answer = connection.send(b"ask.").await.unwrap();
            assert_eq!((answer.status, answer.body), (status, body.as_bytes()));
        }
        server.await.unwrap();
        assert!(connection.send(b"ask.").await.is_err());
    }
}
