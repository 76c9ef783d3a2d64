//! The browser side, from sources to the directory that the server serves.

use std::fs;

use anyhow::Result;

use crate::assets::{HASHED, Site, files_below, name_below};
use crate::layout::{Layout, Mode};
use crate::{cargo, css, sha, wasm};

/// Where a development page looks whether it is out of date.
const BUILD_MARK: &str = "pkg/build.txt";

pub(crate) fn build(layout: &Layout, mode: Mode) -> Result<()> {
    let input = cargo::build_frontend(layout, mode)?;
    let browser = wasm::bind(layout, mode, &input)?;

    let mut site = Site::open(&layout.site, mode == Mode::Release)?;
    let wasm = site.add_hashed("weir", "wasm", &browser.wasm)?;
    let js = add_glue(&mut site, browser)?;
    site.add_hashed("boot", "js", boot(&js, &wasm, mode).as_bytes())?;
    site.add_hashed("weir", "css", css::bundle(&layout.style_sheet())?.as_bytes())?;
    add_public(layout, &mut site)?;
    if mode == Mode::Dev {
        let last = fs::read(layout.site.join(BUILD_MARK)).unwrap_or_default();
        site.add("build.txt", BUILD_MARK, &last)?;
    }
    site.finish()
}

/// Tells open pages to reload. The process id tells this watching from the last.
pub(crate) fn mark_changed(layout: &Layout, generation: u64) -> Result<()> {
    let mark = format!("{}.{generation}", std::process::id());
    Ok(fs::write(layout.site.join(BUILD_MARK), mark)?)
}

/// The glue names its snippets by path, so their folder gets the hash.
fn add_glue(site: &mut Site, browser: wasm::Browser) -> Result<String> {
    let mut js = browser.js;
    if !browser.snippets.is_empty() {
        let contents: Vec<&[u8]> = browser.snippets.values().map(Vec::as_slice).collect();
        let folder = format!("snippets.{}", sha::short(sha::of(&contents).as_bytes()));
        js = js.replace("'./snippets/", &format!("'./{folder}/"));
        for (name, bytes) in &browser.snippets {
            site.add(&format!("snippets/{name}"), &format!("{HASHED}/{folder}/{name}"), bytes)?;
        }
    }
    site.add_hashed("weir", "js", js.as_bytes())
}

/// Loads the module and takes over the islands of the page: one
/// `<script type="module" src>` is all that a page needs, and no inline script
/// has to be allowed.
fn boot(js: &str, wasm: &str, mode: Mode) -> String {
    let import = match mode {
        Mode::Release => format!("import * as app from \"./{js}\";\n"),
        // A late import, so that a page that cannot start is reloaded as well.
        Mode::Dev => format!("{RELOAD}const app = await import(\"./{js}\");\n"),
    };
    let load = format!(
        "await app.default({{ module_or_path: new URL(\"./{wasm}\", import.meta.url) }});\n"
    );
    format!("{import}{load}{WAKE}")
}

/// Leptos exports one function for each island, under the name that it writes
/// into the page. The mark is for style and tests: from now on the page answers.
const WAKE: &str = r#"app.hydrate();
for (const island of document.querySelectorAll("leptos-island")) {
  app[island.dataset.component](island);
}
document.documentElement.dataset.alive = "";
"#;

/// Asks for the mark that `xtask dev` changes after every build. No answer
/// means that the server is being restarted.
const RELOAD: &str = r#"let mark = null;
setInterval(async () => {
  const answer = await fetch(new URL("./build.txt", import.meta.url), { cache: "no-store" })
    .catch(() => null);
  if (!answer?.ok) return;
  const now = await answer.text();
  if (mark !== null && now !== mark) location.reload();
  mark = now;
}, 500);
"#;

/// Static files keep their names: pages and other sites refer to them.
fn add_public(layout: &Layout, site: &mut Site) -> Result<()> {
    let folder = layout.root.join("public");
    if !folder.exists() {
        return Ok(());
    }
    for file in files_below(&folder)? {
        let name = name_below(&folder, &file)?;
        site.add(&name, &name, &fs::read(&file)?)?;
    }
    Ok(())
}
