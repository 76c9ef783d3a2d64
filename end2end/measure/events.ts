// From an event that is sent to its row on the events page, and the page at its fullest.

import type { Browser, BrowserContext, Page } from "@playwright/test";
import { p75, percentile } from "./budgets";
import { EFFORT, pause, say } from "./effort";
import { batch, event, type Instance } from "./fill";
import { interactions, observe } from "./observe";
import { phoneContext, phonePage } from "./phone";

export interface Arrival {
  count: number;
  p50: number;
  p95: number;
}

export interface Typing {
  where: string;
  rows: number;
  /** Events per second that were sent at the same time. */
  rate: number;
  keys: number;
  /** ms, of the keys. */
  p75: number;
  worst: number;
  longTasks: number;
  longest: number;
  /** Share of the time that long tasks took. */
  busy: number;
  /** ms from the last event that was sent until its row. */
  behind: number;
}

/** Rows that the page keeps. */
const KEPT = 1000;
const RATE = 200;
const BATCHES = 20;

async function openLive(page: Page, { project }: Instance): Promise<void> {
  await page.goto(`/projects/${project}/events`);
  await page.locator(".status-live").waitFor();
}

/** One event after the other; clocks of the program and of the page are the machine's. */
export async function measureArrival(browser: Browser, instance: Instance): Promise<Arrival> {
  say(`${EFFORT.events} events and their rows`);
  const context = await browser.newContext({ baseURL: instance.server.url, storageState: instance.state });
  const page = await context.newPage();
  await openLive(page, instance);
  const times: number[] = [];
  for (let at = 0; at < EFFORT.events; at++) {
    // Apart by different times, so that no rhythm of the service is hidden.
    await pause(100 + ((at * 37) % 200));
    const name = `measured ${at}`;
    const visible = await page.evaluateHandle(watchRow, name);
    const sent = Date.now();
    const answer = await fetch(`${instance.server.url}/capture/`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ api_key: instance.key, ...event(name, "measured") }),
    });
    if (!answer.ok) throw new Error(`an event was answered with ${answer.status}`);
    times.push((await visible.evaluate((row) => row.shown)) - sent);
    await visible.dispose();
  }
  await context.close();
  return { count: times.length, p50: percentile(times, 0.5), p95: percentile(times, 0.95) };
}

/** Runs in the page: the time at which a row of this name has been painted. */
function watchRow(name: string): { shown: Promise<number> } {
  const shown = new Promise<number>((resolve, reject) => {
    const isThere = () =>
      [...document.querySelectorAll(".rows-list .row-link")].slice(0, 50).some((row) => row.textContent === name);
    const watching = new MutationObserver(() => {
      if (!isThere()) return;
      watching.disconnect();
      requestAnimationFrame(() => setTimeout(() => resolve(Date.now())));
    });
    watching.observe(document.querySelector("main")!, { childList: true, subtree: true });
    setTimeout(() => reject(new Error(`no row of ${name} in time`)), 30_000);
  });
  return { shown };
}

/** The field of the filter while events stream in and the list is as long as it gets. */
export async function measureTyping(browser: Browser, instance: Instance): Promise<Typing[]> {
  const desk = await browser.newContext({ baseURL: instance.server.url, storageState: instance.state });
  await observe(desk);
  const phone = await phoneContext(browser, instance.server.url, instance.state);
  return [
    await typing(desk, await desk.newPage(), instance, "1280 px, full speed"),
    await typing(phone, (await phonePage(phone)).page, instance, "the phone"),
  ];
}

async function typing(context: BrowserContext, page: Page, instance: Instance, where: string): Promise<Typing> {
  say(`typing beside ${RATE} events/s: ${where}`);
  await openLive(page, instance);
  // Not all of them are drawn.
  const held = async () => Number(/^\d+/.exec((await page.locator(".counts").textContent()) ?? ""));
  const deadline = Date.now() + 60_000;
  while ((await held()) < KEPT && Date.now() < deadline) {
    await batch(instance, some(100, (at) => event(`page viewed ${at % 20}`, `reader-${at % 60}`)));
    await pause(300);
  }
  const filled = await held();
  const field = page.getByLabel("Event name");
  await field.focus();
  const earlier = (await interactions(page)).length;
  const from = await page.evaluate(() => performance.now());
  const until = Date.now() + EFFORT.typing * 1000;
  const sending = stream(instance, until);
  let keys = 0;
  while (Date.now() < until) {
    for (const key of ["v", "i", "e", "w", "e", "d", " ", "1", ...some(8, () => "Backspace")]) {
      if (Date.now() >= until) break;
      await page.keyboard.press(key);
      keys++;
      await pause(100);
    }
  }
  const sent = await sending;
  const to = await page.evaluate(() => performance.now());
  await field.fill("");
  const last = page.locator(".row-link", { hasText: sent.last });
  await last.first().waitFor({ timeout: 60_000 });
  const behind = Math.max(0, Date.now() - sent.at);
  const times = (await interactions(page)).slice(earlier).map(({ duration }) => duration);
  const tasks = await page.evaluate(() => window.seen.longTasks);
  await context.close();
  const long = tasks.filter(({ at }) => at >= from && at < to).map(({ duration }) => duration);
  return {
    where,
    rows: filled,
    rate: sent.count / EFFORT.typing,
    keys,
    // Keys without an entry took less than 16 ms.
    p75: p75([...times, ...some(Math.max(0, keys - times.length), () => 0)]),
    worst: Math.max(0, ...times),
    longTasks: long.length,
    longest: Math.max(0, ...long),
    busy: long.reduce((sum, one) => sum + one, 0) / (to - from),
    behind,
  };
}

/** Sends events steadily, and says which was the last and when. */
async function stream(instance: Instance, until: number): Promise<{ count: number; last: string; at: number }> {
  const began = Date.now();
  let count = 0;
  let last = "";
  while (Date.now() < until) {
    const events = some(RATE / BATCHES, (at) => event(`page viewed ${at}`, `reader-${at}`));
    last = `last ${began} ${count}`;
    await batch(instance, [...events.slice(1), event(last, "reader-0")]);
    count += events.length;
    await pause(Math.max(0, began + (count / RATE) * 1000 - Date.now()));
  }
  return { count, last, at: Date.now() };
}

function some<T>(length: number, make: (at: number) => T): T[] {
  return Array.from({ length }, (_, at) => make(at));
}
