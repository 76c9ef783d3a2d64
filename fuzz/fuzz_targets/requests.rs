//! From the bytes of a request to decisions: target, headers, an empty line, body.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use weir_capture::{BODY_LIMIT, CapturePath, CaptureRequest, decode, v1};
use weir_fuzz::{check, context, decide_all};

fuzz_target!(|file: &[u8]| {
    let end = file.windows(2).position(|pair| pair == b"\n\n").unwrap_or(file.len());
    let Ok(head) = std::str::from_utf8(&file[..end]) else { return };
    let body = Bytes::copy_from_slice(file.get(end + 2..).unwrap_or_default());
    let mut lines = head.lines();
    let target = lines.next().unwrap_or_default();
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
    let header = |name: &str| {
        headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, text)| *text)
    };
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let path = match path.strip_suffix('/').unwrap_or(path) {
        "/i/v1/analytics/events" => return newer_protocol(header, body),
        "/capture" => CapturePath::Capture,
        "/e" => CapturePath::E,
        "/i/v0/e" => CapturePath::I0E,
        "/track" => CapturePath::Track,
        "/engage" => CapturePath::Engage,
        "/s" => CapturePath::Recordings,
        "/flags" | "/decide" => CapturePath::Settings,
        _ => CapturePath::Batch,
    };
    let content_type = header("content-type");
    let content_encoding = header("content-encoding");
    if let Ok(payload) = decode(CaptureRequest { path, query, content_type, content_encoding, body })
    {
        assert!(payload.text().len() <= BODY_LIMIT);
        decide_all(&payload);
    }
});

fn newer_protocol<'a>(header: impl Fn(&str) -> Option<&'a str>, body: Bytes) {
    let Ok(headers) = v1::Headers::read(header) else { return };
    let Ok(payload) = v1::unpack(headers.encoding, body) else { return };
    assert!(payload.text().len() <= BODY_LIMIT);
    let Ok(batch) = v1::shape(&payload) else { return };
    let context = context(Some(headers.sent_at));
    for event in &batch.events {
        check(&event, &v1::decide(&event, headers.library, &context));
    }
}
