//! Pixels, and filling outlines with a color.

use ab_glyph_rasterizer::{Point, Rasterizer, point};

/// Red, green and blue.
pub(crate) type Color = [u8; 3];

/// Corners of the polygon that rounds the joints of a line.
const CORNERS: usize = 12;

/// An image without transparency.
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Color>,
}

impl Canvas {
    /// A white image.
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![[255; 3]; width * height] }
    }

    pub(crate) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// The rows of pixels, from the top.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[Color]> {
        self.pixels.chunks(self.width.max(1))
    }

    /// Fills an outline. What is outside of the image is cut off.
    pub(crate) fn fill(&mut self, outline: &Outline, color: Color) {
        let Some((left, top, width, height)) = self.bounds(outline) else { return };
        let mut raster = Rasterizer::new(width, height);
        let (right, bottom) = (width as f32 - 1.0, height as f32 - 1.0);
        let moved = |at: Point| {
            point((at.x - left as f32).clamp(0.0, right), (at.y - top as f32).clamp(0.0, bottom))
        };
        for segment in &outline.segments {
            match *segment {
                Segment::Line(from, to) => raster.draw_line(moved(from), moved(to)),
                Segment::Quadratic(from, over, to) => {
                    raster.draw_quad(moved(from), moved(over), moved(to));
                }
                Segment::Cubic(from, first, second, to) => {
                    raster.draw_cubic(moved(from), moved(first), moved(second), moved(to));
                }
            }
        }
        raster.for_each_pixel(|at, cover| {
            let (x, y) = (left + at % width, top + at / width);
            if x < self.width
                && let Some(pixel) = self.pixels.get_mut(y * self.width + x)
            {
                *pixel = mixed(*pixel, color, cover.min(1.0));
            }
        });
    }

    /// The part of the image that an outline covers: left, top, width and height, with an edge
    /// of one pixel.
    fn bounds(&self, outline: &Outline) -> Option<(usize, usize, usize, usize)> {
        let mut corners = outline.segments.iter().flat_map(Segment::points);
        let first = corners.next()?;
        let (mut low, mut high) = (first, first);
        for at in corners {
            low = point(low.x.min(at.x), low.y.min(at.y));
            high = point(high.x.max(at.x), high.y.max(at.y));
        }
        let (width, height) = (self.width as f32, self.height as f32);
        // A conversion of a number that is negative or not finite gives an end of the range.
        let (left, top) = (low.x.clamp(0.0, width) as usize, low.y.clamp(0.0, height) as usize);
        let right = high.x.clamp(0.0, width).ceil() as usize + 2;
        let bottom = high.y.clamp(0.0, height).ceil() as usize + 2;
        Some((left, top, right.saturating_sub(left), bottom.saturating_sub(top)))
    }
}

/// The color between two others.
fn mixed(under: Color, over: Color, share: f32) -> Color {
    [0, 1, 2].map(|at| {
        let (under, over) = (f32::from(channel(under, at)), f32::from(channel(over, at)));
        (under + (over - under) * share).round() as u8
    })
}

fn channel(color: Color, at: usize) -> u8 {
    color.get(at).copied().unwrap_or_default()
}

/// The edges of shapes. All shapes of an outline have the same direction, so that the parts
/// that several cover are filled too.
#[derive(Default)]
pub(crate) struct Outline {
    segments: Vec<Segment>,
}

enum Segment {
    Line(Point, Point),
    Quadratic(Point, Point, Point),
    Cubic(Point, Point, Point, Point),
}

impl Segment {
    fn points(&self) -> impl Iterator<Item = Point> + use<> {
        let points = match *self {
            Self::Line(from, to) => [from, to, to, to],
            Self::Quadratic(from, over, to) => [from, over, to, to],
            Self::Cubic(from, first, second, to) => [from, first, second, to],
        };
        points.into_iter()
    }
}

impl Outline {
    pub(crate) fn line(&mut self, from: Point, to: Point) {
        self.segments.push(Segment::Line(from, to));
    }

    pub(crate) fn quadratic(&mut self, from: Point, over: Point, to: Point) {
        self.segments.push(Segment::Quadratic(from, over, to));
    }

    pub(crate) fn cubic(&mut self, from: Point, first: Point, second: Point, to: Point) {
        self.segments.push(Segment::Cubic(from, first, second, to));
    }

    /// A rectangle.
    pub(crate) fn rectangle(&mut self, left: f32, top: f32, right: f32, bottom: f32) {
        let corners = [(left, top), (left, bottom), (right, bottom), (right, top)];
        self.polygon(&corners.map(|(x, y)| point(x, y)));
    }

    /// A line through points, with round joints and ends. One point is a dot.
    pub(crate) fn stroke(&mut self, points: &[Point], width: f32) {
        for pair in points.windows(2) {
            if let [from, to] = pair {
                self.bar(*from, *to, width);
            }
        }
        for at in points {
            self.dot(*at, width / 2.0);
        }
    }

    /// A dot.
    pub(crate) fn dot(&mut self, at: Point, radius: f32) {
        let corner = |number: usize| {
            let angle = -std::f32::consts::TAU * number as f32 / CORNERS as f32;
            point(at.x + radius * angle.cos(), at.y + radius * angle.sin())
        };
        let corners: Vec<Point> = (0..CORNERS).map(corner).collect();
        self.polygon(&corners);
    }

    /// The rectangle around a line between two points.
    fn bar(&mut self, from: Point, to: Point, width: f32) {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = dx.hypot(dy);
        if length <= f32::EPSILON {
            return;
        }
        let (x, y) = (-dy / length * width / 2.0, dx / length * width / 2.0);
        self.polygon(&[
            point(from.x + x, from.y + y),
            point(to.x + x, to.y + y),
            point(to.x - x, to.y - y),
            point(from.x - x, from.y - y),
        ]);
    }

    fn polygon(&mut self, corners: &[Point]) {
        let ends = corners.iter().skip(1).chain(corners.first());
        for (from, to) in corners.iter().zip(ends) {
            self.line(*from, *to);
        }
    }
}
