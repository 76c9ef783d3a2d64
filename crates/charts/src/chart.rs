//! The layout of a chart: levels and labels around lines or bars, and the names of the series
//! below. All texts are cut to their place.

use std::ops::Range;

use ab_glyph_rasterizer::{Point, point};
use weir_model::reports::{Chart, ChartKind, ChartSeries, Finite, POINTS_MAX, SERIES_MAX};

use crate::canvas::{Canvas, Color, Outline};
use crate::font::Font;
use crate::scale::Scale;

/// Width of every image in pixels.
pub const WIDTH: usize = 1_000;
/// The greatest height of an image in pixels.
pub const HEIGHT_MAX: usize = CHART_HEIGHT + LEGEND_LINES * LEGEND_LINE;

/// Height without the names of the series.
const CHART_HEIGHT: usize = 420;
const LEGEND_LINE: usize = 36;
/// Names are cut, so that a line has at least two of them.
const LEGEND_LINES: usize = SERIES_MAX / 2;
const LEGEND_WIDTH: f32 = 420.0;

const TEXT: f32 = 22.0;
const EDGE: f32 = 16.0;
/// Space below the lowest level, for the labels.
const BOTTOM: f32 = 48.0;
const LEVEL_WIDTH: f32 = 160.0;
const LABEL_WIDTH: f32 = 180.0;
/// Distance between two labels.
const GAP: f32 = 20.0;
/// With at most so many bars, all labels are shown, cut to their place.
const ALL_LABELS: usize = 8;
const LINE: f32 = 4.0;
/// Each point of a line with at most so many points is a dot.
const DOTTED: usize = 31;
/// The part of the place of a label that its bars take.
const BARS: f32 = 0.76;

const INK: Color = [0x1d, 0x1c, 0x1a];
const QUIET: Color = [0x5c, 0x59, 0x52];
const GRID: Color = [0xdd, 0xda, 0xd3];
/// The colors of the series, which differ in brightness too.
const COLORS: [Color; SERIES_MAX] = [
    [0x14, 0x53, 0x2d],
    [0xd9, 0x77, 0x06],
    [0x1d, 0x4e, 0xd8],
    [0xbe, 0x18, 0x5d],
    [0x0e, 0x74, 0x90],
    [0x65, 0xa3, 0x0d],
    [0x7c, 0x3a, 0xed],
    [0xb4, 0x53, 0x09],
    [0x64, 0x74, 0x8b],
    [0x99, 0x1b, 0x1b],
];

/// The part of the image with the lines or bars.
struct Plot {
    left: f32,
    right: f32,
    top: f32,
    bottom: f32,
    scale: Scale,
    /// The number of labels, at least 1.
    places: usize,
}

impl Plot {
    fn place_width(&self) -> f32 {
        (self.right - self.left) / self.places as f32
    }

    /// The left end of the place of a label.
    fn place(&self, at: usize) -> f32 {
        self.left + self.place_width() * at as f32
    }

    fn height(&self, number: f64) -> f32 {
        self.bottom - (self.bottom - self.top) * self.scale.share(number)
    }
}

/// The image of a chart.
pub(crate) fn draw(chart: &Chart) -> Canvas {
    let font = Font::new(TEXT);
    let shown = chart.series.get(..SERIES_MAX.min(chart.series.len())).unwrap_or_default();
    let names = names(&font, shown);
    let lines = names.iter().map(|name| name.line + 1).max().unwrap_or(0).min(LEGEND_LINES);
    let mut canvas = Canvas::new(WIDTH, CHART_HEIGHT + lines * LEGEND_LINE);
    let plot = plot(&font, chart, shown);
    levels(&mut canvas, &font, &plot);
    labels(&mut canvas, &font, &plot, chart);
    for (at, series) in shown.iter().enumerate() {
        match chart.kind {
            ChartKind::Lines => line(&mut canvas, &plot, series, color(at)),
            ChartKind::Bars => bars(&mut canvas, &plot, series, at..shown.len()),
        }
    }
    for name in names {
        let base = (CHART_HEIGHT + name.line * LEGEND_LINE) as f32 + TEXT;
        let mut swatch = Outline::default();
        swatch.rectangle(name.left, base - TEXT * 0.7, name.left + TEXT * 0.8, base);
        canvas.fill(&swatch, color(name.series));
        font.write(&mut canvas, &name.text, point(name.left + TEXT * 1.2, base), INK);
    }
    canvas
}

fn color(series: usize) -> Color {
    COLORS.get(series).copied().unwrap_or(QUIET)
}

/// The numbers of a series that are drawn.
fn numbers(series: &ChartSeries) -> impl Iterator<Item = (usize, f64)> {
    let numbers = series.values.iter().take(POINTS_MAX).enumerate();
    numbers.filter_map(|(at, value)| value.map(|number: Finite| (at, number.value())))
}

fn plot(font: &Font, chart: &Chart, shown: &[ChartSeries]) -> Plot {
    let scale = Scale::of(shown.iter().flat_map(numbers).map(|(_, number)| number));
    let texts = scale.levels();
    let widest = texts.iter().map(|(_, text)| font.width(text)).fold(0.0, f32::max);
    Plot {
        left: EDGE + widest.min(LEVEL_WIDTH) + EDGE,
        right: WIDTH as f32 - EDGE,
        top: EDGE + TEXT / 2.0,
        bottom: CHART_HEIGHT as f32 - BOTTOM,
        scale,
        places: chart.labels.len().clamp(1, POINTS_MAX),
    }
}

/// The lines of the levels, with their numbers to the left.
fn levels(canvas: &mut Canvas, font: &Font, plot: &Plot) {
    for (number, text) in plot.scale.levels() {
        let y = plot.height(number).round();
        let mut level = Outline::default();
        level.rectangle(plot.left, y - 1.0, plot.right, y + 1.0);
        canvas.fill(&level, if number == 0.0 { QUIET } else { GRID });
        let text = font.cut(&text, LEVEL_WIDTH);
        let left = plot.left - EDGE / 2.0 - font.width(&text);
        font.write(canvas, &text, point(left, y + TEXT * 0.35), QUIET);
    }
}

/// As many labels as fit below the plot. Names of bars are cut to their place, so that each bar
/// has one; times are left out instead, because the ends of dates tell them apart.
fn labels(canvas: &mut Canvas, font: &Font, plot: &Plot, chart: &Chart) {
    let shown = chart.labels.iter().take(plot.places);
    let widest = shown.clone().map(|text| font.width(text)).fold(0.0, f32::max);
    let place = plot.place_width() - GAP;
    let are_all = chart.kind == ChartKind::Bars && plot.places <= ALL_LABELS;
    let (each, width) = if widest <= place || are_all {
        (1, place)
    } else {
        let width = widest.min(LABEL_WIDTH);
        (((width + GAP) / plot.place_width()).ceil().max(1.0) as usize, width)
    };
    let mut end = 0.0;
    for (at, text) in shown.enumerate().step_by(each) {
        let text = font.cut(text, width);
        let middle = plot.place(at) + plot.place_width() / 2.0;
        let most = plot.right - font.width(&text);
        let left = (middle - font.width(&text) / 2.0).clamp(EDGE, most.max(EDGE));
        // A label that was moved into the image can need the space of its neighbor.
        if left >= end {
            font.write(canvas, &text, point(left, plot.bottom + TEXT * 1.5), QUIET);
            end = left + font.width(&text) + GAP / 2.0;
        }
    }
}

/// A line through the numbers of a series, with a gap where there is none.
fn line(canvas: &mut Canvas, plot: &Plot, series: &ChartSeries, color: Color) {
    let mut outline = Outline::default();
    let mut run: Vec<Point> = Vec::new();
    let mut last = None;
    for (at, number) in numbers(series) {
        if last.is_some_and(|last: usize| last + 1 != at) {
            outline.stroke(&run, LINE);
            run.clear();
        }
        let middle = plot.place(at) + plot.place_width() / 2.0;
        let spot = point(middle, plot.height(number));
        if plot.places <= DOTTED {
            outline.dot(spot, LINE * 1.25);
        }
        run.push(spot);
        last = Some(at);
    }
    outline.stroke(&run, LINE);
    canvas.fill(&outline, color);
}

/// The bars of one series beside those of the others. `of` has its number, and ends with the
/// number of series.
fn bars(canvas: &mut Canvas, plot: &Plot, series: &ChartSeries, of: Range<usize>) {
    let width = plot.place_width() * BARS / of.end.max(1) as f32;
    let gap = if width > 8.0 { 2.0 } else { 0.0 };
    let zero = plot.height(0.0);
    let mut outline = Outline::default();
    for (at, number) in numbers(series) {
        let begin = plot.place(at) + plot.place_width() * (1.0 - BARS) / 2.0;
        let left = begin + width * of.start as f32;
        let end = plot.height(number);
        outline.rectangle(left, zero.min(end), left + width - gap, zero.max(end));
    }
    canvas.fill(&outline, color(of.start));
}

/// The name of a series below the chart.
struct Name {
    series: usize,
    text: String,
    line: usize,
    left: f32,
}

/// The names of several series, beside each other as far as they fit. One series has none: the
/// text around the chart says what it is.
fn names(font: &Font, shown: &[ChartSeries]) -> Vec<Name> {
    if shown.len() < 2 {
        return Vec::new();
    }
    let (mut line, mut left) = (0, EDGE);
    let mut names = Vec::new();
    for (series, one) in shown.iter().enumerate() {
        let text = font.cut(&one.label, LEGEND_WIDTH);
        let width = TEXT * 1.2 + font.width(&text) + EDGE * 1.5;
        if left > EDGE && left + width > WIDTH as f32 {
            (line, left) = (line + 1, EDGE);
        }
        names.push(Name { series, text, line, left });
        left += width;
    }
    names
}
