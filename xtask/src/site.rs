//! Builds the browser side: from sources to the directory that the server serves.

use std::fs;

use anyhow::Result;

use crate::assets::{HASHED, Site, files_below, name_below};
use crate::layout::{Layout, Mode};
use crate::{cargo, css, sha, wasm};

/// The file that development pages poll for a new build.
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

/// Makes open pages reload. The process id makes the content differ from that of an
/// earlier `xtask dev`.
pub(crate) fn mark_changed(layout: &Layout, generation: u64) -> Result<()> {
    let mark = format!("{}.{generation}", std::process::id());
    Ok(fs::write(layout.site.join(BUILD_MARK), mark)?)
}

/// Adds the JavaScript bindings. They import snippets by relative path, so the hash is in
/// the name of the snippets' directory.
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

/// The script that loads the module and hydrates the islands of the page. A page needs
/// only one `<script type="module" src>`, so the content security policy need not allow
/// inline scripts.
fn boot(js: &str, wasm: &str, mode: Mode) -> String {
    let import = match mode {
        Mode::Release => format!("import * as app from \"./{js}\";\n"),
        // A dynamic import, so that the reload also works on a page that cannot start.
        Mode::Dev => format!("{RELOAD}const app = await import(\"./{js}\");\n"),
    };
    let load = format!(
        "await app.default({{ module_or_path: new URL(\"./{wasm}\", import.meta.url) }});\n"
    );
    format!("{import}{load}{WAKE}")
}

/// Leptos exports one function for each island, under the name in the page's markup. The
/// `alive` attribute is for style sheets and tests: from then on the page is interactive.
const WAKE: &str = r#"app.hydrate();
for (const island of document.querySelectorAll("leptos-island")) {
  app[island.dataset.component](island);
}
document.documentElement.dataset.alive = "";
"#;

/// Polls the file that `xtask dev` changes after every build. No answer means that the
/// server is restarting.
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

/// Static files keep their names, because pages and other sites refer to them.
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
