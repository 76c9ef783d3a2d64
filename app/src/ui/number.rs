//! Counts for people.

/// `0`, `312`, `1,204,000`, in the form that the viewer has chosen.
pub(crate) fn grouped(count: u64) -> String {
    use weir_model::preferences::NumberFormat;

    let group = leptos::prelude::use_context::<NumberFormat>().unwrap_or_default().group();
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(group);
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (1_204_000, "1,204,000"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(count), expected);
        }
    }
}
