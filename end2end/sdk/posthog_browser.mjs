// The driver of the browser library: reads a scenario from standard input, runs it
// in a page of Chromium, and prints a report, as `drivers.py` describes.
//
//   CHROMIUM_AT=ws://… node posthog_browser.mjs <package in node_modules>
//
// The page is of another origin than the service. The report also says what the
// browser `blocked` for want of a CORS header, and what the library has `said` on the
// console. After it the page stays open until another line comes, because the library
// may still be sending.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

import { chromium } from "@playwright/test";

import { repeat, until } from "./waiting.mjs";

const dist = new URL(`../node_modules/${process.argv[2]}/dist/`, import.meta.url);
// Until 2024 the module of that name was one for Node.
const older = new URL("es.js", dist);
const library = existsSync(older) ? older : new URL("module.js", dist);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const scenario = JSON.parse((await lines.next()).value);

let captured = 0;
const failures = [];
const blocked = [];
const said = [];
let features;

const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>Shop</title>
<button id="buy">Buy</button>
<script type="module" src="/start.js"></script>`;

// A page keeps its visitor; only the first one is given an id.
const start = (options) => `
import posthog from "/library.js";
window.posthog = posthog;
posthog.init(${JSON.stringify(options.key ?? scenario.key)}, {
  api_host: ${JSON.stringify(scenario.url)},
  bootstrap: localStorage.getItem("visited")
    ? {}
    : ${JSON.stringify({ distinctID: options.distinct_id })},
  // The library drops events of automated browsers.
  opt_out_useragent_filter: true,
  disable_web_experiments: ${!options.experiments},
  loaded: () => (window.ready = true),
});
localStorage.setItem("visited", "yes");`;

let options = {};
const site = createServer(async (request, response) => {
  const [type, body] = {
    "/": ["text/html", PAGE],
    "/away": ["text/html", "<!doctype html><title>Elsewhere</title>"],
    "/start.js": ["text/javascript", start(options)],
    "/library.js": ["text/javascript", await readFile(library)],
  }[request.url] ?? [];
  response.writeHead(body ? 200 : 404, { "Content-Type": type ?? "text/plain" }).end(body);
});
await new Promise((listening) => site.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${site.address().port}`;

const browser = await chromium.connect(process.env.CHROMIUM_AT);
const page = await browser.newPage();
page.on("pageerror", (error) => failures.push({ client: 0, status: null, text: String(error) }));
page.on("console", (message) => {
  if (message.text().includes("CORS")) blocked.push(message.text());
  // What the browser itself says of an answer is seen in its status.
  const isLibrary = !message.text().startsWith("Failed to load resource");
  if (isLibrary && ["error", "warning"].includes(message.type())) said.push(message.text());
});

// Requests to the service that have no answer yet.
const inFlight = new Set();
// How many with events have had none.
let failed = 0;
page.on("request", (request) => {
  if (request.url().startsWith(scenario.url)) inFlight.add(request);
});
page.on("requestfinished", (request) => inFlight.delete(request));
page.on("requestfailed", (request) => {
  inFlight.delete(request);
  if (/\/e\/?$/.test(new URL(request.url()).pathname)) failed++;
});

// Calls that are made in the page, in one go.
let waiting = [];

async function callInPage() {
  const calls = waiting;
  waiting = [];
  if (calls.length === 0) return;
  const leaves = calls.at(-1).call === "leave";
  const done = page.evaluate((calls) => {
    const { posthog } = window;
    const make = {
      capture: ({ event, properties, timestamp }) =>
        posthog.capture(event, properties, timestamp && { timestamp: new Date(timestamp) }),
      identify: ({ distinct_id, set, set_once }) => posthog.identify(distinct_id, set, set_once),
      alias: ({ alias }) => posthog.alias(alias),
      group: ({ group_type, key, set }) => posthog.group(group_type, key, set),
      leave: () => (window.location.href = "/away"),
    };
    for (const { call, ...values } of calls) make[call](values);
  }, calls);
  if (leaves) {
    // The page may be gone before it can say that it has done so.
    done.catch(() => {});
    await page.waitForURL(`${origin}/away`);
  } else {
    await done;
  }
}

const isReady = () => page.waitForFunction(() => window.ready === true);
const allAnswered = () => until(() => inFlight.size === 0, "answer to every request");

const drive = {
  async client(call) {
    ({ options } = call);
    await page.goto(origin);
    await isReady();
  },
  async click({ selector }) {
    // The library sees clicks once it knows the settings of the project.
    await allAnswered();
    await page.click(selector);
  },
  async reload() {
    await allAnswered();
    await page.reload();
    await isReady();
  },
  async pause({ why }) {
    process.stdout.write(`${JSON.stringify({ paused: why })}\n`);
    await lines.next();
  },
  // The library does not report it, but it no longer tries.
  given_up: ({ tries }) => until(() => failed >= tries, `${tries} requests without an answer`),
  stream({ event, pause }) {
    const captureInPage = ([event, n]) =>
      window.posthog.capture(event, { n, captured_at: Date.now() / 1000 });
    const capture = () => page.evaluate(captureInPage, [event, captured++]);
    return repeat(capture, pause, lines.next());
  },
  // Everything that the library knows of and the service does not offer.
  async features() {
    features = await page.evaluate(async () => {
      const { posthog } = window;
      const answers = {
        flag: posthog.isFeatureEnabled("new-page"),
        payload: posthog.getFeatureFlagPayload?.("new-page"),
      };
      const asked = {
        getSurveys: posthog,
        getEarlyAccessFeatures: posthog,
        getWebExperiments: posthog.experiments,
        getProductTours: posthog.productTours,
      };
      for (const [name, part] of Object.entries(asked)) {
        if (!part?.[name]) continue;
        const found = await new Promise((answer) => part[name](answer, true));
        answers[name] = found.length === 0 ? null : found;
      }
      return answers;
    });
    await allAnswered();
  },
  shutdown() {},
};

for (const { call, ...values } of scenario.calls) {
  if (call in drive) {
    await callInPage();
    await drive[call](values);
  } else {
    waiting.push({ call, ...values });
  }
}
await callInPage();
process.stdout.write(`${JSON.stringify({ captured, failures, blocked, said, features })}\n`);
await lines.next();
await browser.close();
site.close();
process.exit(0);
