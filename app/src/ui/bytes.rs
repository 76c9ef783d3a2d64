//! Formats numbers of bytes.

/// `312 B`, `1.2 KiB`, `4.0 MiB`, `1.5 GiB`, in the viewer's number format.
pub(crate) fn text(bytes: u64) -> String {
    written(bytes, super::number::form().decimal())
}

/// The same with a point, for texts that do not follow the viewer's number format.
pub(crate) fn plain(bytes: u64) -> String {
    written(bytes, '.')
}

/// Uses no floating point, because its formatting code would make the browser build much
/// larger.
fn written(bytes: u64, point: char) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    let (unit, name) = match bytes {
        0..KIB => return format!("{bytes} B"),
        KIB..MIB => (KIB, "KiB"),
        MIB..GIB => (MIB, "MiB"),
        _ => (GIB, "GiB"),
    };
    let tenths = bytes.saturating_mul(10) / unit;
    format!("{}{point}{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn units() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1300, "1.2 KiB"),
            (5 << 20, "5.0 MiB"),
        ] {
            assert_eq!(written(bytes, '.'), expected);
        }
        assert_eq!(written(1300, ','), "1,2 KiB");
    }
}
