//! The questions as SQL over the files of sealed events.
//!
//! `events` has the columns of the files, and `people` the person of each distinct id, as a
//! number. Each text reads the events once, and uses what its engine has for such a question.

use weir_questions::results::{BREAKDOWN_NULL, BREAKDOWN_OTHER};

use super::{
    DAY, Days, FREQUENT, Kind, RARE, ROWS, STEPS, VALUES, VIEW, WEEK, WEEKS, WINDOW, time_text,
};

/// Another program that reads the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// DuckDB, in a process of Python.
    DuckDb,
    /// ClickHouse, in a process of Python.
    ClickHouse,
    /// Apache DataFusion, in a process of Python.
    DataFusion,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::DuckDb, Self::ClickHouse, Self::DataFusion];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuckDb => "DuckDB",
            Self::ClickHouse => "ClickHouse",
            Self::DataFusion => "DataFusion",
        }
    }

    /// The environment of Python that `scripts/setup` installs it in.
    pub const fn environment(self) -> &'static str {
        match self {
            Self::DuckDb => "exports",
            Self::ClickHouse => "clickhouse",
            Self::DataFusion => "datafusion",
        }
    }

    /// The script that asks it.
    pub const fn script(self) -> &'static str {
        match self {
            Self::DuckDb => concat!(include_str!("ask_duckdb.py"), include_str!("ask.py")),
            Self::ClickHouse => concat!(include_str!("ask_clickhouse.py"), include_str!("ask.py")),
            Self::DataFusion => concat!(include_str!("ask_datafusion.py"), include_str!("ask.py")),
        }
    }

    /// The time of an event in microseconds.
    const fn micros(self) -> &'static str {
        match self {
            Self::DuckDb => "epoch_us(timestamp)",
            Self::ClickHouse => "toUnixTimestamp64Micro(timestamp)",
            Self::DataFusion => "arrow_cast(timestamp, 'Int64')",
        }
    }

    /// The number of the unit of this length that contains an event.
    fn unit(self, begin: i64, length: i64) -> String {
        let micros = self.micros();
        match self {
            Self::DuckDb => format!("({micros} - {begin}) // {length}"),
            Self::ClickHouse => format!("intDiv({micros} - {begin}, {length})"),
            Self::DataFusion => format!("({micros} - {begin}) / {length}"),
        }
    }

    /// Whether an event is from one time to before another one.
    fn within(self, begin: i64, end: i64) -> String {
        let time = |micros: i64| match self {
            Self::DuckDb => format!("TIMESTAMPTZ '{}'", time_text(micros)),
            Self::ClickHouse => format!("fromUnixTimestamp64Micro({micros}, 'UTC')"),
            Self::DataFusion => format!(
                "arrow_cast('{}', 'Timestamp(Microsecond, Some(\"UTC\"))')",
                time_text(micros)
            ),
        };
        format!("timestamp >= {} AND timestamp < {}", time(begin), time(end))
    }

    /// A property of an event: its column, if all files have it.
    fn property(self, name: &str, columns: &[String]) -> String {
        let column = format!("properties_{name}");
        match self {
            _ if columns.contains(&column) => format!("\"{column}\""),
            Self::DuckDb => format!("json_extract_string(properties, '$.\"{name}\"')"),
            Self::ClickHouse => format!("nullIf(JSONExtractString(properties, '{name}'), '')"),
            // It has no function for JSON. These values have no quotation marks.
            Self::DataFusion => format!(
                "nullif(split_part(split_part(properties, '\"{name}\":\"', 2), '\"', 1), '')"
            ),
        }
    }

    /// Events with their persons: a table, and the column of the person.
    const fn persons(self) -> (&'static str, &'static str) {
        match self {
            Self::DuckDb | Self::DataFusion => ("events JOIN people USING (distinct_id)", "person"),
            Self::ClickHouse => ("events", "joinGet('bench.people', 'person', distinct_id)"),
        }
    }
}

/// A question in the SQL of an engine. `columns`: those that all files have.
pub fn sql(kind: Kind, engine: Engine, days: Days, columns: &[String]) -> String {
    let within = engine.within(days.begin(), days.end());
    let day = engine.unit(days.begin(), DAY);
    let (joined, person) = engine.persons();
    match kind {
        Kind::Trend => format!(
            "SELECT {day} AS day, count(*) FROM events WHERE event = '{VIEW}' AND {within} \
             GROUP BY day"
        ),
        Kind::Frequent => by_value(&engine.property(FREQUENT, columns), &day, &within),
        Kind::Rare => by_value(&engine.property(RARE, columns), &day, &within),
        Kind::Persons => format!(
            "SELECT {day} AS day, count(DISTINCT {person}) FROM {joined} \
             WHERE event = '{VIEW}' AND {within} GROUP BY day"
        ),
        Kind::Funnel => funnel(engine, &within),
        Kind::Retention => retention(engine, days),
        Kind::Page => format!(
            "SELECT uuid, event, distinct_id, {}, properties, elements_chain FROM events \
             WHERE {within} ORDER BY timestamp DESC LIMIT {ROWS}",
            engine.micros()
        ),
    }
}

/// Page views by the value of a property and by day: the values with the largest totals, and
/// all others together. Events without a value come last.
fn by_value(value: &str, day: &str, within: &str) -> String {
    let counted = format!(
        "SELECT {value} AS value, {day} AS day, count(*) AS n FROM events \
         WHERE event = '{VIEW}' AND {within} GROUP BY value, day"
    );
    let summed = format!(
        "SELECT value, day, n, sum(n) OVER (PARTITION BY value) AS total \
         FROM ({counted}) AS counted"
    );
    let ranked = format!(
        "SELECT value, day, n, \
         dense_rank() OVER (ORDER BY value IS NULL, total DESC, value) AS place \
         FROM ({summed}) AS summed"
    );
    format!(
        "SELECT CASE WHEN place <= {VALUES} THEN coalesce(value, '{BREAKDOWN_NULL}') \
         ELSE '{BREAKDOWN_OTHER}' END AS name, day, sum(n) FROM ({ranked}) AS ranked \
         GROUP BY name, day"
    )
}

/// The persons who did each step. The attempt that begins last gets as far as any other.
fn funnel(engine: Engine, within: &str) -> String {
    let [first, second, third] = STEPS;
    let (joined, person) = engine.persons();
    let (micros, window) = (engine.micros(), WINDOW * DAY);
    let of_steps = format!("event IN ('{first}', '{second}', '{third}') AND {within}");
    match engine {
        Engine::DuckDb | Engine::DataFusion => {
            let so_far = "OVER (PARTITION BY person ORDER BY time)";
            let done = format!(
                "SELECT {person} AS person, event, {micros} AS time FROM {joined} WHERE {of_steps}"
            );
            let one = format!(
                "SELECT person, event, time, \
                 max(CASE WHEN event = '{first}' THEN time END) {so_far} AS begun \
                 FROM ({done}) AS done"
            );
            let two = format!(
                "SELECT person, event, time, begun, \
                 max(CASE WHEN event = '{second}' AND time - begun <= {window} THEN begun END) \
                 {so_far} AS continued FROM ({one}) AS one"
            );
            format!(
                "SELECT count(DISTINCT person) FILTER (WHERE begun IS NOT NULL), \
                 count(DISTINCT person) FILTER (WHERE continued IS NOT NULL), \
                 count(DISTINCT person) \
                 FILTER (WHERE event = '{third}' AND time - continued <= {window}) FROM ({two}) AS two"
            )
        }
        Engine::ClickHouse => format!(
            "SELECT countIf(level >= 1), countIf(level >= 2), countIf(level >= 3) FROM \
             (SELECT {person} AS person, windowFunnel({window})(toUInt64({micros}), \
             event = '{first}', event = '{second}', event = '{third}') AS level \
             FROM {joined} WHERE {of_steps} GROUP BY person) AS levels"
        ),
    }
}

/// The persons of each week who come back in each later one. The weeks of a person are bits of
/// a number.
fn retention(engine: Engine, days: Days) -> String {
    let begin = days.first_week();
    let within = engine.within(begin, begin + WEEKS * WEEK);
    let week = engine.unit(begin, WEEK);
    let (joined, person) = engine.persons();
    let has_bits = ["(weeks >> a.number) & 1 = 1", "(weeks >> b.number) & 1 = 1"];
    let (bits, numbers, has) = match engine {
        Engine::DuckDb => (
            format!("bit_or(1::BIGINT << ({week}))"),
            format!("(SELECT range AS number FROM range({WEEKS}))"),
            has_bits,
        ),
        Engine::DataFusion => (
            format!("bit_or(1::BIGINT << ({week}))"),
            format!("(SELECT value AS number FROM generate_series(0, {}))", WEEKS - 1),
            has_bits,
        ),
        Engine::ClickHouse => (
            format!("groupBitOr(bitShiftLeft(toUInt64(1), {week}))"),
            format!("(SELECT number FROM numbers({WEEKS}))"),
            ["bitTest(weeks, a.number)", "bitTest(weeks, b.number)"],
        ),
    };
    let of_persons = format!(
        "SELECT {person} AS person, {bits} AS weeks FROM {joined} \
         WHERE event = '{VIEW}' AND {within} GROUP BY person"
    );
    let [begins, returns] = has;
    format!(
        "SELECT a.number, b.number - a.number, sum(persons) FROM \
         (SELECT weeks, count(*) AS persons FROM ({of_persons}) AS of_persons GROUP BY weeks) \
         AS active CROSS JOIN {numbers} AS a CROSS JOIN {numbers} AS b \
         WHERE b.number >= a.number AND {begins} AND {returns} GROUP BY a.number, b.number"
    )
}

#[cfg(test)]
mod tests {
    use super::{Engine, sql};
    use crate::questions::tests::NOW;
    use crate::questions::{Days, Kind};

    fn text(kind: Kind, engine: Engine, columns: &[&str]) -> String {
        let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
        sql(kind, engine, Days::before(NOW), &columns)
    }

    #[test]
    fn a_trend_counts_the_views_of_each_day() {
        assert_eq!(
            text(Kind::Trend, Engine::DuckDb, &[]),
            "SELECT (epoch_us(timestamp) - 1793404800000000) // 86400000000 AS day, count(*) \
             FROM events WHERE event = '$pageview' AND \
             timestamp >= TIMESTAMPTZ '2026-10-31T00:00:00.000000Z' AND \
             timestamp < TIMESTAMPTZ '2026-11-30T00:00:00.000000Z' GROUP BY day"
        );
        assert_eq!(
            text(Kind::Trend, Engine::ClickHouse, &[]),
            "SELECT intDiv(toUnixTimestamp64Micro(timestamp) - 1793404800000000, 86400000000) \
             AS day, count(*) FROM events WHERE event = '$pageview' AND \
             timestamp >= fromUnixTimestamp64Micro(1793404800000000, 'UTC') AND \
             timestamp < fromUnixTimestamp64Micro(1795996800000000, 'UTC') GROUP BY day"
        );
    }

    #[test]
    fn a_property_is_read_from_its_column_if_all_files_have_it() {
        let columns = ["properties_$browser", "properties_title"];
        for engine in Engine::ALL {
            let frequent = text(Kind::Frequent, engine, &columns);
            assert!(frequent.contains("SELECT \"properties_$browser\" AS value"), "{frequent}");
            let rare = text(Kind::Rare, engine, &columns);
            assert!(rare.contains("(properties, '"), "{rare}");
            let rare = text(Kind::Rare, engine, &["properties_coupon"]);
            assert!(rare.contains("SELECT \"properties_coupon\" AS value"), "{rare}");
        }
    }

    #[test]
    fn every_question_has_a_text_about_its_range() {
        for engine in Engine::ALL {
            for kind in Kind::ALL {
                let text = text(kind, engine, &[]);
                let (begin, end) = match engine {
                    Engine::DuckDb => (">= TIMESTAMPTZ '", "< TIMESTAMPTZ '"),
                    Engine::ClickHouse => {
                        (">= fromUnixTimestamp64Micro(", "< fromUnixTimestamp64Micro(")
                    }
                    Engine::DataFusion => (">= arrow_cast('", "< arrow_cast('"),
                };
                assert!(text.contains(begin) && text.contains(end), "{text}");
                assert_eq!(text.matches('(').count(), text.matches(')').count(), "{text}");
            }
        }
    }
}
