//! From byte positions to lines and columns.

/// Characters of an excerpt before and after the fault.
const AROUND: usize = 60;

/// The start positions of the lines of a text.
#[derive(Debug)]
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let mut starts = vec![0];
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            // A line ends with \n, \r\n or a single \r, as in the language.
            let ends = *byte == b'\n' || *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
            if ends {
                starts.push(at + 1);
            }
        }
        Self { starts }
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> u32 {
        count(self.starts.partition_point(|start| *start <= at))
    }

    /// The first byte of a line, from 1.
    pub(crate) fn start(&self, line: u32) -> usize {
        let index = usize::try_from(line).map_or(0, |line| line.saturating_sub(1));
        self.starts.get(index).copied().unwrap_or(0)
    }

    /// Line and column of a byte, from 1; the column in characters. A byte after the end
    /// means the end.
    pub(crate) fn place(&self, text: &str, at: usize) -> (u32, u32) {
        let at = text.floor_char_boundary(at);
        let line = self.line(at);
        (line, count(text[self.start(line)..at].chars().count() + 1))
    }
}

/// The line around a byte, or a part of it.
pub(crate) fn excerpt(text: &str, at: usize) -> String {
    let at = text.floor_char_boundary(at);
    let is_end = |character: char| character == '\n' || character == '\r';
    let (before, after) = text.split_at(at);
    let before = &before[before.rfind(is_end).map_or(0, |end| end + 1)..];
    let after = &after[..after.find(is_end).unwrap_or(after.len())];
    let start = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(start, _)| start);
    let near = before[start..].chars().chain(after.chars().take(AROUND));
    near.collect::<String>().trim().to_owned()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
