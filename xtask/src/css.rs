//! Bundles the style sheet: `style/main.css` and its imports, in one file.

use std::path::Path;

use anyhow::{Result, anyhow};
use lightningcss::bundler::{Bundler, FileProvider};
use lightningcss::printer::PrinterOptions;
use lightningcss::stylesheet::{MinifyOptions, ParserOptions};
use lightningcss::targets::{Browsers, Targets};

/// The oldest browsers that support `light-dark()`. They also support nesting, layers and
/// container queries, so none of these is rewritten.
const BROWSERS: Browsers = Browsers {
    // The data for Android's browser covers only its newest release. Its engine is that
    // of Chrome.
    android: None,
    chrome: Some(version(123, 0)),
    edge: Some(version(123, 0)),
    firefox: Some(version(120, 0)),
    ie: None,
    ios_saf: Some(version(17, 5)),
    opera: Some(version(109, 0)),
    safari: Some(version(17, 5)),
    samsung: Some(version(27, 0)),
};

const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor << 8
}

/// Resolves `@import`, minifies, and keeps modern syntax.
pub(crate) fn bundle(main: &Path) -> Result<String> {
    let targets = Targets::from(BROWSERS);
    // Errors of the library borrow from the bundler, so they are converted to text here.
    let files = FileProvider::new();
    let mut bundler = Bundler::new(&files, None, ParserOptions::default());
    let mut sheet = bundler.bundle(main).map_err(|error| anyhow!("style: {error}"))?;
    sheet
        .minify(MinifyOptions { targets, ..MinifyOptions::default() })
        .map_err(|error| anyhow!("style: {error}"))?;
    let printed = sheet
        .to_css(PrinterOptions { minify: true, targets, ..PrinterOptions::default() })
        .map_err(|error| anyhow!("style: {error}"))?;
    Ok(printed.code)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::bundle;

    /// The syntax of our style sheets must reach the browser unchanged.
    #[test]
    fn modern_syntax_survives() {
        let directory = tempfile::tempdir().unwrap();
        let main = directory.path().join("main.css");
        fs::write(&main, "@layer base, page;\n@import './part.css' layer(page);").unwrap();
        fs::write(
            directory.path().join("part.css"),
            ":root { color-scheme: light dark; --ink: light-dark(#111, #eee) }
             .card { color: light-dark(black, white); & .title { margin: 0px }
             @container (width > 30rem) { padding: 1rem } }",
        )
        .unwrap();

        let css = bundle(&main).unwrap();

        assert_eq!(
            css,
            "@layer base;@layer page{:root{color-scheme:light dark;--ink:light-dark(#111,#eee)}\
             .card{color:light-dark(#000,#fff);& .title{margin:0}\
             @container (width>30rem){padding:1rem}}}"
        );
    }

    #[test]
    fn a_missing_part_is_an_error_that_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let main = directory.path().join("main.css");
        fs::write(&main, "@import './nowhere.css';").unwrap();
        assert!(bundle(&main).unwrap_err().to_string().contains("style"));
    }
}
