// The figures as a part of docs/benchmarks.md.

import { cpus, release, totalmem, type } from "node:os";
import { BUDGETS, type Budget, exceeds, p75 } from "./budgets";
import { type Change, type Changes, DESKTOP } from "./changes";
import { EFFORT } from "./effort";
import type { Arrival, Typing } from "./events";
import type { Answering } from "./interactions";
import type { Load } from "./loads";
import { PHONE } from "./phone";
import type { Size } from "./sizes";

export interface Figures {
  browser: string;
  sizes: Size[];
  /** How many pages the largest one was found among. */
  pages: number;
  loads: Load[];
  answering: Answering[];
  changes: Changes;
  arrival: Arrival;
  long: Load[];
  typing: Typing[];
}

/** What ends the run with a failure: sizes over their limits, and a console that is not empty. */
export function faults({ sizes, loads, long, changes }: Figures): string[] {
  const large = sizes.filter(({ gzip, budget }) => exceeds(gzip / 1000, budget) === "fail");
  return [
    ...large.map(({ what, gzip }) => `${what} has ${kB(gzip)} kB`),
    ...[...loads, ...long].flatMap(({ name, said }) => said.map((line) => `${name}: ${line}`)),
    ...changes.said,
  ];
}

export function report(figures: Figures): string {
  const { loads, long, answering, changes } = figures;
  const quick = EFFORT.loads < 7 ? " Measured with little effort: the figures mean nothing." : "";
  return `## Pages

Printed by \`make bench ARGS=--pages\` on ${new Date().toISOString().slice(0, 10)}; ${machine(figures.browser)}.${quick}
Each figure has its budget: above the first number you should check it (*warn*), above the second it is a fault (**fail**).
Only sizes, and any message in the console of the browser, make the command fail; times are reported.
The instance has a few of everything (3 transformations, 12 exports, 13 members, 300 events of 60 persons).

### Sizes

In kB of 1,000 bytes. The pages are the ${figures.pages} that links lead to, one for each form of address; the table has the three largest.

${sizes(figures.sizes)}

### Loading

The *phone*: ${PHONE.width} × ${PHONE.height} px, a processor ${PHONE.slowdown} times slower than the machine's, ${PHONE.down} Mbit/s down, ${PHONE.up} Mbit/s up, ${PHONE.latency} ms for each request; an empty cache for each load.
p75 of ${EFFORT.loads} loads of each page, alternating. The local time to the first byte is that of ${EFFORT.requests} requests without browser and network.
Shifts count until the page is interactive and nothing has moved for 2 s. A page is interactive when it responds to scripts. The largest paint does not wait for that.

${loading(loads)}

${moved([...loads, ...long])}
${said([...loads, ...long])}

### Answering

On the phone, after the page is interactive: menus, the search over the page with three keys, and the page's own controls (filters, switches, disclosures).
The longest interaction of each of ${EFFORT.visits} visits, from the input until the next frame. The browser reports them in steps of 8 ms from 16 ms on.

${interacting(answering)}

### Page changes

Links that are followed from page to page in one document, ${EFFORT.changes} times each, in rounds; a round before has loaded the code.
From the click until the content of the next page is painted, p75, on the desktop (${DESKTOP.width} × ${DESKTOP.height} px, without throttling) and on the phone.
*Data* is the part until the last answer of the server before that. Without one, the browser had the data of the page already.

${changing(changes.list)}

${said([{ name: "Page changes", said: changes.said }])}

### An event until its row

\`POST /capture/\` until the row is painted on the events page, without throttling, ${figures.arrival.count} events one after the other.

${arriving(figures.arrival)}

### Long lists

${EFFORT.persons.toLocaleString("en")} persons; loads as above.

${loading(long)}

The events page with its full list while 200 events/s arrive, and text that is typed into the field of the filter and deleted for ${EFFORT.typing} s, a key about every 100 ms.
A task is long from 50 ms on. *Behind* is the time from the last sent event until its row, after the field was cleared.

${typing(figures.typing)}
`;
}

function machine(browser: string): string {
  const [first] = cpus();
  const memory = Math.round(totalmem() / 1e6);
  return `${cpus().length} processors (${first?.model.trim()}), ${memory} MB, ${type()} ${release()}, Chromium ${browser}`;
}

function sizes(list: Size[]): string {
  return table(
    ["file", "bytes", "sent", "gzip", "warn", "fail"],
    list.map(({ what, bytes, sent, gzip, budget }) => [
      what,
      kB(bytes),
      kB(sent),
      marked(kB(gzip), gzip / 1000, budget),
      `${budget.warn}`,
      `${budget.fail}`,
    ]),
  );
}

function loading(loads: Load[]): string {
  const { ttfb, lcp, cls } = BUDGETS;
  return table(
    [
      "page",
      `first byte, local, ms (${range(ttfb)})`,
      "first byte, phone, ms",
      `largest paint (LCP), ms (${range(lcp)})`,
      "interactive, ms",
      `shifts (CLS) (${range(cls)})`,
    ],
    loads.map((load) => [
      load.name,
      marked(load.ttfb.toFixed(1), load.ttfb, ttfb),
      load.ttfbPhone.toFixed(0),
      marked(load.lcp.toFixed(0), load.lcp, lcp),
      load.alive.toFixed(0),
      marked(load.shifts.toFixed(3), load.shifts, cls),
    ]),
  );
}

function said(loads: Pick<Load, "name" | "said">[]): string {
  const lines = loads.flatMap(({ name, said }) => said.map((line) => `- ${name}: \`${line.replaceAll("`", "'")}\``));
  return lines.length === 0 ? "The console stayed empty." : `In the console:\n\n${lines.join("\n")}`;
}

/** The elements that moved, which are not always those that made them move. */
function moved(loads: Load[]): string {
  const pages = loads.filter((load) => exceeds(load.shifts, BUDGETS.cls) !== "");
  const one = ({ name, moved }: Load) => `${name}: ${moved.slice(0, 6).map((what) => `\`${what}\``).join(", ")}`;
  return pages.length === 0 ? "" : `What moved: ${pages.map(one).join("; ")}.\n`;
}

function interacting(answering: Answering[]): string {
  const rows = answering.map(({ name, noticed, inp, worst, slowest }) => [
    name,
    `${noticed}`,
    longest(inp),
    Math.max(...worst).toFixed(0),
    `\`${slowest}\``,
  ]);
  return table(["page", "interactions from 16 ms on", `INP, p75, ms (${range(BUDGETS.inp)})`, "worst, ms", "which"], rows);
}

/** No entry means that every interaction was short. */
function longest(ms: number): string {
  return ms === 0 ? "< 16" : marked(ms.toFixed(0), ms, BUDGETS.inp);
}

function changing(list: Change[]): string {
  const wheres = [
    { of: (one: Change) => one.desktop, budget: BUDGETS.change },
    { of: (one: Change) => one.phone, budget: BUDGETS.changePhone },
  ];
  const waited = (times: number[]) => (Math.max(0, ...times) === 0 ? "-" : p75(times).toFixed(0));
  const rows = list.map((one) => [one.name, ...wheres.flatMap(({ of }) => [p75(of(one).taken).toFixed(0), waited(of(one).waited)])]);
  // A single change has no budget: the aim is for all of them.
  const total = wheres.flatMap(({ of, budget }) => {
    const all = p75(list.flatMap((one) => of(one).taken));
    return [marked(all.toFixed(0), all, budget), p75(list.flatMap((one) => of(one).waited)).toFixed(0)];
  });
  return table(
    ["to", `desktop, ms (${range(BUDGETS.change)})`, "data, ms", `phone, ms (${range(BUDGETS.changePhone)})`, "data, ms"],
    [...rows, ["all", ...total]],
  );
}

function arriving({ count, p50, p95 }: Arrival): string {
  const { row } = BUDGETS;
  return table(["events", `p50, ms (${range(row)})`, "p95, ms"], [
    [`${count}`, marked(p50.toFixed(0), p50, row), marked(p95.toFixed(0), p95, row)],
  ]);
}

function typing(list: Typing[]): string {
  return table(
    ["where", "rows", "events/s", "keys", `INP, p75, ms (${range(BUDGETS.inp)})`, "worst, ms", "long tasks", "longest, ms", "time in them", "behind, ms"],
    list.map((one) => [
      one.where,
      `${one.rows}`,
      one.rate.toFixed(0),
      `${one.keys}`,
      longest(one.p75),
      longest(one.worst),
      `${one.longTasks}`,
      one.longest.toFixed(0),
      `${(one.busy * 100).toFixed(0)} %`,
      one.behind.toFixed(0),
    ]),
  );
}

function kB(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}

function range({ warn, fail }: Budget): string {
  return `${warn}, ${fail}`;
}

function marked(text: string, value: number, budget: Budget): string {
  const exceeded = exceeds(value, budget);
  if (exceeded === "fail") return `${text} **fail**`;
  return exceeded === "warn" ? `${text} *warn*` : text;
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}
