//! Functions in Rust for the prelude: bytes, digests, URLs. All of them only compute and
//! have no access outside the process.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose};
use hmac::{Hmac, Mac as _};
use md5::Md5;
use rquickjs::function::Opt;
use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use url::Url;

use super::text::Text;

/// Maximum random bytes in one call.
const MOST_RANDOM: usize = 65_536;

/// Accepts base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT_CONFIG);
const LENIENT_CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);

/// Adds the functions to `native`.
pub(super) fn define<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    let function = |name: &str, function: Function<'js>| native.set(name, function);
    function("encode", Function::new(ctx.clone(), encode)?)?;
    function("decode", Function::new(ctx.clone(), decode)?)?;
    function("hash", Function::new(ctx.clone(), hash)?)?;
    function("hmac", Function::new(ctx.clone(), hmac)?)?;
    function("random", Function::new(ctx.clone(), random)?)?;
    function("uuid", Function::new(ctx.clone(), uuid)?)?;
    function("urlParse", Function::new(ctx.clone(), url_parse)?)?;
    function("urlSet", Function::new(ctx.clone(), url_set)?)?;
    function("formParse", Function::new(ctx.clone(), form_parse)?)?;
    function("formWrite", Function::new(ctx.clone(), form_write)?)
}

type Bytes<'js> = TypedArray<'js, u8>;

#[expect(unsafe_code, reason = "the bindings have no other way to the bytes of an array")]
fn view<'a>(ctx: &Ctx<'_>, bytes: &'a Bytes<'_>) -> Result<&'a [u8]> {
    // SAFETY: the view is used up before any script runs again: the functions of this
    // module call none. There is one thread, and no shared buffer can be made.
    let view = unsafe { bytes.as_bytes() };
    view.ok_or_else(|| Exception::throw_type(ctx, "the bytes are detached"))
}

fn encode<'js>(ctx: Ctx<'js>, text: Text, encoding: Text) -> Result<Bytes<'js>> {
    let bytes = match encoding.0.as_str() {
        "hex" => hex_read(&text.0),
        "base64" | "base64url" => {
            let plain: String = text
                .0
                .chars()
                .filter(|c| !c.is_ascii_whitespace())
                .map(|c| match c {
                    '-' => '+',
                    '_' => '/',
                    other => other,
                })
                .collect();
            LENIENT.decode(plain).map_err(|_| Exception::throw_type(&ctx, "this is no base64"))?
        }
        // The low byte of each character, as in other engines.
        "latin1" => text.0.chars().map(|c| u32::from(c).to_le_bytes()[0]).collect(),
        _ => text.0.into_bytes(),
    };
    TypedArray::new(ctx, bytes)
}

fn decode(ctx: Ctx<'_>, bytes: Bytes<'_>, encoding: Text) -> Result<String> {
    let bytes = view(&ctx, &bytes)?;
    Ok(match encoding.0.as_str() {
        "hex" => hex_write(bytes),
        "base64" => general_purpose::STANDARD.encode(bytes),
        "base64url" => general_purpose::URL_SAFE_NO_PAD.encode(bytes),
        "latin1" => bytes.iter().map(|byte| char::from(*byte)).collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    })
}

fn hex_write(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Decodes up to the first pair that is not hexadecimal, as other engines do.
fn hex_read(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes()
        .chunks_exact(2)
        .map_while(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

fn hash<'js>(ctx: Ctx<'js>, algorithm: Text, data: Bytes<'js>) -> Result<Bytes<'js>> {
    let data = view(&ctx, &data)?;
    let sum = match algorithm.0.as_str() {
        "md5" => Md5::digest(data).to_vec(),
        "sha1" => Sha1::digest(data).to_vec(),
        "sha256" => Sha256::digest(data).to_vec(),
        "sha512" => Sha512::digest(data).to_vec(),
        _ => return Err(Exception::throw_type(&ctx, "unknown digest")),
    };
    TypedArray::new(ctx, sum)
}

fn hmac<'js>(
    ctx: Ctx<'js>,
    algorithm: Text,
    key: Bytes<'js>,
    data: Bytes<'js>,
) -> Result<Bytes<'js>> {
    let (key, data) = (view(&ctx, &key)?, view(&ctx, &data)?);
    macro_rules! keyed {
        ($digest:ty) => {
            Hmac::<$digest>::new_from_slice(key)
                .map(|mac| mac.chain_update(data).finalize().into_bytes().to_vec())
        };
    }
    let sum = match algorithm.0.as_str() {
        "md5" => keyed!(Md5),
        "sha1" => keyed!(Sha1),
        "sha256" => keyed!(Sha256),
        "sha512" => keyed!(Sha512),
        _ => return Err(Exception::throw_type(&ctx, "unknown digest")),
    };
    let sum = sum.map_err(|_| Exception::throw_type(&ctx, "this key cannot be used"))?;
    TypedArray::new(ctx, sum)
}

fn random(ctx: Ctx<'_>, length: f64) -> Result<Bytes<'_>> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
    let length = length.clamp(0.0, MOST_RANDOM as f64) as usize;
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(|_| Exception::throw_internal(&ctx, "no random bytes"))?;
    TypedArray::new(ctx, bytes)
}

fn uuid(ctx: Ctx<'_>) -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Exception::throw_internal(&ctx, "no random bytes"))?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}

/// The parts in the order of `url.js`.
fn parts(url: &Url) -> Vec<String> {
    let whole = |mark: &str, part: Option<&str>| {
        part.filter(|part| !part.is_empty())
            .map_or_else(String::new, |part| format!("{mark}{part}"))
    };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map_or_else(String::new, |port| port.to_string());
    let beside = if port.is_empty() { host.to_owned() } else { format!("{host}:{port}") };
    vec![
        url.as_str().to_owned(),
        format!("{}:", url.scheme()),
        url.username().to_owned(),
        url.password().unwrap_or_default().to_owned(),
        beside,
        host.to_owned(),
        port,
        url.path().to_owned(),
        whole("?", url.query()),
        whole("#", url.fragment()),
        url.origin().ascii_serialization(),
    ]
}

fn url_parse(text: Text, base: Opt<Option<Text>>) -> Option<Vec<String>> {
    let url = match base.0.flatten() {
        Some(base) => Url::parse(&base.0).ok()?.join(&text.0).ok()?,
        None => Url::parse(&text.0).ok()?,
    };
    Some(parts(&url))
}

fn url_set(href: Text, part: Text, value: Text) -> Option<Vec<String>> {
    let mut url = Url::parse(&href.0).ok()?;
    let value = value.0.as_str();
    let after = |mark: char| value.strip_prefix(mark).unwrap_or(value);
    let some = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    match part.0.as_str() {
        "href" => url = Url::parse(value).ok()?,
        "protocol" => url.set_scheme(value.trim_end_matches(':')).ok()?,
        "username" => url.set_username(value).ok()?,
        "password" => url.set_password(some(value).as_deref()).ok()?,
        "host" => {
            let (host, port) = match value.rsplit_once(':') {
                Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
                _ => (value, None),
            };
            url.set_host(Some(host)).ok()?;
            if port.is_some() {
                url.set_port(port).ok()?;
            }
        }
        "hostname" => url.set_host(Some(value)).ok()?,
        "port" => {
            url.set_port(if value.is_empty() { None } else { Some(value.parse().ok()?) }).ok()?
        }
        "pathname" => url.set_path(value),
        "search" => url.set_query(some(after('?')).as_deref()),
        "hash" => url.set_fragment(some(after('#')).as_deref()),
        _ => return None,
    }
    Some(parts(&url))
}

fn form_parse(text: Text) -> Vec<String> {
    form_urlencoded::parse(text.0.as_bytes())
        .flat_map(|(name, value)| [name.into_owned(), value.into_owned()])
        .collect()
}

fn form_write(flat: Vec<Text>) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for pair in flat.chunks_exact(2) {
        out.append_pair(&pair[0].0, &pair[1].0);
    }
    out.finish()
}
