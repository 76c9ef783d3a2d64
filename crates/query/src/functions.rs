//! The functions of queries.

macro_rules! functions {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $least:literal..=$most:literal;)+) => {
        /// A function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Function {
            $($(#[doc = $doc])+ $variant),+
        }

        impl Function {
            /// All functions.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name; names are case-insensitive.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Minimum and maximum number of arguments.
            pub const fn arguments(self) -> (usize, usize) {
                match self { $(Self::$variant => ($least, $most)),+ }
            }
        }
    };
}

functions! {
    /// A text in lower case.
    Lower = "lower", 1..=1;
    /// A text in upper case.
    Upper = "upper", 1..=1;
    /// A text without leading and trailing blanks.
    Trim = "trim", 1..=1;
    /// The number of characters of a text.
    Length = "length", 1..=1;
    /// The concatenation of texts.
    Concat = "concat", 1..=100;
    /// A part of a text: from a character, counted from 1, and the number of characters.
    Substring = "substring", 2..=3;
    /// A text with every occurrence of another replaced.
    ReplaceAll = "replaceAll", 3..=3;
    /// Whether a text begins with another.
    StartsWith = "startsWith", 2..=2;
    /// Whether a text ends with another.
    EndsWith = "endsWith", 2..=2;
    /// The first value that is not null.
    Coalesce = "coalesce", 1..=100;
    /// A value, or another one if it is null.
    IfNull = "ifNull", 2..=2;
    /// A value, or null if it equals another one.
    NullIf = "nullIf", 2..=2;
    /// One of two values, depending on a condition.
    If = "if", 3..=3;
    /// Conditions and values, then the value if no condition is true.
    MultiIf = "multiIf", 3..=99;
    /// Whether a value is null.
    IsNull = "isNull", 1..=1;
    /// Whether a value is not null.
    IsNotNull = "isNotNull", 1..=1;
    /// Whether a text is empty.
    Empty = "empty", 1..=1;
    /// Whether a text is not empty.
    NotEmpty = "notEmpty", 1..=1;
    /// A value as a text.
    ToString = "toString", 1..=1;
    /// A value as an integer, or null.
    ToInt = "toInt", 1..=1;
    /// A value as a number, or null.
    ToFloat = "toFloat", 1..=1;
    /// A value as true or false, or null.
    ToBool = "toBool", 1..=1;
    /// A text as a time, or null.
    ToDateTime = "toDateTime", 1..=1;
    /// The day of a time.
    ToDate = "toDate", 1..=1;
    /// The start of the hour of a time.
    ToStartOfHour = "toStartOfHour", 1..=1;
    /// The start of the day of a time.
    ToStartOfDay = "toStartOfDay", 1..=1;
    /// The start of the month of a time.
    ToStartOfMonth = "toStartOfMonth", 1..=1;
    /// Seconds since 1970.
    ToUnixTimestamp = "toUnixTimestamp", 1..=1;
    /// A property as a text.
    JsonExtractString = "JSONExtractString", 2..=32;
    /// A property as an integer.
    JsonExtractInt = "JSONExtractInt", 2..=32;
    /// A property as a number.
    JsonExtractFloat = "JSONExtractFloat", 2..=32;
    /// A property as true or false.
    JsonExtractBool = "JSONExtractBool", 2..=32;
    /// A property as JSON.
    JsonExtractRaw = "JSONExtractRaw", 2..=32;
    /// Whether there is such a property.
    JsonHas = "JSONHas", 2..=32;
    /// The start of the minute of a time.
    ToStartOfMinute = "toStartOfMinute", 1..=1;
    /// The start of the week of a time.
    ToStartOfWeek = "toStartOfWeek", 1..=1;
    /// The year of a time.
    ToYear = "toYear", 1..=1;
    /// The month of a time, from 1.
    ToMonth = "toMonth", 1..=1;
    /// The day of the week of a time, from 1 for Monday.
    ToDayOfWeek = "toDayOfWeek", 1..=1;
    /// The hour of a time, from 0.
    ToHour = "toHour", 1..=1;
    /// The number of units that begin after a time and until another one.
    DateDiff = "dateDiff", 3..=3;
    /// The current time.
    Now = "now", 0..=0;
    /// The current day.
    Today = "today", 0..=0;
    /// Whether a regular expression matches a part of a text.
    Match = "match", 2..=2;
    /// The first group of a regular expression in a text, or all that matches.
    Extract = "extract", 2..=2;
    /// The host of a URL.
    Domain = "domain", 1..=1;
    /// The path of a URL.
    Path = "path", 1..=1;
    /// A number rounded to a number of decimals.
    Round = "round", 1..=2;
    /// The largest whole number that is not above a number.
    Floor = "floor", 1..=1;
    /// The smallest whole number that is not below a number.
    Ceil = "ceil", 1..=1;
    /// A number without its sign.
    Abs = "abs", 1..=1;
    /// The smallest of the values.
    Least = "least", 2..=100;
    /// The largest of the values.
    Greatest = "greatest", 2..=100;
}

impl Function {
    /// The function of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.name().eq_ignore_ascii_case(name))
    }

    /// Whether the query of an export can call it. The others need the time zone or the
    /// clock of a question, or too much work for each event (QRY-51).
    pub const fn is_for_exports(self) -> bool {
        !matches!(
            self,
            Self::ToStartOfMinute
                | Self::ToStartOfWeek
                | Self::ToYear
                | Self::ToMonth
                | Self::ToDayOfWeek
                | Self::ToHour
                | Self::DateDiff
                | Self::Now
                | Self::Today
                | Self::Match
                | Self::Extract
                | Self::Domain
                | Self::Path
                | Self::Round
                | Self::Floor
                | Self::Ceil
                | Self::Abs
                | Self::Least
                | Self::Greatest
        )
    }
}
