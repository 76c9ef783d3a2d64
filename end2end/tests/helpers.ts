// What the specs share: a server for each file, people, and an eye on the console.

import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { test as base, type Cookie, expect, type Locator, type Page } from "@playwright/test";
import type axe from "axe-core";
import { type Server, startServer } from "../server";

export { expect };
export type { Server };

const run = promisify(execFile);

export const person = {
  name: "Ada",
  email: "ada@weir.example",
  password: "seven quiet herons at dusk",
  organization: "Upstream Works",
  project: "Mill race",
};

export interface Credentials {
  email: string;
  password: string;
}

interface Worker {
  instance: Instance;
}

interface Each {
  /** Not set up yet, unless an earlier test did it: `enter` and `visit` see to it. */
  server: Server;
  /** Whether the browser runs scripts. */
  scripts: boolean;
  expectedOnConsole: RegExp;
  quietConsole: void;
}

/** The server of the file whose tests run: files know nothing of each other. */
class Instance {
  private file = "";
  private server?: Server;

  async serverFor(file: string): Promise<Server> {
    if (!this.server || this.file !== file) {
      await this.close();
      this.server = await startServer();
      this.file = file;
    }
    return this.server;
  }

  async close(): Promise<void> {
    await this.server?.stop();
    this.server = undefined;
  }
}

// Tests of a file run in order in one worker, with one server, because starting one takes
// seconds. Each test prepares what it needs, so that it passes alone (`npm run alone`).
export const test = base.extend<Each, Worker>({
  instance: [
    async ({}, use) => {
      const instance = new Instance();
      await use(instance);
      await instance.close();
    },
    { scope: "worker" },
  ],
  server: async ({ instance }, use, { file }) => use(await instance.serverFor(file)),
  scripts: async ({ javaScriptEnabled }, use) => use(javaScriptEnabled !== false),
  baseURL: async ({ server }, use) => use(server.url),
  // What a test expects on the console, apart from the browser's own note that a request
  // was refused: a refused form is part of many tests.
  expectedOnConsole: [/^Failed to load resource/, { option: true }],
  quietConsole: [
    async ({ page, expectedOnConsole }, use) => {
      const said: string[] = [];
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type()) && !expectedOnConsole.test(message.text())) said.push(message.text());
      });
      page.on("pageerror", (error) => {
        if (!expectedOnConsole.test(String(error))) said.push(String(error));
      });
      await use();
      expect(said, "the console stays empty").toEqual([]);
    },
    { auto: true },
  ],
});

/** Waits until the page answers to scripts, where there are any. */
export async function alive(page: Page, scripts: boolean): Promise<void> {
  if (scripts) await page.locator("html[data-alive]").waitFor({ state: "attached" });
}

export async function setUp(page: Page, server: Server, scripts: boolean, who = person): Promise<void> {
  await page.goto(server.setupLink);
  await alive(page, scripts);
  await page.getByLabel("First name").fill(who.name);
  await page.getByLabel("E-mail address").fill(who.email);
  await page.getByLabel("Password", { exact: true }).fill(who.password);
  await page.getByLabel("Organization").fill(who.organization);
  await page.getByLabel("First project").fill(who.project);
  await page.getByRole("button", { name: "Set up Weir" }).click();
  await page.waitForURL("**/projects/*/start");
  await keepSession(page, server);
}

/** Where `/` leads: to the overview of a project, or to its start page before the first event. */
export const HOME = /\/projects\/\d+(\/start)?$/;

export async function signIn(page: Page, scripts: boolean, who = person as Credentials): Promise<void> {
  await page.goto("/login");
  await alive(page, scripts);
  await page.getByLabel("E-mail address").fill(who.email);
  await page.getByLabel("Password", { exact: true }).fill(who.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(HOME);
}

/** Signs in on the page that a form of an ended session leads to. */
export async function signInAfterEnd(page: Page, scripts: boolean): Promise<void> {
  await page.waitForURL("**/login?next=**");
  await expect(page.getByText("Your session has ended, so nothing was changed.")).toBeVisible();
  await alive(page, scripts);
  await page.getByLabel("E-mail address").fill(person.email);
  await page.getByLabel("Password", { exact: true }).fill(person.password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

export async function signOut(page: Page, scripts: boolean): Promise<void> {
  await page.goto("/account");
  await alive(page, scripts);
  await page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/login");
}

/** Name of the cookie by which Weir knows a session. */
const SESSION = "session";

/** The session at each server, for the later tests of the file. */
const sessions = new WeakMap<Server, Cookie[]>();

/**
 * Sets the instance up at the first call. Later calls reuse that session, because
 * passwords are slow to check. If it has ended, they sign in. Opens the page at `path`, or
 * else the start page of the project.
 */
export async function enter(page: Page, server: Server, scripts: boolean, path?: string): Promise<void> {
  const kept = await reuseSession(page, server);
  if (!kept) {
    if ((await page.request.get(server.setupLink)).ok()) await setUp(page, server, scripts);
    else {
      await signIn(page, scripts);
      await keepSession(page, server);
    }
  }
  const home = kept ?? new URL(page.url()).pathname;
  const wanted = path ?? home.replace(/(\/start)?$/, "/start");
  if (kept || home !== wanted) await page.goto(wanted);
}

/**
 * Gives the browser the session of the server that was kept, without a page. Returns where
 * `/` leads with it, unless there is none or it has ended.
 */
async function reuseSession(page: Page, server: Server): Promise<string | undefined> {
  const kept = sessions.get(server);
  if (!kept) return undefined;
  await page.context().addCookies(kept);
  const { location } = (await page.request.get("/", { maxRedirects: 0 })).headers();
  return location && HOME.test(location) ? location : undefined;
}

async function keepSession(page: Page, server: Server): Promise<void> {
  const cookies = await page.context().cookies();
  sessions.set(server, cookies.filter(({ name }) => name === SESSION));
}

/** Sets the instance up at the first call. The browser has no session. */
export async function visit(page: Page, server: Server, scripts: boolean): Promise<void> {
  if (sessions.has(server)) return;
  await enter(page, server, scripts);
  await forgetSession(page);
}

/** The browser forgets its session, which does not end. */
export async function forgetSession(page: Page): Promise<void> {
  // A page with a live list would notice it.
  await page.goto("about:blank");
  await page.context().clearCookies();
}

/** What an authenticator app shows, so many steps of 30 seconds from now. */
export function authenticatorCode(secret: string, steps = 0): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = [...secret].map((digit) => alphabet.indexOf(digit).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const tag = createHmac("sha1", key).update(counter).digest();
  const at = (tag.at(-1) ?? 0) & 15;
  return String((tag.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

export async function projectKey(page: Page): Promise<string> {
  const text = await page.locator("code", { hasText: /^phc_/ }).first().textContent();
  return text ?? "";
}

/** A new key that may do everything. */
export async function newKey(page: Page, scripts: boolean, label: string): Promise<string> {
  await page.goto("/account/keys/new");
  await alive(page, scripts);
  await page.getByLabel("Label").fill(label);
  await page.locator("input[value=all]").check();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.waitForURL("**/account/keys/reveal");
  return (await page.locator(".reveal-value code").textContent()) ?? "";
}

/** The key of each server with which tests prepare what they need. */
const keys = new WeakMap<Server, string>();

/** Gives the browser a session, and returns a key that may do everything. */
export async function apiKey(page: Page, server: Server, scripts: boolean): Promise<string> {
  const kept = keys.get(server);
  if (kept && (await reuseSession(page, server))) return kept;
  await enter(page, server, scripts);
  const key = kept ?? (await newKey(page, scripts, "Preparations"));
  keys.set(server, key);
  return key;
}

/** Calls the management API with a key. */
export async function call(server: Server, key: string, method: string, path: string, body?: object): Promise<any> {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  expect(answer.ok, `${method} ${path}: ${answer.status}`).toBe(true);
  return answer.status === 204 ? undefined : answer.json();
}

/** An organization for one test, with a project of its own. */
export interface Organization {
  id: string;
  project: number;
  /** The key with which events are sent to the project. */
  token: string;
}

/**
 * Creates an organization, so that the test finds nothing that other tests have made. The
 * current organization of the browser stays.
 */
export async function newOrganization(server: Server, key: string, name = person.organization): Promise<Organization> {
  const { id, teams } = await call(server, key, "POST", "/api/organizations/", { name });
  const [project] = teams;
  await call(server, key, "PATCH", `/api/projects/${project.id}/`, { name: person.project });
  return { id, project: project.id, token: project.api_token };
}

/** Installs a plugin of the catalogue in an organization, and returns its number. */
export async function install(server: Server, key: string, organization: string, entry: string): Promise<number> {
  const path = `/api/organizations/${organization}/pipeline_destinations/`;
  return (await call(server, key, "POST", path, { url: `inline:${entry}` })).id;
}

/** A transformation of a project: a plugin of the catalogue and its settings. */
export interface Transformation {
  entry: string;
  name?: string;
  enabled?: boolean;
  config?: object;
}

/** Adds transformations to a project, in this order, and returns their numbers. */
export async function addTransformations(server: Server, key: string, { id, project }: Pick<Organization, "id" | "project">, all: Transformation[]): Promise<number[]> {
  const made: number[] = [];
  for (const [at, { entry, enabled = true, config = {}, ...named }] of all.entries()) {
    const body = { plugin: await install(server, key, id, entry), order: at + 1, enabled, config, ...named };
    made.push((await call(server, key, "POST", `/api/projects/${project}/pipeline_transformation_configs/`, body)).id);
  }
  return made;
}

/** Of nothing that there is. */
export const UNKNOWN_ID = "00000000-0000-0000-0000-000000000000";

/** The addresses as the app has them. */
export function routes(): string[] {
  const app = fileURLToPath(new URL("../../app/src/app.rs", import.meta.url));
  return [...readFileSync(app, "utf8").matchAll(/path!\("([^"]+)"\)/g)].map(([, path]) => path!);
}

/** The transformations of the project that `furnish` makes. */
export const STEPS = ["bot-filter", "location"].map((entry) => ({ entry, enabled: false }));

/** Makes one of each in the only project, and says where it is. `token` is the project's key. */
export async function furnish(server: Server, key: string, token: string): Promise<Record<string, string>> {
  const groups = { company: "acme" };
  await send(server, token, { event: "page viewed", distinct_id: "ada", properties: { $groups: groups } });
  await send(server, token, { event: "of no one" });
  await send(server, token, {
    event: "$groupidentify",
    distinct_id: "ada",
    properties: { $group_type: "company", $group_key: "acme", $group_set: { name: "Acme" } },
  });
  const organization: string = (await call(server, key, "GET", "/api/organizations/")).results[0].id;
  const root = `/api/organizations/${organization}`;
  const plugin = await install(server, key, organization, "webhook");
  const configs = await addTransformations(server, key, { id: organization, project: 1 }, STEPS);
  const written = (await call(server, key, "POST", `${root}/pipeline_destinations/`, { plugin_type: "source", name: "Written" })).id;
  const code = "export function composeWebhook(event) {\n  return null\n}\n";
  await call(server, key, "PATCH", `${root}/pipeline_destinations/${written}/update_source/`, { "index.js": code });
  const exported = await call(server, key, "POST", `${root}/batch_exports/`, {
    name: "Nowhere",
    interval: "day",
    model: "events",
    paused: true,
    destination: { type: "NoOp", config: {} },
  });
  const insight = await call(server, key, "POST", "/api/projects/1/insights/", {
    name: "Page views",
    query: { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "page viewed" }] },
  });
  const dashboard = await call(server, key, "POST", "/api/projects/1/dashboards/", { name: "Growth" });
  const ofDashboard = `/api/projects/1/dashboards/${dashboard.id}/`;
  await call(server, key, "PATCH", ofDashboard, { tiles: [{ insight: insight.id }] });
  const shared = await call(server, key, "POST", `${ofDashboard}share_links/`, {});
  const domain = await call(server, key, "POST", `${root}/domains/`, { domain: "otter-tea.example" });
  const invite = await call(server, key, "POST", `${root}/invites/`, { target_email: "grace@weir.example" });
  // Events are readable a moment after they were taken.
  let person = "";
  await expect(async () => {
    person = (await call(server, key, "GET", "/api/projects/1/persons/?distinct_id=ada")).results[0].uuid;
    expect((await call(server, key, "GET", "/api/projects/1/groups/?group_type=company")).results).toHaveLength(1);
  }).toPass();
  return {
    organization,
    plugin: String(plugin),
    written: String(written),
    config: String(configs[0]),
    exported: exported.id,
    insight: insight.short_id,
    dashboard: String(dashboard.id),
    shared: shared.token,
    domain: domain.id,
    invite: invite.token,
    person,
  };
}

/** Invites a person to an organization, and signs them up. Returns their id. */
export async function join(server: Server, key: string, organization: string, who: { name: string; email: string; password: string }): Promise<string> {
  const invite = { target_email: who.email, first_name: who.name };
  const { token } = await call(server, key, "POST", `/api/organizations/${organization}/invites/`, invite);
  const answer = await fetch(`${server.url}/api/signup/${token}/`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ first_name: who.name, password: who.password }),
  });
  expect(answer.status).toBe(201);
  return (await answer.json()).uuid;
}

export function post(server: Server, key: string, event: object): Promise<Response> {
  return fetch(`${server.url}/i/v0/e/`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ api_key: key, ...event }),
  });
}

export async function send(server: Server, key: string, event: object): Promise<void> {
  expect((await post(server, key, event)).status).toBe(200);
}

/** Sends a body of the project that breaks off. */
export async function refused(server: Server, key: string): Promise<void> {
  const body = `{"api_key": "${key}", "batch": [{`;
  expect((await fetch(`${server.url}/batch/`, { method: "POST", body })).status).toBe(400);
}

export async function shell(command: string): Promise<string> {
  return (await run("bash", ["-c", command])).stdout;
}

/** Runs a command as if typed into a terminal, where HTTPie expects no input. */
export async function terminal(command: string): Promise<void> {
  const python = process.env.WEIR_PYTHON ?? "python3";
  const spawn = `
import os, pty, sys
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
sys.exit(os.waitstatus_to_exitcode(pty.spawn(["bash", "-c", sys.argv[1]])))`;
  await run(python, ["-c", spawn, command]);
}

/** Opens the menu of an entry of a list. */
export async function openMenu(page: Page, of: string): Promise<void> {
  await page.locator("summary", { hasText: `Actions for ${of}` }).click();
}

/** Opens the rarely used fields of a form. */
export async function openAdvanced(page: Page): Promise<void> {
  await page.locator("details.advanced:not([open]) > summary").first().click();
}

/** Reloads, as the page does automatically every few seconds without scripts. */
export async function look(page: Page, scripts: boolean): Promise<void> {
  if (!scripts) await page.reload();
}

/** Sends a form, and waits for its outcome: the answer of its function with scripts, else a new document. */
export async function sent(page: Page, act: () => Promise<void>): Promise<void> {
  const loaded = page.waitForEvent("domcontentloaded").catch(() => undefined);
  const answered = page.waitForResponse((answer) => answer.request().method() === "POST" && answer.url().includes("/_fn/"));
  await act();
  if ((await answered).request().isNavigationRequest()) await loaded;
}

/** Saves a form: its page confirms it, even if it confirmed it before. */
export async function save(page: Page, button: string): Promise<void> {
  await sent(page, () => page.getByRole("button", { name: button }).click());
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
}

/** Bytes of a page's HTML after gzip (APP-2). */
const HTML_MAX = 60_000;

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** A theme changes colours and nothing else: one run of all rules is enough for both. */
const THEMES = [
  ["light", TAGS],
  ["dark", ["color-contrast"]],
] as const;

/** The narrowest screen on which nothing may be lost. */
const PHONE = { width: 320, height: 800 };

/** A usual screen, what is left of 1920, 1600, 1440 and 1280 px at 200 % zoom, and a phone. */
const WIDTHS = [1280, 960, 800, 720, 640, PHONE.width];

/** Runs in the page: what leaves its place sideways, and cannot be scrolled to there. */
function overflowing(): string[] {
  const root = document.documentElement;
  const page = root.scrollWidth > window.innerWidth ? [`page: ${root.scrollWidth}`] : [];
  const wide = [...document.querySelectorAll<HTMLElement>(".table-frame, .table .cell")].filter((part) => {
    const { display, overflowX } = getComputedStyle(part);
    return display !== "none" && overflowX === "visible" && part.clientWidth > 1 && part.scrollWidth > part.clientWidth + 1;
  });
  return page.concat(wide.map((part) => `${part.className} ${part.scrollWidth} > ${part.clientWidth}: ${part.textContent?.slice(0, 60)}`));
}

/** What `look` finds while the page is as narrow as on a phone. */
export async function narrowly<T>(page: Page, look: () => Promise<T>): Promise<T> {
  const before = page.viewportSize();
  await page.setViewportSize(PHONE);
  const found = await look();
  if (before) await page.setViewportSize(before);
  return found;
}

/**
 * A page in both themes, wide and narrow: no violation, no sideways scroll. Axe is a
 * script: without scripts, where the page looks the same, only its width is measured.
 */
export async function checkPage(page: Page, what: string): Promise<void> {
  const before = page.viewportSize();
  // Each size once, because the page is laid out for it again.
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    if (hasScripts() && [1280, PHONE.width].includes(width)) await checkRules(page, what);
    // Without scripts a page with live data may reload itself at any time.
    await expect(async () => {
      expect(await page.evaluate(overflowing), `${what}: what is too wide at ${width} px`).toEqual([]);
    }).toPass({ timeout: 10_000 });
  }
  if (before) await page.setViewportSize(before);
  expect(gzipSync(await page.content()).length, `${what}: HTML after gzip`).toBeLessThanOrEqual(HTML_MAX);
  await record(page, what, 0);
}

/** What is closed on a page, such as confirmations: all of it opened, on a phone. */
export async function checkOpened(page: Page, what: string): Promise<void> {
  const opened = await page.evaluate(() => {
    const closed = document.querySelectorAll<HTMLDetailsElement>("main details:not([open])");
    for (const part of closed) part.open = true;
    return closed.length;
  });
  if (opened === 0) return;
  await narrowly(page, async () => {
    await withAxe(page);
    expect.soft(await page.evaluate(violations, [...TAGS]), `${what}, opened`).toEqual([]);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect.soft(overflow, `${what}, opened, does not scroll sideways`).toBeLessThanOrEqual(0);
  });
}

/** A page in both themes, as wide as it is. */
async function checkRules(page: Page, what: string): Promise<void> {
  await withAxe(page);
  for (const [theme, rules] of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    const found = await page.evaluate(violations, [...rules]);
    if (found.length > 0) await record(page, what, found.length);
    expect(found, `${what}, ${theme}, ${page.viewportSize()?.width} px`).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: null });
}

/**
 * Axe as it is: its package for Playwright opens another page for each run, for the sake
 * of frames, which Weir has none of. That takes longer than all rules do. Minified, it is
 * sent to the page in half the time.
 */
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** Loads Axe into the document, once. */
async function withAxe(page: Page): Promise<void> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
}

/** Runs in the page. */
async function violations(rules: string[]): Promise<string[]> {
  // The line above the page covers what is scrolled below it.
  window.scrollTo(0, 0);
  // End animations, so that colours are final.
  for (const animation of document.getAnimations()) {
    if (Number.isFinite(animation.effect?.getComputedTiming().endTime)) animation.finish();
  }
  const { axe: injected } = window as unknown as { axe: { run: typeof axe.run } };
  const found = await injected.run({ runOnly: rules, resultTypes: ["violations"] });
  // A link that the open switcher covers in part is whole again once the switcher is closed.
  const menus = [...document.querySelectorAll(".switch[open] > :not(summary)")].map((menu) => menu.getBoundingClientRect());
  const isCovered = ({ target }: axe.NodeResult) => {
    const link = document.querySelector(String(target[0]))?.getBoundingClientRect();
    return link !== undefined && menus.some((menu) => menu.left < link.right && link.left < menu.right && menu.top < link.bottom && link.top < menu.bottom);
  };
  return found.violations
    .map(({ id, nodes }) => ({ id, nodes: nodes.filter((node) => id !== "target-size" || !isCovered(node)) }))
    .filter(({ nodes }) => nodes.length > 0)
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
}

/** Whether the browser of this test runs scripts. */
function hasScripts(): boolean {
  return base.info().project.use.javaScriptEnabled !== false;
}

/** Notes that a page was checked, for the list of pages that `pages.mjs` writes. */
async function record(page: Page, what: string, violations: number): Promise<void> {
  const log = process.env.WEIR_PAGES_LOG;
  if (!log) return;
  const { file } = base.info();
  const line = {
    page: what,
    path: new URL(page.url()).pathname,
    spec: basename(file),
    scripts: hasScripts(),
    title: await page.title(),
    axe: violations,
    htmlGzip: gzipSync(await page.content()).length,
  };
  appendFileSync(log, `${JSON.stringify(line)}\n`);
}

/**
 * A picture for the user guide, when pictures are asked for: once, with scripts,
 * as large and as bright as all of them. It begins near `from`, if that is given.
 */
export async function shot(page: Page, name: string, from?: Locator): Promise<void> {
  if (!process.env.WEIR_GUIDE_SHOTS || !hasScripts()) return;
  const before = page.viewportSize();
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "light" });
  await from?.evaluate((element) => element.scrollIntoView({ block: "start", behavior: "instant" }));
  const path = fileURLToPath(new URL(`../../docs/guide/img/${name}.png`, import.meta.url));
  await page.screenshot({ path, animations: "disabled" });
  await page.emulateMedia({ colorScheme: null });
  if (before) await page.setViewportSize(before);
}
