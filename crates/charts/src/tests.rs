use std::io::Read as _;

use flate2::bufread::ZlibDecoder;
use weir_model::reports::{Chart, ChartKind, ChartSeries, Finite};

use crate::chart::draw;
use crate::{HEIGHT_MAX, WIDTH, png};

const WHITE: [u8; 3] = [255; 3];

fn series(label: &str, values: &[f64]) -> ChartSeries {
    let values = values.iter().map(|value| Finite::new(*value)).collect();
    ChartSeries { label: label.to_owned(), values }
}

fn chart(kind: ChartKind, series: Vec<ChartSeries>) -> Chart {
    let count = series.iter().map(|one| one.values.len()).max().unwrap_or(0);
    let labels = (1..=count).map(|day| format!("{day}-Aug-2026")).collect();
    Chart { kind, labels, series }
}

/// How many pixels have each color that is not white.
fn pixels(chart: &Chart, color: [u8; 3]) -> usize {
    draw(chart).rows().flatten().filter(|pixel| **pixel == color).count()
}

/// The width and height of a PNG image, and its pixels.
#[expect(clippy::disallowed_methods, reason = "the test has made the file")]
fn decoded(file: &[u8]) -> (usize, usize, Vec<u8>) {
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (width, height) = (number(16), number(20));
    assert_eq!(&file[37..41], b"IDAT");
    let mut rows = Vec::new();
    ZlibDecoder::new(&file[41..41 + number(33)]).read_to_end(&mut rows).unwrap();
    (width, height, rows)
}

#[test]
fn a_file_has_the_pixels_of_the_chart() {
    let chart = chart(ChartKind::Lines, vec![series("paid", &[1.0, 5.0, 2.0, 8.0])]);
    let (width, height, rows) = decoded(&png(&chart));
    let canvas = draw(&chart);
    assert_eq!((width, height), canvas.size());
    let expected: Vec<u8> = canvas
        .rows()
        .flat_map(|row| std::iter::once(0).chain(row.iter().flatten().copied()))
        .collect();
    assert_eq!(rows, expected);
    // The same chart is the same file.
    assert_eq!(png(&chart), png(&chart));
}

#[test]
fn lines_bars_and_names_have_the_color_of_their_series() {
    for kind in [ChartKind::Lines, ChartKind::Bars] {
        let both = chart(kind, vec![series("a", &[3.0, 1.0]), series("b", &[1.0, 3.0])]);
        for color in [[0x14, 0x53, 0x2d], [0xd9, 0x77, 0x06]] {
            assert!(pixels(&both, color) > 300, "{kind:?} {color:?}");
        }
        assert_eq!(pixels(&both, [0x1d, 0x4e, 0xd8]), 0);
    }
    // A larger number is a higher bar.
    let bar = |number: f64| {
        let one = chart(ChartKind::Bars, vec![series("a", &[number, 100.0])]);
        pixels(&one, [0x14, 0x53, 0x2d])
    };
    assert!(bar(10.0) < bar(50.0) && bar(50.0) < bar(90.0));
}

#[test]
fn a_missing_number_is_a_gap() {
    let whole = chart(ChartKind::Lines, vec![series("a", &[5.0; 40])]);
    let mut cut = chart(ChartKind::Lines, vec![series("a", &[5.0; 40])]);
    for value in cut.series[0].values.iter_mut().skip(10).take(20) {
        *value = None;
    }
    let green = [0x14, 0x53, 0x2d];
    assert!(pixels(&cut, green) * 3 < pixels(&whole, green) * 2);
}

#[test]
fn every_chart_has_a_bounded_image() {
    let long = "Wide label ".repeat(50);
    let many = |count: usize, points: usize| {
        let one = |at: usize| series(&format!("{at} {long}"), &vec![at as f64 * 1e300; points]);
        (0..count).map(one).collect::<Vec<_>>()
    };
    for kind in [ChartKind::Lines, ChartKind::Bars] {
        for (count, points) in [(0, 0), (1, 0), (1, 1), (3, 2), (10, 120), (40, 1_000)] {
            let mut chart = chart(kind, many(count, points));
            for label in &mut chart.labels {
                label.push_str(&long);
            }
            let (width, height) = draw(&chart).size();
            assert_eq!(width, WIDTH);
            assert!(height <= HEIGHT_MAX && height <= 600, "{height}");
            assert!(png(&chart).len() < 300_000);
        }
    }
}

#[test]
fn texts_end_within_the_image() {
    let long = "漢字 and a very long name of an interval".to_owned();
    let mut chart = chart(ChartKind::Bars, vec![series(&long, &[-4.0, 9.0]), series("b", &[1.0])]);
    chart.labels = vec![long.clone(), long];
    let canvas = draw(&chart);
    for row in canvas.rows() {
        let edges = row.iter().take(8).chain(row.iter().rev().take(8));
        assert!(edges.copied().all(|pixel| pixel == WHITE));
    }
}

/// The widths of the texts below the number of the lowest level. More than the space of a word
/// separates them.
fn texts_below(chart: &Chart) -> Vec<usize> {
    let canvas = draw(chart);
    let rows: Vec<_> = canvas.rows().skip(384).collect();
    let inked = (0..WIDTH).filter(|x| rows.iter().any(|row| row[*x] != WHITE));
    let mut texts: Vec<(usize, usize)> = Vec::new();
    for x in inked {
        match texts.last_mut() {
            Some((_, end)) if x - *end < 8 => *end = x,
            _ => texts.push((x, x)),
        }
    }
    texts.into_iter().map(|(start, end)| end - start).collect()
}

#[test]
fn labels_do_not_touch_each_other() {
    for kind in [ChartKind::Lines, ChartKind::Bars] {
        for count in [9, 14, 28, 29, 30, 31, 60, 90, 120] {
            let texts = texts_below(&chart(kind, vec![series("a", &vec![1.0; count])]));
            assert!(texts.len() >= 4, "{count} {texts:?}");
            assert!(texts.iter().all(|width| *width < 150), "{count} {texts:?}");
        }
    }
}

#[test]
fn each_bar_has_its_name_and_times_are_whole() {
    let week = |kind| texts_below(&chart(kind, vec![series("a", &[1.0; 7])])).len();
    assert_eq!(week(ChartKind::Bars), 7);
    assert_eq!(week(ChartKind::Lines), 4);
}
