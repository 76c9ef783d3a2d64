//! Formulas over series, such as `A/B*100` (QRY-12).
//!
//! A formula has numbers, the letters of series (`A` is the first one), parentheses, and
//! `+ - * / % **`, with the precedence of Python. Dividing by zero is 0, and so is every
//! result that is no finite number.
//!
//! What belongs here: reading a formula and its value. What does not: which series it is
//! applied to (`results`).

use serde::{Serialize, Serializer};
use weir_model::errors::FieldError;

/// Most characters of a formula.
pub const FORMULA_MAX: usize = 500;
/// Most nested parentheses, signs and powers.
const DEPTH_MAX: usize = 64;
/// Most series: the letters of the alphabet.
const LETTERS: usize = 26;

/// Why a text is no formula.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} (character {character})")]
pub struct FormulaError {
    /// Description of the fault.
    pub detail: String,
    /// Position of the fault, in characters from 1.
    pub character: usize,
}

impl FormulaError {
    /// The fault of a field.
    pub fn at(&self, attr: &str) -> FieldError {
        FieldError::new(attr, "invalid_input", format!("{self}."))
    }
}

/// A formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    /// In postfix order.
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Number(f64),
    /// A series, from 0.
    Series(usize),
    Negate,
    Apply(Operator),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

impl Formula {
    /// Reads a formula over this many series.
    ///
    /// # Errors
    /// The first fault with its position.
    pub fn parse(text: &str, series: usize) -> Result<Self, FormulaError> {
        let text = text.trim();
        let characters: Vec<char> = text.chars().take(FORMULA_MAX + 1).collect();
        let mut parser = Parser {
            characters: &characters,
            at: 0,
            depth: 0,
            series: series.min(LETTERS),
            steps: Vec::new(),
        };
        if characters.len() > FORMULA_MAX {
            let detail = format!("A formula has at most {FORMULA_MAX} characters");
            return Err(FormulaError { detail, character: FORMULA_MAX + 1 });
        }
        parser.sum()?;
        parser.skip_blanks();
        if parser.at < characters.len() {
            return Err(parser.unexpected("an operator"));
        }
        Ok(Self { text: text.to_owned(), steps: parser.steps })
    }

    /// The text of the formula.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value for one value of each series. A missing value is 0.
    pub fn value(&self, series: &[f64]) -> f64 {
        let mut stack: Vec<f64> = Vec::new();
        for step in &self.steps {
            let value = match step {
                Step::Number(number) => *number,
                Step::Series(at) => series.get(*at).copied().unwrap_or(0.0),
                Step::Negate => -stack.pop().unwrap_or(0.0),
                Step::Apply(operator) => {
                    let right = stack.pop().unwrap_or(0.0);
                    operator.apply(stack.pop().unwrap_or(0.0), right)
                }
            };
            stack.push(if value.is_finite() { value } else { 0.0 });
        }
        stack.pop().unwrap_or(0.0)
    }

    /// The values for series of values, one for each value of the longest series.
    pub fn values(&self, series: &[&[f64]]) -> Vec<f64> {
        let length = series.iter().map(|values| values.len()).max().unwrap_or(0);
        let mut row = vec![0.0; series.len()];
        (0..length)
            .map(|at| {
                for (value, values) in row.iter_mut().zip(series) {
                    *value = values.get(at).copied().unwrap_or(0.0);
                }
                self.value(&row)
            })
            .collect()
    }
}

impl Serialize for Formula {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Operator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide | Self::Remainder if right == 0.0 => 0.0,
            Self::Divide => left / right,
            // The result has the sign of the divisor.
            Self::Remainder => left - right * (left / right).floor(),
            Self::Power => left.powf(right),
        }
    }
}

struct Parser<'a> {
    characters: &'a [char],
    at: usize,
    depth: usize,
    series: usize,
    steps: Vec<Step>,
}

impl Parser<'_> {
    fn fault(&self, at: usize, detail: impl Into<String>) -> FormulaError {
        FormulaError { detail: detail.into(), character: at + 1 }
    }

    fn unexpected(&self, expected: &str) -> FormulaError {
        match self.characters.get(self.at) {
            Some(found) => self.fault(self.at, format!("Expected {expected}, found `{found}`")),
            None => self.fault(self.at, format!("Expected {expected}, found the end")),
        }
    }

    fn skip_blanks(&mut self) {
        while self.characters.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    /// The next character that is no blank.
    fn next(&mut self) -> Option<char> {
        self.skip_blanks();
        self.characters.get(self.at).copied()
    }

    /// Whether `**` is next.
    fn at_power(&mut self) -> bool {
        self.next() == Some('*') && self.characters.get(self.at + 1) == Some(&'*')
    }

    fn enter(&mut self) -> Result<(), FormulaError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault(self.at, "The formula is nested too deep"));
        }
        Ok(())
    }

    fn sum(&mut self) -> Result<(), FormulaError> {
        self.product()?;
        loop {
            let operator = match self.next() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => return Ok(()),
            };
            self.at += 1;
            self.product()?;
            self.steps.push(Step::Apply(operator));
        }
    }

    fn product(&mut self) -> Result<(), FormulaError> {
        self.signed()?;
        loop {
            let operator = match self.next() {
                Some('*') if !self.at_power() => Operator::Multiply,
                Some('/') => Operator::Divide,
                Some('%') => Operator::Remainder,
                _ => return Ok(()),
            };
            self.at += 1;
            self.signed()?;
            self.steps.push(Step::Apply(operator));
        }
    }

    /// A value with signs before it: `-A**2` is `-(A**2)`.
    fn signed(&mut self) -> Result<(), FormulaError> {
        self.enter()?;
        match self.next() {
            Some('-') => {
                self.at += 1;
                self.signed()?;
                self.steps.push(Step::Negate);
            }
            Some('+') => {
                self.at += 1;
                self.signed()?;
            }
            _ => self.power()?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn power(&mut self) -> Result<(), FormulaError> {
        self.operand()?;
        if self.at_power() {
            self.at += 2;
            self.signed()?;
            self.steps.push(Step::Apply(Operator::Power));
        }
        Ok(())
    }

    fn operand(&mut self) -> Result<(), FormulaError> {
        match self.next() {
            Some('(') => {
                self.enter()?;
                self.at += 1;
                self.sum()?;
                if self.next() != Some(')') {
                    return Err(self.unexpected("`)`"));
                }
                self.at += 1;
                self.depth -= 1;
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.letter(c),
            _ => Err(self.unexpected("a series or a number")),
        }
    }

    fn number(&mut self) -> Result<(), FormulaError> {
        let rest = self.characters.get(self.at..).unwrap_or_default();
        let digits: String = rest.iter().take_while(|c| c.is_ascii_digit() || **c == '.').collect();
        let number: f64 = digits.parse().map_err(|_| self.fault(self.at, "This is no number"))?;
        // Digits are ASCII, so bytes are characters.
        self.at += digits.len();
        self.steps.push(Step::Number(number));
        Ok(())
    }

    fn letter(&mut self, letter: char) -> Result<(), FormulaError> {
        let followed = self.characters.get(self.at + 1).is_some_and(|c| c.is_alphanumeric());
        if followed {
            return Err(self.fault(self.at, "A series is one letter, and there are no functions"));
        }
        let upper = letter.to_ascii_uppercase();
        let at = usize::try_from(u32::from(upper) - u32::from('A')).unwrap_or(LETTERS);
        if at >= self.series {
            return Err(self.fault(self.at, format!("There is no series `{upper}`")));
        }
        self.at += 1;
        self.steps.push(Step::Series(at));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str, series: &[f64]) -> f64 {
        Formula::parse(text, series.len()).unwrap().value(series)
    }

    #[test]
    fn operators_have_the_precedence_of_python() {
        for (text, expected) in [
            ("A", 6.0),
            ("a + b", 10.0),
            ("A/B*100", 150.0),
            ("A - B - 1", 1.0),
            ("A / B / 3", 0.5),
            ("(A + B) * 2", 20.0),
            ("A + B * 2", 14.0),
            ("2 ** 3 ** 2", 512.0),
            ("-2 ** 2", -4.0),
            ("2 ** -1", 0.5),
            ("2 * * 3", f64::NAN),
            ("A % B", 2.0),
            ("-A % B", 2.0),
            ("A % -B", -2.0),
            ("--A", 6.0),
            ("+A", 6.0),
            (".5 * A", 3.0),
            ("1.5", 1.5),
        ] {
            let Ok(formula) = Formula::parse(text, 2) else {
                assert!(expected.is_nan(), "{text}");
                continue;
            };
            assert_eq!(formula.value(&[6.0, 4.0]), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_finite_number_is_zero() {
        for (text, expected) in [
            ("A / B", 0.0),
            ("A % B", 0.0),
            ("A / B + 1", 1.0),
            ("B ** -1", 0.0),
            ("(-A) ** 0.5", 0.0),
            ("10 ** 10 ** 10", 0.0),
        ] {
            assert_eq!(value(text, &[6.0, 0.0]), expected, "{text}");
        }
        assert_eq!(value("A + 1", &[f64::NAN]), 1.0);
    }

    #[test]
    fn series_are_combined_value_by_value() {
        let formula = Formula::parse("A / B", 2).unwrap();
        let (first, second) = ([1.0, 2.0, 3.0], [2.0, 0.0]);
        assert_eq!(formula.values(&[&first, &second]), [0.5, 0.0, 0.0]);
        assert!(formula.values(&[]).is_empty());
    }

    #[test]
    fn faults_have_their_position() {
        for (text, expected) in [
            ("", "Expected a series or a number, found the end (character 1)"),
            ("A +", "Expected a series or a number, found the end (character 4)"),
            ("A B", "Expected an operator, found `B` (character 3)"),
            ("(A", "Expected `)`, found the end (character 3)"),
            ("A)", "Expected an operator, found `)` (character 2)"),
            ("C", "There is no series `C` (character 1)"),
            ("A + sum(B)", "A series is one letter, and there are no functions (character 5)"),
            ("A1", "A series is one letter, and there are no functions (character 1)"),
            ("ä", "Expected a series or a number, found `ä` (character 1)"),
            ("1.2.3", "This is no number (character 1)"),
            ("A ^ B", "Expected an operator, found `^` (character 3)"),
            ("A; B", "Expected an operator, found `;` (character 2)"),
        ] {
            let error = Formula::parse(text, 2).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        }
        let error = Formula::parse("C", 2).unwrap_err().at("trendsFilter__formula");
        assert_eq!(error.detail, "There is no series `C` (character 1).");
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let nested = |depth: usize| format!("{}A{}", "(".repeat(depth), ")".repeat(depth));
        assert!(Formula::parse(&nested(10), 1).is_ok());
        for text in [nested(200), "-".repeat(400) + "A", "A**".repeat(150) + "A"] {
            let error = Formula::parse(&text, 1).unwrap_err();
            assert_eq!(error.detail, "The formula is nested too deep");
        }
        let long = "A+".repeat(FORMULA_MAX) + "A";
        assert_eq!(Formula::parse(&long, 1).unwrap_err().character, FORMULA_MAX + 1);
        assert!(Formula::parse(&("A+".repeat(249) + "A"), 1).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_a_formula_or_a_fault(text in "[ABC()+*/%. 0-9-]{0,60}", a in any::<f64>()) {
            if let Ok(formula) = Formula::parse(&text, 2) {
                prop_assert!(formula.value(&[a, 2.0]).is_finite());
                prop_assert_eq!(Formula::parse(formula.text(), 2), Ok(formula));
            }
        }
    }
}
