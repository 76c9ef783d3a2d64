//! The user guide in the app: `docs/guide`, one page for each task.
//!
//! What belongs here: the list of pages, and the conversion from Markdown to HTML. What
//! does not: the layout of a page (`pages::help`), and serving pictures (`weir-server`).
//! Raw HTML is shown as text. The files are compiled into the program; a debug build
//! reads them from disk at each request.

use std::borrow::Cow;
use std::collections::HashMap;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use rust_embed::RustEmbed;

/// The files of the guide.
#[derive(RustEmbed)]
#[folder = "../docs/guide"]
struct Files;

/// The index, which lists all pages in sections.
const INDEX: &str = "README.md";
const EXTENSION: &str = ".md";
/// Path prefix of pictures, in the guide and in the app.
const PICTURES: &str = "img/";
const PICTURE_ROUTE: &str = "/_help/img/";
/// Bytes of the hash in the version of a picture.
const VERSION_BYTES: usize = 8;

/// A rendered page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// The first heading.
    pub(crate) title: String,
    /// The text below the first heading, as HTML.
    pub(crate) html: String,
}

/// Pages under one heading of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexSection {
    /// The heading.
    pub(crate) title: String,
    /// Name and title of each page.
    pub(crate) pages: Vec<(String, String)>,
}

/// A picture of the guide.
pub struct Image {
    /// The bytes of the file.
    pub data: Cow<'static, [u8]>,
    /// A hash of the file. It changes when the file changes.
    pub version: String,
}

/// The page with this name.
pub(crate) fn page(name: &str) -> Option<Page> {
    if !is_name(name) {
        return None;
    }
    let text = text(&format!("{name}{EXTENSION}"))?;
    Some(Page { title: title(&text), html: render(&text) })
}

/// The pages in the sections and the order of the index.
pub(crate) fn index() -> Vec<IndexSection> {
    let text = text(INDEX).unwrap_or_default();
    let events: Vec<Event<'_>> = Parser::new(&text).collect();
    let mut sections: Vec<IndexSection> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => {
                sections.push(IndexSection { title: heading(&events[at..]), pages: Vec::new() });
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                if let (Some(section), Some(entry)) = (sections.last_mut(), index_entry(dest_url)) {
                    section.pages.push(entry);
                }
            }
            _ => {}
        }
    }
    sections
}

/// Name and title of the page that a link of the index leads to.
fn index_entry(link: &str) -> Option<(String, String)> {
    let name = link.strip_suffix(EXTENSION).filter(|name| is_name(name))?;
    Some((name.to_owned(), title(&text(link)?)))
}

/// The picture with this name.
pub fn image(name: &str) -> Option<Image> {
    let (stem, ending) = name.rsplit_once('.')?;
    if !is_name(stem) || !matches!(ending, "png" | "svg" | "webp") {
        return None;
    }
    let file = Files::get(&format!("{PICTURES}{name}"))?;
    let hash = file.metadata.sha256_hash();
    let version = hash.iter().take(VERSION_BYTES).map(|byte| format!("{byte:02x}")).collect();
    Some(Image { data: file.data, version })
}

/// Whether a text can be a file name in the guide. It must not lead to other directories.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_allowed)
}

fn text(file: &str) -> Option<String> {
    String::from_utf8(Files::get(file)?.data.into_owned()).ok()
}

/// The first heading.
fn title(text: &str) -> String {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or("Help").trim().to_owned()
}

/// The text below the first heading as HTML.
fn render(text: &str) -> String {
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let mut anchors = HashMap::new();
    let mut shown = Vec::with_capacity(events.len());
    let mut in_title = false;
    let mut in_plain_link = false;
    let mut in_plain_image = false;
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => in_title = true,
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => in_title = false,
            _ if in_title => {}
            Event::Start(Tag::Heading { level, .. }) => {
                let id = anchor(&heading(&events[at..]), &mut anchors);
                shown.push(Event::Start(Tag::Heading {
                    level: *level,
                    id: Some(CowStr::from(id)),
                    classes: Vec::new(),
                    attrs: Vec::new(),
                }));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => match address(dest_url) {
                Some(here) => shown.push(Event::Start(Tag::Link {
                    link_type: *link_type,
                    dest_url: CowStr::from(here),
                    title: title.clone(),
                    id: id.clone(),
                })),
                // Links to documents outside the app become text.
                None => in_plain_link = true,
            },
            Event::End(TagEnd::Link) if in_plain_link => in_plain_link = false,
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                match picture(dest_url) {
                    Some(here) => shown.push(Event::Start(Tag::Image {
                        link_type: *link_type,
                        dest_url: CowStr::from(here),
                        title: title.clone(),
                        id: id.clone(),
                    })),
                    None => in_plain_image = true,
                }
            }
            Event::End(TagEnd::Image) if in_plain_image => in_plain_image = false,
            Event::Html(text) | Event::InlineHtml(text) => shown.push(Event::Text(text.clone())),
            // Wide tables scroll in a container that can take the keyboard focus.
            Event::Start(Tag::Table(_)) => {
                shown.push(Event::Html(CowStr::from(
                    "<div class=\"guide-table\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">",
                )));
                shown.push(event.clone());
            }
            Event::End(TagEnd::Table) => {
                shown.push(event.clone());
                shown.push(Event::Html(CowStr::from("</div>")));
            }
            // Code scrolls, so it can take the focus. The language is not used.
            Event::Start(Tag::CodeBlock(_)) => {
                shown.push(Event::Html(CowStr::from("<pre tabindex=\"0\"><code>")));
            }
            Event::End(TagEnd::CodeBlock) => {
                shown.push(Event::Html(CowStr::from("</code></pre>")));
            }
            other => shown.push(other.clone()),
        }
    }
    let mut written = String::with_capacity(text.len() * 2);
    html::push_html(&mut written, shown.into_iter());
    written
}

/// The text of the heading that begins here.
fn heading(events: &[Event<'_>]) -> String {
    let mut text = String::new();
    for event in events {
        match event {
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(part) | Event::Code(part) => text.push_str(part),
            _ => {}
        }
    }
    text
}

/// The anchor that Markdown renderers give to a heading. A number makes equal headings
/// unique.
fn anchor(heading: &str, known: &mut HashMap<String, usize>) -> String {
    let is_allowed = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == ' ';
    let text: String = heading.trim().to_lowercase().chars().filter(|c| is_allowed(*c)).collect();
    let text = text.replace(' ', "-");
    let count = known.entry(text.clone()).or_insert(0);
    *count += 1;
    if *count == 1 { text } else { format!("{text}-{}", *count - 1) }
}

/// The address in the app of a link in the guide. `None`: the document is not in the app.
fn address(link: &str) -> Option<String> {
    if link.starts_with('#') || link.starts_with("https://") || link.starts_with("http://") {
        return Some(link.to_owned());
    }
    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, format!("#{anchor}")),
        None => (link, String::new()),
    };
    match file.strip_suffix(EXTENSION)? {
        "README" => Some(format!("/help{anchor}")),
        name if is_name(name) => Some(format!("/help/{name}{anchor}")),
        _ => None,
    }
}

/// The address in the app of a picture in the guide.
fn picture(link: &str) -> Option<String> {
    let name = link.strip_prefix(PICTURES)?;
    let image = image(name)?;
    Some(format!("{PICTURE_ROUTE}{name}?v={}", image.version))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Files, address, anchor, image, index, page, render};

    #[test]
    fn markdown_becomes_html() {
        let html = render(
            "# Title\n\nSee [keys](api-keys.md#one-two), [plugins](../plugins.md) and \
             <b>this</b>.\n\n## One `two`\n\n```sh\na < b\n```\n\n| a |\n|---|\n| b |\n",
        );
        assert!(!html.contains("Title"), "{html}");
        assert!(
            html.contains("<a href=\"/help/api-keys#one-two\">keys</a>, plugins and"),
            "{html}"
        );
        assert!(html.contains("&lt;b&gt;this&lt;/b&gt;"), "{html}");
        assert!(html.contains("<h2 id=\"one-two\">One <code>two</code></h2>"), "{html}");
        assert!(html.contains("<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>"), "{html}");
        assert!(html.contains("tabindex=\"0\"><table>"), "{html}");
    }

    #[test]
    fn addresses_and_anchors() {
        for (link, expected) in [
            ("README.md", Some("/help")),
            ("live-view.md", Some("/help/live-view")),
            ("#a", Some("#a")),
            ("https://weir.example", Some("https://weir.example")),
            ("../plugins.md", None),
            ("img/live.png", None),
            ("javascript:alert(1)", None),
        ] {
            assert_eq!(address(link).as_deref(), expected, "{link}");
        }
        let mut known = HashMap::new();
        assert_eq!(anchor("The `weir` command", &mut known), "the-weir-command");
        assert_eq!(anchor("The weir command", &mut known), "the-weir-command-1");
    }

    #[test]
    fn only_files_of_the_guide_are_shown() {
        for name in ["", "README.md", "../README", "a/b", "nothing"] {
            assert_eq!(page(name), None, "{name}");
        }
        for name in ["live.md", "../../img/live.png", "x.png/../y.png", "nothing.png"] {
            assert!(image(name).is_none(), "{name}");
        }
    }

    /// Links between pages, also to headings, have targets.
    #[test]
    fn every_page_is_listed_and_every_link_has_a_target() {
        let listed: Vec<String> =
            index().into_iter().flat_map(|section| section.pages).map(|(name, _)| name).collect();
        let names = Files::iter().filter_map(|file| file.strip_suffix(".md").map(str::to_owned));
        let html: HashMap<String, String> = names
            .map(|name| {
                let page = page(&name).unwrap_or_else(|| panic!("{name} is no name of a page"));
                (name, page.html)
            })
            .collect();
        for name in html.keys().filter(|name| *name != "README") {
            let times = listed.iter().filter(|listed| *listed == name).count();
            assert_eq!(times, 1, "{name} is listed once in the index");
        }
        for (name, html_of_page) in &html {
            for link in html_of_page.split("href=\"").skip(1) {
                let link = link.split('"').next().unwrap();
                let (to, anchor) = link.split_once('#').unwrap_or((link, ""));
                let to = match to {
                    "" => name.as_str(),
                    "/help" => "README",
                    other => match other.strip_prefix("/help/") {
                        Some(to) => to,
                        None => continue,
                    },
                };
                let found = html.get(to).unwrap_or_else(|| panic!("{name} links to {link}"));
                let id = format!("id=\"{anchor}\"");
                assert!(anchor.is_empty() || found.contains(&id), "{name} links to {link}");
            }
        }
    }
}
