// Writes docs/pages.md from the notes of the specs about the pages they checked:
//
//   WEIR_PAGES_LOG=pages.jsonl npx playwright test && node pages.mjs pages.jsonl > ../docs/pages.md

import { readFileSync } from "node:fs";

const [log] = process.argv.slice(2);
if (!log) {
  console.error("usage: node pages.mjs LOG");
  process.exit(2);
}

/** The address with names in place of what differs from one thing to the next. */
function pattern(path) {
  return path
    .replace(/\/insights\/(?!new(\/|$))\w{8}(?=\/|$)/, "/insights/:id")
    .split("/")
    .map((part) => (/^\d+$|^[0-9a-f]{8}-[0-9a-f-]{27}$|^[A-Za-z0-9_-]{20,}$/.test(part) ? ":id" : part))
    .join("/");
}

const pages = new Map();
for (const line of readFileSync(log, "utf8").split("\n").filter(Boolean)) {
  const { page, path, spec, title, scripts, axe, htmlGzip } = JSON.parse(line);
  const key = pattern(path);
  const known = pages.get(key) ?? { name: "", specs: new Set(), states: new Map(), axe: 0, largest: 0 };
  // The map has no state but the usual one.
  if (!known.name || page === "map") known.name = title.split(" - ")[0];
  known.specs.add(spec);
  const modes = known.states.get(page) ?? new Set();
  known.states.set(page, modes.add(scripts ? "on" : "off"));
  known.axe += axe;
  known.largest = Math.max(known.largest, htmlGzip);
  pages.set(key, known);
}

const cell = (text) => text.replaceAll("|", "\\|");
const states = (seen) =>
  [...seen]
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([state, modes]) => `${state} (scripts ${[...modes].sort().reverse().join(", ")})`)
    .join("; ");

console.log(`# Pages

Every page that the browser tests check: in both themes at 1280 and 320 px, and without sideways scrolling at 1280, 960, 800, 720, 640 and 320 px.
The state "map" is the usual one, with a little of everything; what such a page says to assistive technology, at both widths, is in \`end2end/tests/aria/\`.
Made by \`end2end/pages.mjs\` from a run of the tests; not to be edited.
The size is that of the page's HTML after gzip, the largest that was seen.

| Page | Address | Spec | States, and with scripts on or off | Violations (axe) | HTML, gzip |
|---|---|---|---|---|---|`);
for (const [address, { name, specs, states: seen, axe, largest }] of [...pages].sort(([one], [other]) => one.localeCompare(other))) {
  const size = `${(largest / 1024).toFixed(1)} KiB`;
  console.log(`| ${cell(name)} | \`${cell(address)}\` | ${[...specs].sort().join(", ")} | ${cell(states(seen))} | ${axe} | ${size} |`);
}
