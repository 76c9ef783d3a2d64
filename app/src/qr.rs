//! QR code for an authenticator app, and its content.

use qrcodegen::{QrCode as Code, QrCodeEcc};

use crate::local_path;

/// Width of the light margin in modules. Cameras need it to find the code.
const QUIET: i32 = 4;

/// A text as a QR code: its width in modules, with the margin, and the SVG path of its
/// dark modules. `None` if the text is too long.
pub(crate) fn qr_code(text: &str) -> Option<(i32, String)> {
    let code = Code::encode_text(text, QrCodeEcc::Medium).ok()?;
    Some((code.size() + 2 * QUIET, modules(&code)))
}

/// SVG path of the dark modules, each a square of size 1.
fn modules(code: &Code) -> String {
    let mut path = String::new();
    for y in 0..code.size() {
        for x in 0..code.size() {
            if code.get_module(x, y) {
                path.push_str(&format!("M{} {}h1v1h-1z", x + QUIET, y + QUIET));
            }
        }
    }
    path
}

/// The content of the code for an authenticator app.
pub(crate) fn otpauth(secret: &str, email: &str) -> String {
    let account = local_path::encode(email).replace('/', "%2F");
    format!("otpauth://totp/Weir:{account}?secret={secret}&issuer=Weir")
}

#[cfg(test)]
mod tests {
    use super::{otpauth, qr_code};

    #[test]
    fn addresses_are_escaped() {
        assert_eq!(
            otpauth("AB", "a/b?c&d@mail.example"),
            "otpauth://totp/Weir:a%2Fb%3Fc%26d%40mail.example?secret=AB&issuer=Weir"
        );
    }

    #[test]
    fn the_corner_of_a_code_is_dark() {
        let (side, modules) = qr_code("x").unwrap();
        assert_eq!(side, 21 + 8);
        assert!(modules.starts_with("M4 4h1v1h-1zM5 4h1v1h-1z"));
    }
}
