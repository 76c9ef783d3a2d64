//! Texts, in the font that the program contains.

use ab_glyph_rasterizer::{Point, point};
use epaint_default_fonts::UBUNTU_LIGHT;
use ttf_parser::{Face, OutlineBuilder};

use crate::canvas::{Canvas, Color, Outline};

/// Replaces a character that the font does not have.
const MISSING: char = '?';
/// The end of a text that was cut off.
const CUT: char = '…';

/// A font at one size.
pub(crate) struct Font {
    face: Option<Face<'static>>,
    /// Pixels of a unit of the font.
    scale: f32,
}

impl Font {
    /// The font with letters of this many pixels.
    pub(crate) fn new(size: f32) -> Self {
        let face = Face::parse(UBUNTU_LIGHT, 0).ok();
        let units = face.as_ref().map_or(1, Face::units_per_em);
        Self { face, scale: size / f32::from(units.max(1)) }
    }

    /// The width of a text.
    pub(crate) fn width(&self, text: &str) -> f32 {
        text.chars().map(|letter| self.advance(letter)).sum()
    }

    /// The beginning of a text that is not wider than this.
    pub(crate) fn cut(&self, text: &str, width: f32) -> String {
        if self.width(text) <= width {
            return text.to_owned();
        }
        let mut left = width - self.advance(CUT);
        let mut cut = String::new();
        for letter in text.chars() {
            left -= self.advance(letter);
            if left < 0.0 {
                break;
            }
            cut.push(letter);
        }
        cut.truncate(cut.trim_end().len());
        cut.push(CUT);
        cut
    }

    /// Writes a text that begins at this point of its base line.
    pub(crate) fn write(&self, canvas: &mut Canvas, text: &str, start: Point, color: Color) {
        let Some(face) = &self.face else { return };
        let mut outline = Outline::default();
        let mut x = start.x;
        for letter in text.chars() {
            if let Some(glyph) = face.glyph_index(letter).or_else(|| face.glyph_index(MISSING)) {
                let origin = point(x, start.y);
                let mut pen = Pen::new(&mut outline, origin, self.scale);
                // A blank has no outline.
                let _ = face.outline_glyph(glyph, &mut pen);
            }
            x += self.advance(letter);
        }
        canvas.fill(&outline, color);
    }

    fn advance(&self, letter: char) -> f32 {
        let advance = self.face.as_ref().and_then(|face| {
            let glyph = face.glyph_index(letter).or_else(|| face.glyph_index(MISSING))?;
            face.glyph_hor_advance(glyph)
        });
        f32::from(advance.unwrap_or_default()) * self.scale
    }
}

/// Adds the outline of a letter, whose vertical axis points up.
struct Pen<'a> {
    outline: &'a mut Outline,
    origin: Point,
    scale: f32,
    begin: Point,
    at: Point,
}

impl<'a> Pen<'a> {
    fn new(outline: &'a mut Outline, origin: Point, scale: f32) -> Self {
        Self { outline, origin, scale, begin: origin, at: origin }
    }

    fn placed(&self, x: f32, y: f32) -> Point {
        point(self.origin.x + x * self.scale, self.origin.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.at = self.placed(x, y);
        self.begin = self.at;
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = self.placed(x, y);
        self.outline.line(self.at, to);
        self.at = to;
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let to = self.placed(x, y);
        self.outline.quadratic(self.at, self.placed(x1, y1), to);
        self.at = to;
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let to = self.placed(x, y);
        self.outline.cubic(self.at, self.placed(x1, y1), self.placed(x2, y2), to);
        self.at = to;
    }

    fn close(&mut self) {
        self.outline.line(self.at, self.begin);
        self.at = self.begin;
    }
}
