//! The header of the PROXY protocol, versions 1 and 2: the address of the client before the
//! bytes that the client sends.
//!
//! What belongs here: reading one header, and no byte behind it. What does not: from whom
//! it is accepted, and for how long it is awaited (`opening`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The first bytes of version 2. No header of version 1 is as short.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The first bytes of version 1.
const WORD: &[u8] = b"PROXY ";
/// Most bytes of a header of version 1, with the end of the line.
const LONGEST_LINE: usize = 107;
/// Most bytes of a header of version 2 after the first sixteen: addresses, and fields that
/// are not used.
const LONGEST: usize = 2048;

/// Version 2: the connection is the proxy's own, such as a check of its health.
const LOCAL: u8 = 0;
/// Version 2: the proxy connects for a client.
const PROXY: u8 = 1;
/// Version 2: TCP over IPv4, and over IPv6.
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// Reads a header. The result is the address of the client, or `None` if the header names
/// none, as in checks of the proxy itself.
///
/// # Errors
/// `InvalidData` if this is no header, and errors of the stream.
pub(super) async fn client<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<SocketAddr>> {
    let mut start = [0; SIGNATURE.len()];
    stream.read_exact(&mut start).await?;
    if start == SIGNATURE {
        return binary(stream).await;
    }
    if !start.starts_with(WORD) {
        return Err(invalid());
    }
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == LONGEST_LINE {
            return Err(invalid());
        }
        line.push(stream.read_u8().await?);
    }
    let line = line.strip_prefix(WORD).and_then(|line| line.strip_suffix(b"\r\n"));
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    line.and_then(of_line).ok_or_else(invalid)
}

/// The address in a line of version 1. The inner `None`: it names none.
fn of_line(line: &str) -> Option<Option<SocketAddr>> {
    let mut words = line.split(' ');
    let family = words.next()?;
    // The rest of such a line has no meaning.
    if family == "UNKNOWN" {
        return Some(None);
    }
    let (source, target) = (words.next()?, words.next()?);
    let (from, to) = (words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let address = |text: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (source, _target) = (address(source)?, address(target)?);
    let (from, _to): (u16, u16) = (from.parse().ok()?, to.parse().ok()?);
    Some(Some(SocketAddr::new(source, from)))
}

/// Reads a header of version 2 after its signature.
async fn binary<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<SocketAddr>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version_and_command, family, high, low] = head;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if version_and_command >> 4 != 2 || length > LONGEST {
        return Err(invalid());
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    match (version_and_command & 0xf, family) {
        (LOCAL, _) => Ok(None),
        (PROXY, TCP4) => rest.first_chunk().and_then(of_four).map(Some).ok_or_else(invalid),
        (PROXY, TCP6) => rest.first_chunk().and_then(of_six).map(Some).ok_or_else(invalid),
        // Other families have no address that could be the client's.
        (PROXY, _) => Ok(None),
        _ => Err(invalid()),
    }
}

/// Source and target address, source and target port.
fn of_four(bytes: &[u8; 12]) -> Option<SocketAddr> {
    let address: [u8; 4] = *bytes.first_chunk()?;
    let port: [u8; 2] = *bytes.get(8..)?.first_chunk()?;
    Some(SocketAddr::new(Ipv4Addr::from(address).into(), u16::from_be_bytes(port)))
}

/// The same with longer addresses.
fn of_six(bytes: &[u8; 36]) -> Option<SocketAddr> {
    let address: [u8; 16] = *bytes.first_chunk()?;
    let port: [u8; 2] = *bytes.get(32..)?.first_chunk()?;
    Some(SocketAddr::new(Ipv6Addr::from(address).into(), u16::from_be_bytes(port)))
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no header of the PROXY protocol")
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::{LONGEST, SIGNATURE, client};

    /// A header of version 2.
    fn header(version_and_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[version_and_command, family], &length, rest].concat()
    }

    /// The address in a header that is followed by a request, of which nothing is read.
    async fn read(header: &[u8]) -> Option<String> {
        let bytes = [header, b"GET / HTTP/1.1\r\n\r\n"].concat();
        let mut stream = &bytes[..];
        let found = client(&mut stream).await.unwrap();
        assert_eq!(stream, b"GET / HTTP/1.1\r\n\r\n");
        found.map(|address| address.to_string())
    }

    #[tokio::test]
    async fn lines_name_the_client() {
        for (line, address) in [
            ("PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n", Some("192.0.2.7:4711")),
            ("PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n", Some("[2001:db8::7]:4711")),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN anything at all\r\n", None),
        ] {
            assert_eq!(read(line.as_bytes()).await.as_deref(), address, "{line}");
        }
        let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        let line = format!("PROXY UNKNOWN {longest} {longest} 65535 65535\r\n");
        assert_eq!((line.len(), read(line.as_bytes()).await), (super::LONGEST_LINE, None));
    }

    #[tokio::test]
    async fn binary_headers_name_the_client() {
        let mut four = vec![192, 0, 2, 7, 10, 0, 0, 1];
        four.extend([0x12, 0x67, 0x01, 0xbb]);
        assert_eq!(read(&header(0x21, 0x11, &four)).await.unwrap(), "192.0.2.7:4711");
        // With a field behind the addresses.
        let more = [&four[..], &[0x03, 0, 4, 1, 2, 3, 4]].concat();
        assert_eq!(read(&header(0x21, 0x11, &more)).await.unwrap(), "192.0.2.7:4711");
        let mut six = vec![0; 36];
        six[..2].copy_from_slice(&[0x20, 0x01]);
        six[15] = 7;
        six[32..34].copy_from_slice(&[0x12, 0x67]);
        assert_eq!(read(&header(0x21, 0x21, &six)).await.unwrap(), "[2001::7]:4711");
        // A check of the proxy itself, and a family without an address of the internet.
        assert_eq!(read(&header(0x20, 0x00, &[])).await, None);
        assert_eq!(read(&header(0x20, 0x11, &four)).await, None);
        assert_eq!(read(&header(0x21, 0x31, &[0; 216])).await, None);
    }

    #[tokio::test]
    async fn garbage_and_half_headers_are_refused() {
        let four = [0; 12];
        for bytes in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7  10.0.0.1 4711 443\r\n".to_vec(),
            b"PROXY TCP4 2001:db8::7 2001:db8::1 4711 443\r\n".to_vec(),
            b"PROXY TCP6 192.0.2.7 10.0.0.1 4711 443\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.777 10.0.0.1 4711 443\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 443\r\n".to_vec(),
            b"PROXY UDP4 192.0.2.7 10.0.0.1 4711 443\r\n".to_vec(),
            b"PROXY \xff\xff\xff\xff\xff\xff\xff\xff\r\n".to_vec(),
            [&b"PROXY "[..], &[b'x'; 300]].concat(),
            header(0x11, 0x11, &four),
            header(0x22, 0x11, &four),
            header(0x21, 0x11, &four[..11]),
            header(0x21, 0x21, &four),
            header(0x21, 0x11, &[0; LONGEST + 1]),
            [&[0; 16][..], &[0xff; 64]].concat(),
        ] {
            let fault = client(&mut &bytes[..]).await.unwrap_err();
            assert_eq!(fault.kind(), ErrorKind::InvalidData, "{bytes:?}");
        }
        for bytes in [&b""[..], b"PROXY TCP4 192", &SIGNATURE, &header(0x21, 0x11, &four)[..20]] {
            let fault = client(&mut &bytes[..]).await.unwrap_err();
            assert_eq!(fault.kind(), ErrorKind::UnexpectedEof, "{bytes:?}");
        }
    }
}
