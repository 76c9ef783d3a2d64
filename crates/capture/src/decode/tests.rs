use std::io::Write;

use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD, Engine};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::{BODY_LIMIT, CapturePath, CaptureRequest, decode};
use crate::CaptureError;

/// Its base64 contains both `+` and `/`.
const JSON: &str = r#"{"api_key":"phc_a","event":"ñ>>>???~~~ü","distinct_id":"d"}"#;
const FORM: &str = "application/x-www-form-urlencoded";

fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn percent(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("%{byte:02X}")).collect()
}

const POST: CaptureRequest<'static> = CaptureRequest {
    path: CapturePath::E,
    query: None,
    content_type: None,
    content_encoding: None,
    body: Bytes::new(),
};

fn post(body: impl AsRef<[u8]>) -> CaptureRequest<'static> {
    CaptureRequest { body: Bytes::copy_from_slice(body.as_ref()), ..POST }
}

fn text_of(request: CaptureRequest<'_>) -> Result<String, CaptureError> {
    decode(request).map(|payload| payload.text().to_owned())
}

#[test]
fn everything_that_decompresses() {
    let lz64 = lz_str::compress_to_base64(JSON);
    let query_base64 = format!("ip=1&data={}", base64(JSON));
    let query_escaped = format!("data={}&_=1", percent(base64(JSON)));
    let query_gzip = format!("compression=gzip-js&data={}", percent(base64(gzip(JSON))));
    let query_lz64 = format!("compression=lz64&data={}", percent(&lz64));
    let query_json = format!("data={}", percent(JSON));
    let form = |body: String| CaptureRequest { content_type: Some(FORM), ..post(body) };
    let requests = [
        // plain, with any content type
        ("json", post(JSON)),
        ("json", CaptureRequest { content_type: Some("application/json"), ..post(JSON) }),
        ("text", CaptureRequest { content_type: Some("text/plain;charset=UTF-8"), ..post(JSON) }),
        ("byte order mark", post(format!("\u{feff}{JSON}"))),
        ("empty data", CaptureRequest { query: Some("data=&ver=1"), ..post(JSON) }),
        ("unknown hint", CaptureRequest { query: Some("compression=zip"), ..post(JSON) }),
        ("other encoding", CaptureRequest { content_encoding: Some("identity"), ..post(JSON) }),
        // gzip: by its first bytes, by query, by header
        ("gzip", post(gzip(JSON))),
        ("gzip text", CaptureRequest { content_type: Some("text/plain"), ..post(gzip(JSON)) }),
        ("gzip form", CaptureRequest { content_type: Some(FORM), ..post(gzip(JSON)) }),
        ("gzip batch", CaptureRequest { path: CapturePath::Batch, ..post(gzip(JSON)) }),
        (
            "gzip-js",
            CaptureRequest {
                query: Some("compression=gzip-js&ip=1&_=1780308303000&ver=1.105.0"),
                ..post(gzip(JSON))
            },
        ),
        ("GZIP", CaptureRequest { content_encoding: Some("GZIP"), ..post(gzip(JSON)) }),
        ("wrong hint", CaptureRequest { query: Some("compression=base64"), ..post(gzip(JSON)) }),
        ("two members", post([gzip(&JSON[..20]), gzip(&JSON[20..])].concat())),
        // base64 around and inside
        ("base64", post(base64(JSON))),
        ("base64 line", post(format!("{}\n", base64(JSON)))),
        ("base64 batch", CaptureRequest { path: CapturePath::Batch, ..post(base64(JSON)) }),
        ("base64 of gzip", post(base64(gzip(JSON)))),
        ("gzip of base64", post(gzip(base64(JSON)))),
        ("gzip of ragged base64", post(gzip(BASE64_STANDARD_NO_PAD.encode(JSON)))),
        ("base64 twice", post(base64(base64(JSON)))),
        // query
        ("query", CaptureRequest { query: Some(&query_json), ..POST }),
        ("query before body", CaptureRequest { query: Some(&query_json), ..post("{}") }),
        // here the + of base64 is received as a blank
        ("query base64", CaptureRequest { query: Some(&query_base64), ..POST }),
        ("query escaped", CaptureRequest { query: Some(&query_escaped), ..POST }),
        ("query gzip", CaptureRequest { query: Some(&query_gzip), ..POST }),
        ("query lz64", CaptureRequest { query: Some(&query_lz64), ..POST }),
        // form
        ("form", form(format!("data={}", percent(JSON)))),
        ("form base64", form(format!("data={}", percent(base64(JSON))))),
        ("form blanks", form(format!("ver=1&data={}", base64(JSON)))),
        ("form hint", form(format!("data={}&compression=base64", percent(base64(JSON))))),
        ("form url-safe", form(format!("data={}", BASE64_URL_SAFE_NO_PAD.encode(JSON)))),
        ("form gzip", form(format!("compression=gzip&data={}", percent(base64(gzip(JSON)))))),
        ("form raw gzip", form(format!("data={}", percent(gzip(JSON))))),
        ("form lz64", form(format!("data={}&compression=lz64", percent(&lz64)))),
        (
            "form with charset",
            CaptureRequest {
                content_type: Some("Application/X-WWW-Form-Urlencoded; charset=UTF-8"),
                ..post(format!("data={}", percent(JSON)))
            },
        ),
        (
            "form on another path",
            CaptureRequest {
                path: CapturePath::I0E,
                query: Some("compression=base64"),
                content_type: Some(FORM),
                ..post(format!("data={}", percent(base64(JSON))))
            },
        ),
        // lz64
        ("lz64", CaptureRequest { query: Some("compression=lz64"), ..post(&lz64) }),
        ("lz-string", CaptureRequest { query: Some("compression=LZ-String"), ..post(&lz64) }),
    ];
    for (number, (name, request)) in requests.into_iter().enumerate() {
        assert_eq!(text_of(request).as_deref(), Ok(JSON), "{name}, row {number}");
    }
}

#[test]
fn inner_base64_belongs_to_some_paths() {
    let body = gzip(base64(JSON));
    for (path, taken) in [
        (CapturePath::Capture, true),
        (CapturePath::E, true),
        (CapturePath::Track, true),
        (CapturePath::Engage, true),
        (CapturePath::Recordings, true),
        (CapturePath::Settings, true),
        (CapturePath::Batch, false),
        (CapturePath::I0E, false),
    ] {
        let text = text_of(CaptureRequest { path, ..post(&body) }).unwrap();
        assert_eq!(text, if taken { JSON.to_owned() } else { base64(JSON) }, "{path:?}");
        assert_eq!(path.is_engage(), path == CapturePath::Engage);
    }
}

#[test]
fn everything_that_does_not() {
    let gzip = gzip(JSON);
    let truncated = &gzip[..gzip.len() - 9];
    let mut damaged = gzip.clone();
    damaged[20] ^= 0xff;
    let form = |body: &str| CaptureRequest { content_type: Some(FORM), ..post(body) };
    let hinted = |hint, body: &str| CaptureRequest { query: Some(hint), ..post(body) };
    for (request, part) in [
        (POST, "neither a body nor"),
        (CaptureRequest { query: Some("data="), ..POST }, "neither a body nor"),
        (CaptureRequest { query: Some("beacon=1"), ..POST }, "neither a body nor"),
        (form(JSON), "announces a form"),
        (form("a=1&b=2"), "announces a form"),
        (form("ip=1&_=1780308303000"), "no `data`"),
        (hinted("compression=gzip", JSON), "not valid gzip"),
        (hinted("compression=gzip-js", &base64(JSON)), "not valid gzip"),
        (post(truncated), "not valid gzip"),
        (post(damaged), "not valid gzip"),
        (post([&gzip[..], b"tail"].concat()), "not valid gzip"),
        (hinted("compression=lz64", JSON), "announced as lz64"),
        (post([b'{', 0xff, b'}']), "is not UTF-8 text."),
        (
            CaptureRequest { content_encoding: Some("br"), ..post([0x8b, 0xff]) },
            "content encoding is not supported",
        ),
    ] {
        let shown = format!("{request:?}");
        let error = decode(request).unwrap_err();
        assert_eq!(error.code(), "invalid_payload", "{shown}");
        assert!(error.detail().contains(part), "{shown}: {}", error.detail());
    }
}

#[test]
fn what_is_not_base64_stays_text() {
    // The parser refuses these later, with its error message.
    for text in ["{\"a\":1}=", "=abc", "abcde", "a b c d ", "not base64!!"] {
        assert_eq!(
            text_of(CaptureRequest { path: CapturePath::Batch, ..post(text) }).unwrap(),
            text
        );
    }
}

#[test]
fn the_limit_holds_before_and_after_decompression() {
    let too_large = Err(CaptureError::PayloadTooLarge { limit: BODY_LIMIT });
    let blanks = vec![b' '; BODY_LIMIT + 1];
    assert_eq!(text_of(post(&blanks[1..])).map(|text| text.len()), Ok(BODY_LIMIT));
    assert_eq!(text_of(post(&blanks)), too_large);
    assert_eq!(text_of(post(gzip(&blanks[1..]))).map(|text| text.len()), Ok(BODY_LIMIT));
    assert_eq!(text_of(post(gzip(&blanks))), too_large);
    assert_eq!(text_of(post(base64(gzip(&blanks)))), too_large);
    // Two members, each below the limit.
    let half = gzip(&blanks[BODY_LIMIT / 2..]);
    assert_eq!(text_of(post([&half[..], &half[..]].concat())), too_large);
    // Compressing a whole body takes too long. An artificial text has the same effect:
    // one character, followed by phrases of it that grow.
    let lz64 = CaptureRequest { query: Some("compression=lz64"), ..post(lz64_bomb()) };
    assert_eq!(text_of(lz64), too_large);
}

/// lz-string text of a blank followed by 8,000 phrases, each one blank longer
/// than the one before: 32 MB from 13 kB.
fn lz64_bomb() -> String {
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |number: usize, width: usize| {
        bits.extend((0..width).map(|bit| number >> bit & 1 == 1));
    };
    push(0, 2);
    push(usize::from(b' '), 8);
    let (mut width, mut left) = (3, 4);
    for code in 4..8_004 {
        push(code, width);
        left -= 1;
        if left == 0 {
            left = 1 << width;
            width += 1;
        }
    }
    let bytes = bits.chunks(8).map(|byte| {
        byte.iter().enumerate().map(|(place, bit)| u8::from(*bit) << (7 - place)).sum::<u8>()
    });
    base64(bytes.collect::<Vec<_>>())
}

#[test]
fn request_facts() {
    let sent_at = Some(1_780_308_303_000);
    for (query, form, expected) in [
        ("_=1780308303000&ip=1", "", (sent_at, false)),
        ("ip=0", "", (None, true)),
        ("_=1609459199999", "", (None, false)),
        ("_=1609459200000", "", (Some(1_609_459_200_000), false)),
        ("_=soon&ip=", "", (None, false)),
        ("_=99999999999999999", "", (None, false)),
        ("", "_=1780308303000&ip=0", (sent_at, true)),
        ("_=1780308303000&ip=1", "_=1780308304000&ip=0", (sent_at, false)),
    ] {
        let body = if form.is_empty() {
            JSON.to_owned()
        } else {
            format!("{form}&data={}", percent(JSON))
        };
        let payload = decode(CaptureRequest {
            query: Some(query),
            content_type: (!form.is_empty()).then_some(FORM),
            ..post(body)
        })
        .unwrap();
        let sent_at = payload.sent_at().map(|time| time.timestamp_millis());
        assert_eq!((sent_at, payload.hides_address()), expected, "{query} {form}");
    }
}

const PATHS: [CapturePath; 8] = [
    CapturePath::Capture,
    CapturePath::Batch,
    CapturePath::E,
    CapturePath::I0E,
    CapturePath::Track,
    CapturePath::Engage,
    CapturePath::Recordings,
    CapturePath::Settings,
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_request_is_answered(
        path in prop::sample::select(&PATHS[..]),
        query in prop::option::of("((data|compression|_|ip|x)=(gzip|lz64|base64|[0-9A-Za-z+/%=]{0,20})&?){0,4}"),
        content_type in prop::sample::select(&[None, Some(FORM), Some("text/plain")][..]),
        content_encoding in prop::sample::select(&[None, Some("gzip"), Some("lz64"), Some("br")][..]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        wrapping in 0..6,
    ) {
        let body = match wrapping {
            0 => bytes,
            1 => gzip(bytes),
            2 => base64(bytes).into_bytes(),
            3 => base64(gzip(bytes)).into_bytes(),
            4 => format!("data={}", percent(bytes)).into_bytes(),
            _ => [&[0x1f, 0x8b, 8, 0][..], &bytes].concat(),
        };
        let body = Bytes::from(body);
        let _ = decode(CaptureRequest { path, query: query.as_deref(), content_type, content_encoding, body });
    }

    #[test]
    fn text_that_is_json_arrives_unchanged(value in crate::any_json::any_json()) {
        let text = format!("[{value}]");
        for body in [text.clone().into_bytes(), gzip(&text), base64(&text).into_bytes()] {
            prop_assert_eq!(text_of(post(body)).unwrap(), text.clone());
        }
    }
}
