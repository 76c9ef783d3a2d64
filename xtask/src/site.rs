//! Builds the browser side: from sources to the directory that the server serves.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::assets::{HASHED, Site, files_below, name_below};
use crate::layout::{Layout, Mode};
use crate::wasm::{BINDINGS, ENTRY};
use crate::{cargo, css, sha, wasm};

/// The file that development pages poll for a new build.
const BUILD_MARK: &str = "pkg/build.txt";

/// The scripts of the browser library that the site contains: the library, and the parts that
/// it loads for features that Weir stores events of. Parts for recordings, surveys and the
/// like have no endpoint here. `scripts/setup` reads the names from these lines.
const BROWSER_LIBRARY: [&str; 8] = [
    "array.js",
    "dead-clicks-autocapture.js",
    "exception-autocapture.js",
    "tracing-headers.js",
    "web-vitals.js",
    "web-vitals-soft-navs.js",
    "web-vitals-with-attribution.js",
    "web-vitals-with-attribution-soft-navs.js",
];

pub(crate) fn build(layout: &Layout, mode: Mode) -> Result<()> {
    let input = cargo::build_frontend(layout, mode)?;
    let browser = wasm::bind(layout, mode, &input)?;

    let mut site = Site::open(&layout.site, mode == Mode::Release)?;
    add_code(&mut site, browser, mode)?;
    add_files(layout, &mut site)?;
    if mode == Mode::Dev {
        let last = fs::read(layout.site.join(BUILD_MARK)).unwrap_or_default();
        site.add("build.txt", BUILD_MARK, &last)?;
    }
    site.finish()
}

/// Builds what needs no compiler. Pages without code for the browser work without scripts.
pub(crate) fn build_without_code(layout: &Layout) -> Result<()> {
    let mut site = Site::open(&layout.site, false)?;
    add_files(layout, &mut site)?;
    site.finish()
}

fn add_files(layout: &Layout, site: &mut Site) -> Result<()> {
    site.add_hashed("weir", "css", css::bundle(&layout.style_sheet()?)?.as_bytes())?;
    add_public(layout, site)?;
    add_browser_library(layout, site)
}

/// Makes open pages reload. The process id makes the content differ from that of an
/// earlier `xtask dev`.
pub(crate) fn mark_changed(layout: &Layout, generation: u64) -> Result<()> {
    let mark = format!("{}.{generation}", std::process::id());
    Ok(fs::write(layout.site.join(BUILD_MARK), mark)?)
}

/// Adds the code in one folder, named by a hash of all its files: they name each other, so
/// none can be named by its own hash.
fn add_code(site: &mut Site, browser: wasm::Browser, mode: Mode) -> Result<()> {
    let mut files = browser.files;
    files.insert("boot.js".to_owned(), boot(mode).into_bytes());
    let areas = serde_json::to_vec(&browser.areas)?;
    let contents: Vec<&[u8]> =
        files.values().map(Vec::as_slice).chain([areas.as_slice()]).collect();
    let folder = format!("{HASHED}/{}", sha::short(sha::of(&contents).as_bytes()));
    for (name, bytes) in &files {
        site.add(name, &format!("{folder}/{name}"), bytes)?;
    }
    site.add("areas.json", &format!("{folder}/areas.json"), &areas)
}

/// The script that loads the entry and hydrates the page. A page needs only one
/// `<script type="module" src>`, so the content security policy need not allow inline
/// scripts.
fn boot(mode: Mode) -> String {
    let reload = match mode {
        Mode::Release => "",
        Mode::Dev => RELOAD,
    };
    // A dynamic import, so that what is before it also works on a page that cannot start.
    let load = format!(
        "const app = await import(\"./{BINDINGS}\");\n\
         await app.default({{ module_or_path: new URL(\"./{ENTRY}\", import.meta.url) }});\n"
    );
    format!("{reload}{PRESSED}{PRELOAD}{load}app.hydrate();\n")
}

/// Until the app answers, a pressed link or button loads a document, which takes long on a slow
/// line. The style sheet shows what is pressed, and that a document loads.
const PRESSED: &str = r#"const root = document.documentElement;
const clear = () => {
  delete root.dataset.opening;
  for (const pressed of document.querySelectorAll("[data-pressed]")) delete pressed.dataset.pressed;
};
const note = (event, pressed) => setTimeout(() => {
  if (event.defaultPrevented || root.hasAttribute("data-alive")) return;
  root.dataset.opening = "";
  if (pressed) pressed.dataset.pressed = "";
  // The user can have stopped it.
  setTimeout(clear, 30_000);
});
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]:not([href^='#'], [download], [target])");
  const elsewhere = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (link?.origin !== location.origin || elsewhere) return;
  const isHere = link.hash && link.pathname === location.pathname && link.search === location.search;
  if (!isHere) note(event, link);
});
addEventListener("submit", (event) => {
  // The method of the button, if it has one, is that of the form.
  const method = event.submitter?.formMethod || event.target.method;
  if (method !== "dialog") note(event, event.submitter);
});
// The browser can show this page again as it was left.
addEventListener("pageshow", (event) => event.persisted && clear());
"#;

/// Loads the code of the page beside the entry.
const PRELOAD: &str = r#"for (const href of document.querySelector("script[data-code]")?.dataset.code.split(" ") ?? []) {
  document.head.append(Object.assign(document.createElement("link"), { rel: "preload", as: "fetch", crossOrigin: "", href }));
}
"#;

/// Polls the file that `xtask dev` changes after every build. No answer means that the
/// server is restarting.
const RELOAD: &str = r#"let mark = null;
setInterval(async () => {
  const answer = await fetch(new URL("../build.txt", import.meta.url), { cache: "no-store" })
    .catch(() => null);
  if (!answer?.ok) return;
  const now = await answer.text();
  if (mark !== null && now !== mark) location.reload();
  mark = now;
}, 500);
"#;

/// Static files keep their names, because pages and other sites refer to them.
fn add_public(layout: &Layout, site: &mut Site) -> Result<()> {
    let folder = layout.assets()?;
    if !folder.exists() {
        return Ok(());
    }
    for file in files_below(&folder)? {
        let name = name_below(&folder, &file)?;
        site.add(&name, &name, &fs::read(&file)?)?;
    }
    Ok(())
}

/// Warns of a build without the browser library, which must not be given to others.
pub(crate) fn warn_without_library(layout: &Layout) {
    if browser_library(layout).is_none() {
        eprintln!(
            "xtask: WARNING: this build has no browser library, so /static/array.js answers 404.\n\
             xtask: WARNING: Do not distribute it. `scripts/setup build` downloads the library; \
             then build again."
        );
    }
}

/// The folder with the scripts of the browser library, if it was downloaded.
fn browser_library(layout: &Layout) -> Option<&Path> {
    layout.browser_library.as_deref().filter(|folder| folder.is_dir())
}

/// Adds the scripts of the browser library. They keep their names, because pages of other
/// sites load them. A site without them works: the server says that it has no library.
fn add_browser_library(layout: &Layout, site: &mut Site) -> Result<()> {
    let Some(folder) = browser_library(layout) else {
        eprintln!("xtask: the site has no browser library; `scripts/setup build` downloads it");
        return Ok(());
    };
    for name in BROWSER_LIBRARY {
        let script = fs::read(folder.join(name))
            .with_context(|| format!("failed to read {name} of the browser library"))?;
        let path = format!("static/{name}");
        site.add(&path, &path, &script)?;
    }
    Ok(())
}
