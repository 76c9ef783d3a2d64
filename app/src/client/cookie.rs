//! The cookie with the notice of a form. Scripts read it, because no document is loaded
//! that would show it.

use leptos::prelude::document;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::HtmlDocument;

/// Names of the cookie, see `context::Cookies::notice_name`.
const NAMES: [&str; 2] = ["__Host-notice", "notice"];

/// The notice, once.
pub(crate) fn take_notice() -> Option<String> {
    let document = document().dyn_into::<HtmlDocument>().ok()?;
    let cookies = document.cookie().ok()?;
    let pairs = cookies.split("; ").filter_map(|pair| pair.split_once('='));
    let (name, text) = pairs.into_iter().find(|(name, _)| NAMES.contains(name))?;
    let secure = if name.starts_with("__Host-") { "; Secure" } else { "" };
    let _ = document.set_cookie(&format!("{name}=; Path=/; SameSite=Lax; Max-Age=0{secure}"));
    Some(text.to_owned()).filter(|text| !text.is_empty())
}
