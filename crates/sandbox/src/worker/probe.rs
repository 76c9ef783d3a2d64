//! Tries forbidden operations, so that a test can check the errors of the system. Scripts
//! cannot reach this code.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::wire::Probe;

pub(super) fn probe() -> Probe {
    let mut tried = BTreeMap::new();
    let mut note = |what: &str, outcome: std::io::Result<()>| {
        let errno = outcome.err().map(|error| error.raw_os_error().unwrap_or(0));
        tried.insert(what.to_owned(), errno);
    };
    note("open for reading", File::open("/etc/hostname").map(drop));
    note("open for writing", OpenOptions::new().append(true).open("/tmp/weir-probe").map(drop));
    note("read a directory", std::fs::read_dir("/").map(drop));
    note("remove a file", std::fs::remove_file("/tmp/weir-probe"));
    note("tcp connect", TcpStream::connect(("127.0.0.1", 9)).map(drop));
    note("tcp listen", TcpListener::bind(("127.0.0.1", 0)).map(drop));
    note("udp", UdpSocket::bind(("127.0.0.1", 0)).map(drop));
    note("unix socket", UnixStream::connect("/run/weir-probe").map(drop));
    note("exec", Command::new("/bin/true").status().map(drop));
    note("thread", std::thread::Builder::new().spawn(|| ()).map(drop));
    let descriptors = (3..1024).filter(|number| super::confine::was_open(*number)).collect();
    Probe { tried, descriptors, environment: std::env::vars_os().count() }
}
