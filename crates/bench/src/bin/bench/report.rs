//! The report, in Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use weir_bench::machine::Machine;
use weir_bench::stats::median;

use crate::backups::{Backups, Stored};
use crate::exports::{Export, Exports, Sending};
use crate::library::Library;
use crate::lists::{List, Lists};
use crate::management::{Call, GET};
use crate::peaks::{Burst, HotId};
use crate::plugins::{self, Plugins};
use crate::rounds::{BATCH, MANY, ONE, Rounds, Side};
use crate::sealed::Sealed;
use crate::sustained::{Freshness, KNOWN, Kind};
use crate::table::{Table, grouped, megabytes, short, yes_or_no};
use crate::volume::{Starts, Volume};

/// Maximum bytes of memory for an export.
const EXPORTING: f64 = 300e6;
/// Minimum events per second through one simple transformation on two cores.
const TRANSFORMED: f64 = 30_000.0;
/// Maximum fraction of its events that a project may lose to a harmful plugin of another
/// project.
const NEIGHBOUR: f64 = 0.2;
/// Minimum stored events per second with known distinct ids.
const STORED: f64 = 20_000.0;

/// All results.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) machine: Machine,
    pub(crate) date: String,
    pub(crate) command: String,
    pub(crate) quick: bool,
    /// Size of the binary in bytes.
    pub(crate) binary: u64,
    pub(crate) rounds: Rounds,
    pub(crate) kinds: Vec<Kind>,
    /// Stored events per second in batches of 100.
    pub(crate) sustainable: f64,
    pub(crate) freshness: Vec<Freshness>,
    pub(crate) burst: Burst,
    pub(crate) hot_id: HotId,
    /// Memory in bytes.
    pub(crate) idle: u64,
    pub(crate) loaded: u64,
    pub(crate) empty_starts: Starts,
    pub(crate) full: Volume,
    pub(crate) calls: Vec<Call>,
    pub(crate) lists: Lists,
    pub(crate) exports: Exports,
    pub(crate) plugins: Plugins,
    /// Total processor time of the load generator.
    pub(crate) client: Duration,
    pub(crate) library: Option<Library>,
}

/// The whole report.
pub(crate) fn markdown(figures: &Figures) -> String {
    let mut text = String::new();
    for part in [
        head(figures),
        aims(figures),
        ingestion(&figures.rounds),
        storing(figures),
        peaks(&figures.burst, &figures.hot_id),
        threads(&figures.rounds),
        size(figures),
        calls(&figures.calls),
        lists(&figures.lists),
        exports(&figures.exports),
        plugins(&figures.plugins),
        library(figures.library.as_ref()),
    ] {
        text.push_str(&part);
    }
    text
}

fn head(figures: &Figures) -> String {
    let machine = &figures.machine;
    let warning = if figures.quick {
        "\n**A quick run: it shows that the benchmark works, its figures mean little.**\n"
    } else {
        ""
    };
    format!(
        "## This run\n\n\
         Written by the benchmark on {date}.\n{warning}\n\
         ```sh\n{command}\n```\n\n\
         | machine | |\n|---|---|\n\
         | processors | {cores}, {processor} |\n| memory | {memory} MB |\n\
         | kernel | Linux {kernel} |\n| file system | {fs} |\n\n\
         The *floor* is a minimal server that runs beside Weir on the same machine in the same run: it parses the same events with raw properties, appends them to one file and answers after a group `fdatasync`.\n\
         Nothing that acknowledges durably can be much faster there, so the ratios say more than the figures.\n\
         Floor, Weir and load generator share the processors.\n\n\
         An event is about 1 kB of JSON as a server library sends it, with a random uuid and a distinct id of its own: every event makes a new person.\n\
         Figures are medians of {rounds} interleaved rounds of {time:.1} s each; ratios are medians of the ratios within a round.\n\n",
        date = figures.date,
        command = figures.command,
        cores = machine.cores,
        processor = machine.processor,
        memory = machine.memory,
        kernel = machine.kernel,
        fs = machine.file_system,
        rounds = figures.rounds.count,
        time = figures.rounds.time.as_secs_f64(),
    )
}

fn aims(figures: &Figures) -> String {
    let rows = &figures.rounds.rows;
    let mut table = Table::new(
        "## Aims\n\nAims are reported here, never asserted by a test.\n\n",
        &["aim", "wanted", "reached", "kept"],
    );
    let mut least = |name: &str, wanted: f64, reached: f64| {
        table.row(&[
            name.to_owned(),
            format!("≥ {wanted}"),
            format!("{reached:.2}"),
            yes_or_no(reached >= wanted),
        ]);
    };
    for index in MANY {
        let row = &rows[index];
        least(&format!("{}: acknowledged, ratio", row.scenario.name), 0.8, row.ratio(|s| &s.rate));
    }
    let batch = &rows[BATCH];
    least("batches of 100: acknowledged, ratio", 0.45, batch.ratio(|s| &s.rate));
    least("batches of 100: stored and readable, ratio", 0.14, batch.stored_ratio());
    if let Some(kind) = figures.kinds.get(KNOWN) {
        table.row(&[
            "batches of 100, 5,000 distinct ids: stored and readable".to_owned(),
            format!("≥ {} events/s", grouped(STORED)),
            format!("{} events/s", grouped(kind.stored)),
            yes_or_no(kind.stored >= STORED),
        ]);
    }
    let mut most = |name: &str, wanted: f64, unit: &str, reached: f64| {
        table.row(&[
            name.to_owned(),
            format!("≤ {wanted} {unit}").trim_end().to_owned(),
            format!("{reached:.2} {unit}").trim_end().to_owned(),
            yes_or_no(reached <= wanted),
        ]);
    };
    most("one connection: p50, ratio", 1.5, "", rows[ONE].ratio(|s| &s.p50));
    for fresh in &figures.freshness {
        let name =
            format!("answer to readable, p95, at {:.0} % of the stored rate", fresh.share * 100.0);
        most(&name, 500.0, "ms", fresh.p95);
    }
    most("lag of others beside a hot id, p95", 500.0, "ms", figures.hot_id.all().percentile(0.95));
    let burst = &figures.burst;
    let name = format!("lag back to zero after a burst of {} events", grouped(burst.events as f64));
    // The maximum that follows from the aim for the rate of storing.
    most(&name, burst.events as f64 / STORED, "s", burst.lag);
    most("memory, idle", 150.0, "MB", megabytes(figures.idle));
    most("memory, loaded", 512.0, "MB", megabytes(figures.loaded));
    let full = &figures.full;
    let disk = (full.store + full.log) as f64 / full.raw.max(1) as f64;
    most("bytes on disk to bytes of the events", 1.2, "", disk);
    most("ready, empty", 500.0, "ms", figures.empty_starts.stopped);
    let name = format!("ready, {} events", grouped(full.events as f64));
    most(&name, 2_000.0, "ms", full.starts.stopped.max(full.starts.killed));
    most("binary", 110.0, "MB", megabytes(figures.binary));
    if let Some(call) = figures.calls.get(GET) {
        most("management get, p50", 1.0, "ms", call.p50);
    }
    let alone = || figures.lists.lists.iter().filter(|list| list.clients == 1);
    let length = grouped(figures.lists.length as f64);
    let p99 = alone().map(List::p99).fold(0.0, f64::max);
    most(&format!("the slowest list of {length}, p99"), 20.0, "ms", p99);
    let ratio = alone().map(List::ratio).fold(0.0, f64::max);
    most(&format!("lists of {length}, p50: page 10 to page 1, the highest"), 2.0, "", ratio);
    let exporting = figures.exports.exports.iter();
    let memory = exporting.clone().map(|export| export.memory).max().unwrap_or(0);
    most("memory while exporting", EXPORTING / 1e6, "MB", megabytes(memory));
    for export in exporting {
        let Some(aim) = export.aim else { continue };
        table.row(&[
            format!("exported: {}", export.name),
            format!("≥ {} events/s", grouped(aim)),
            format!("{} events/s", grouped(export.rate)),
            yes_or_no(export.rate >= aim),
        ]);
    }
    let [_, two] = figures.plugins.sandbox;
    table.row(&[
        "one transformation in JavaScript, the sandbox alone, two children".to_owned(),
        format!("≥ {} events/s", grouped(TRANSFORMED)),
        format!("{} events/s", grouped(two)),
        yes_or_no(two >= TRANSFORMED),
    ]);
    let cost = figures.plugins.neighbours.cost();
    table.row(&[
        "what a plugin that loops costs another project".to_owned(),
        format!("< {:.0} %", NEIGHBOUR * 100.0),
        format!("{:.0} %", cost * 100.0),
        yes_or_no(cost < NEIGHBOUR),
    ]);
    table.end()
}

fn ingestion(rounds: &Rounds) -> String {
    let mut table = Table::new(
        "## Acknowledged\n\nLatencies in ms, processor time in ms per 1,000 events; for Weir it includes making them readable.\n\n",
        &[
            "load",
            "floor, events/s",
            "Weir, events/s",
            "ratio",
            "p50 floor",
            "p50 Weir",
            "p99 floor",
            "p99 Weir",
            "CPU floor",
            "CPU Weir",
            "CPU client",
        ],
    );
    for row in &rounds.rows {
        let of = |side: &Side| {
            [&side.rate, &side.p50, &side.p99, &side.cpu].map(|values| median(values))
        };
        let (floor, weir) = (of(&row.floor), of(&row.weir));
        table.row(&[
            row.scenario.name.to_owned(),
            grouped(floor[0]),
            grouped(weir[0]),
            format!("{:.2}", row.ratio(|s| &s.rate)),
            short(floor[1]),
            short(weir[1]),
            short(floor[2]),
            short(weir[2]),
            short(floor[3]),
            short(weir[3]),
            short(median(&row.client)),
        ]);
    }
    let mut text = table.end();
    for row in rounds.rows.iter().filter(|row| row.weir.refused > 0) {
        let _ =
            writeln!(text, "{}: Weir refused {} requests.\n", row.scenario.name, row.weir.refused);
    }
    text
}

fn storing(figures: &Figures) -> String {
    let mut table = Table::new(
        "## Stored and readable\n\nEvents per second from the first request until `GET …/events/` shows the last one.\n\n",
        &["load", "acknowledged/s", "stored and readable/s", "to the floor's acknowledged"],
    );
    for row in &figures.rounds.rows {
        table.row(&[
            row.scenario.name.to_owned(),
            grouped(median(&row.weir.rate)),
            grouped(median(&row.stored)),
            format!("{:.2}", row.stored_ratio()),
        ]);
    }
    let mut kinds = Table::new(
        "By kind of event, in batches of 100; processor time of Weir in ms per 1,000 events:\n\n",
        &["events", "acknowledged/s", "stored and readable/s", "CPU"],
    );
    for kind in &figures.kinds {
        kinds.row(&[
            kind.name.to_owned(),
            grouped(kind.acknowledged),
            grouped(kind.stored),
            short(kind.cpu),
        ]);
    }
    let mut fresh = Table::new(
        &format!(
            "Time from the answer until the event can be read, single events beside a steady load; sustainable: {} events/s.\n\n",
            grouped(figures.sustainable)
        ),
        &["steady load, events/s", "share", "p50, ms", "p95, ms", "polled"],
    );
    for row in &figures.freshness {
        fresh.row(&[
            grouped(row.rate),
            format!("{:.0} %", row.share * 100.0),
            short(row.p50),
            short(row.p95),
            row.probes.to_string(),
        ]);
    }
    table.end() + &kinds.end() + &fresh.end()
}

/// Uneven traffic.
fn peaks(burst: &Burst, hot: &HotId) -> String {
    let mut bursts = Table::new(
        "A burst, in batches of 100 with 5,000 distinct ids, as fast as it is acknowledged:\n\n",
        &["events", "acknowledged in, s", "then readable after, s"],
    );
    bursts.row(&[grouped(burst.events as f64), short(burst.acknowledged), short(burst.lag)]);
    let mut others = Table::new(
        &format!(
            "Time from the answer until the event can be read, single events of 5,000 distinct ids that send {} events/s, beside a client that sends {} events/s of one distinct id. Events of one distinct id go through one partition.\n\n",
            grouped(hot.others),
            grouped(hot.hot),
        ),
        &["events of others", "p50, ms", "p95, ms", "polled"],
    );
    for (name, times) in [
        ("in the partition of the hot id", &hot.beside),
        ("in the other partitions", &hot.apart),
        ("all", &hot.all()),
    ] {
        others.row(&[
            name.to_owned(),
            short(times.percentile(0.5)),
            short(times.percentile(0.95)),
            times.count().to_string(),
        ]);
    }
    bursts.end() + &others.end()
}

/// Processor time by name of thread.
fn threads(rounds: &Rounds) -> String {
    let mut table = Table::new(
        "## Where the time goes\n\nProcessor time of Weir's threads while it took and stored batches of 100.\n\n",
        &["threads", "share"],
    );
    let all: Duration = rounds.threads.values().sum();
    let mut sorted: Vec<_> = rounds.threads.iter().collect();
    sorted.sort_by_key(|(_, time)| std::cmp::Reverse(**time));
    for (name, time) in sorted {
        let share = time.as_secs_f64() / all.as_secs_f64().max(1e-9);
        if share >= 0.005 {
            table.row(&[format!("`{name}`"), format!("{:.0} %", share * 100.0)]);
        }
    }
    table.end()
}

fn size(figures: &Figures) -> String {
    let full = &figures.full;
    let mut table = Table::new(
        "## Memory, disk, start\n\nMemory is PSS: pages shared with other processes count by their share.\n\n",
        &["", ""],
    );
    let mut row = |name: &str, value: String| table.row(&[name.to_owned(), value]);
    row("binary", format!("{:.1} MB", megabytes(figures.binary)));
    row("memory, idle", format!("{:.0} MB", megabytes(figures.idle)));
    row("memory, loaded (highest seen)", format!("{:.0} MB", megabytes(figures.loaded)));
    row("ready, empty, after a stop", format!("{:.0} ms", figures.empty_starts.stopped));
    row("ready, empty, after `kill -9`", format!("{:.0} ms", figures.empty_starts.killed));
    row("events of the full instance", grouped(full.events as f64));
    row("filled at", format!("{} events/s, stored and readable", grouped(full.rate)));
    row("stop, right after that", format!("{:.0} ms", full.stop));
    row("ready, full, after a stop", format!("{:.0} ms", full.starts.stopped));
    row("ready, full, after `kill -9` under load", format!("{:.0} ms", full.starts.killed));
    let each =
        |bytes: u64| format!("{:.0} bytes per event", bytes as f64 / full.events.max(1) as f64);
    row("events as JSON", each(full.raw));
    row("store, right after the load", each(full.store_loaded));
    row("store, after a stop and a start", each(full.store));
    row("ingest log (kept for repair, bounded)", each(full.log));
    let mut text = table.end();
    let _ = writeln!(
        text,
        "The load generator used {:.0} s of processor time in all.\n",
        figures.client.as_secs_f64()
    );
    text
}

fn calls(calls: &[Call]) -> String {
    let mut table = Table::new(
        "## Management and reading\n\nOn the full instance.\n\n",
        &["request", "p50, ms", "p99, ms", "per second, 1 connection", "per second, 8 connections"],
    );
    for call in calls {
        table.row(&[
            call.name.to_owned(),
            short(call.p50),
            short(call.p99),
            grouped(call.alone),
            call.together.map_or_else(|| "–".to_owned(), grouped),
        ]);
    }
    table.end()
}

/// Lists of a large organization.
pub(crate) fn lists(figures: &Lists) -> String {
    let length = grouped(figures.length as f64);
    let mut table = Table::new(
        &format!(
            "## Lists of a large organization\n\nAn organization with {length} of each; pages of a tenth of them. Milliseconds; processor time of Weir per answer; the ratio is of p50.\n\n"
        ),
        &[
            "list",
            "clients",
            "page 1, p50",
            "page 1, p99",
            "page 1, CPU",
            "page 10, p50",
            "page 10, p99",
            "page 10, CPU",
            "page 10 to page 1",
        ],
    );
    for list in &figures.lists {
        table.row(&[
            list.name.to_owned(),
            list.clients.to_string(),
            short(list.first.took.percentile(0.5)),
            short(list.first.took.percentile(0.99)),
            short(list.first.cpu()),
            short(list.last.took.percentile(0.5)),
            short(list.last.took.percentile(0.99)),
            short(list.last.cpu()),
            format!("{:.2}", list.ratio()),
        ]);
    }
    let creators = &figures.creators;
    let asked = creators.created.count() + creators.busy + creators.others;
    let mut text = table.end();
    let _ = writeln!(
        text,
        "{} clients that create projects of that organization at a time: of {asked} requests {} were answered with 201 (p50 {} ms, p99 {} ms), {} with 503, {} with something else.\n",
        creators.clients,
        creators.created.count(),
        short(creators.created.percentile(0.5)),
        short(creators.created.percentile(0.99)),
        creators.busy,
        creators.others,
    );
    text
}

/// Batch exports.
pub(crate) fn exports(figures: &Exports) -> String {
    let mut table = Table::new(
        &format!(
            "## Batch exports\n\nA backfill of {} events of 5,000 distinct ids, from the request until the run is completed; the destinations are on the same machine. Processor time of Weir in ms per 1,000 events; memory is the highest that was seen of the whole service, which had {:.0} MB after its start.\n\n",
            grouped(figures.events as f64),
            megabytes(figures.idle),
        ),
        &["destination", "events/s", "CPU", "memory, MB"],
    );
    for Export { name, rate, cpu, memory, .. } in &figures.exports {
        let memory = format!("{:.0}", megabytes(*memory));
        table.row(&[(*name).to_owned(), grouped(*rate), short(*cpu), memory]);
    }
    let mut beside = Table::new(
        "Batches of 100 as fast as they are acknowledged, and then single events beside a steady load of 3,000 events/s, with Parquet exports of everything beside them and without, in turns:\n\n",
        &["", "acknowledged/s", "readable after, p50, ms", "p95, ms"],
    );
    for (name, Sending { acknowledged, p50, p95 }) in
        [("no export", &figures.beside.alone), ("exporting", &figures.beside.exporting)]
    {
        beside.row(&[name.to_owned(), grouped(*acknowledged), short(*p50), short(*p95)]);
    }
    table.end() + &beside.end()
}

/// Sealed events.
pub(crate) fn sealed(figures: &Sealed) -> String {
    let mut table = Table::new("## Sealed events\n\n", &["", ""]);
    let Sealed { events, stored, raw, before, store, segments, runs, sealing, .. } = *figures;
    let share = |bytes: u64| {
        format!("{:.0} MB, {:.3} of the JSON", megabytes(bytes), bytes as f64 / raw as f64)
    };
    for (name, value) in [
        ("events", grouped(events as f64)),
        ("stored, events/s", grouped(stored)),
        ("the events as JSON", format!("{:.0} MB", megabytes(raw))),
        ("the store before sealing", share(before)),
        ("the store afterwards", share(store)),
        ("segments", share(segments)),
        ("runs", share(runs)),
        ("store, segments and runs", share(store + segments + runs)),
        ("`weir seal`, events/s", grouped(events as f64 / sealing)),
        ("ready after, ms", short(figures.start)),
        ("memory, idle, MB", format!("{:.0}", megabytes(figures.idle))),
        ("memory, reading, MB", format!("{:.0}", megabytes(figures.reading))),
    ] {
        table.row(&[name.to_owned(), value]);
    }
    table.end() + &calls(&figures.calls)
}

/// Backups.
pub(crate) fn backups(figures: &Backups) -> String {
    let mut table = Table::new("## Backups\n\n", &["", ""]);
    let backup = |stored: Stored| {
        let Stored { took_ms, bytes, new_bytes } = stored;
        let seconds = short(took_ms as f64 / 1e3);
        format!("{seconds} s, {:.0} MB, new: {:.0} MB", megabytes(bytes), megabytes(new_bytes))
    };
    let seconds = |time: Duration| format!("{} s", short(time.as_secs_f64()));
    let share = figures.beside / figures.alone.max(1e-9);
    for (name, value) in [
        ("events", grouped(figures.events as f64)),
        ("acknowledged without a backup, events/s", grouped(figures.alone)),
        (
            "acknowledged beside a backup, events/s",
            format!("{}, {:.0} %", grouped(figures.beside), share * 100.0),
        ),
        ("a first backup, under load", backup(figures.first)),
        ("a second one, after the load", backup(figures.second)),
        ("a third one, with nothing new", backup(figures.third)),
        ("`weir upgrade --check`", seconds(figures.checking_upgrade)),
        ("`weir check` of the data directory", seconds(figures.checking_data)),
        ("`weir check` of the three backups", seconds(figures.checking_backups)),
        ("`weir restore`", seconds(figures.restoring)),
        ("the restored instance is ready after", seconds(figures.start)),
    ] {
        table.row(&[name.to_owned(), value]);
    }
    table.end()
}

/// Plugins.
pub(crate) fn plugins(figures: &Plugins) -> String {
    let [one, two] = figures.sandbox;
    let mut table = Table::new(
        &format!(
            "## Plugins\n\nOne simple transformation in JavaScript, in the sandbox alone, in requests of 200 events: {} events/s through one child, {} through two.\n\nThe service with transformations: server events of 5,000 distinct ids in batches of 100 as fast as they are acknowledged, and then single events beside a steady load of 3,000 events/s. Processor time of service and children in ms per 1,000 events; memory is that of the largest child (PSS).\n\n",
            grouped(one),
            grouped(two),
        ),
        &[
            "transformations",
            "acknowledged/s",
            "stored/s",
            "CPU",
            "readable after, p50, ms",
            "p99, ms",
            "children",
            "memory, MB",
        ],
    );
    for plugins::Kind { name, acknowledged, stored, cpu, p50, p99, children, memory } in
        &figures.kinds
    {
        table.row(&[
            (*name).to_owned(),
            grouped(*acknowledged),
            grouped(*stored),
            short(*cpu),
            short(*p50),
            short(*p99),
            children.to_string(),
            format!("{:.0}", megabytes(*memory)),
        ]);
    }
    let neighbours = &figures.neighbours;
    let mut text = table.end();
    let _ = writeln!(
        text,
        "A project with one transformation stores {} events/s beside another one that sends 500 events/s, and {} when that one's plugin loops without end for every tenth event: {:.0} % less.\n",
        grouped(neighbours.peaceful),
        grouped(neighbours.hostile),
        neighbours.cost() * 100.0,
    );
    text
}

fn library(library: Option<&Library>) -> String {
    let Some(library) = library else { return String::new() };
    let mut table = Table::new(
        "## The store alone\n\nAs a library: no log, no persons, no HTTP; transactions of up to 4,000 events.\n\n",
        &["", "per second"],
    );
    for (name, value) in [
        ("events written, one partition", library.insert_one),
        ("events written, four partitions at a time", library.insert_four),
        ("pages of the newest 100 events", library.pages),
        ("events by uuid", library.by_uuid),
    ] {
        table.row(&[name.to_owned(), grouped(value)]);
    }
    table.end()
}
