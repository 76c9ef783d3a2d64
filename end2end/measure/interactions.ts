// How soon pages answer to what a person does, on the phone.

import type { Browser, Page } from "@playwright/test";
import { p75 } from "./budgets";
import { EFFORT, pause, say } from "./effort";
import type { Instance } from "./fill";
import type { Place } from "./loads";
import { type Interaction, interactions } from "./observe";
import { PHONE, phoneContext, phonePage } from "./phone";

export interface Answering {
  name: string;
  /** Interactions that took 16 ms or longer, in all visits. */
  noticed: number;
  /** The longest of each visit, in ms. */
  worst: number[];
  /** The same at p75. */
  inp: number;
  /** What took longest. */
  slowest: string;
}

/** Between two interactions, as a person leaves some time. */
const BETWEEN_MS = 100;
const KEYS_MS = 80;

/** Taps what is there first, and waits for what comes of it. */
async function tap(page: Page, selector: string, then = "html"): Promise<void> {
  await page.locator(selector).first().tap();
  await comes(page, then);
}

async function key(page: Page, name: string, then = "html"): Promise<void> {
  await page.keyboard.press(name);
  await comes(page, then);
}

async function comes(page: Page, selector: string): Promise<void> {
  await page.locator(selector).first().waitFor({ state: "attached" });
  await pause(BETWEEN_MS);
}

async function type(page: Page, selector: string, text: string): Promise<void> {
  await tap(page, selector, `${selector}:focus`);
  await page.keyboard.type(text, { delay: KEYS_MS });
  await pause(BETWEEN_MS);
}

/** A disclosure, there and back. */
async function disclose(page: Page, selector: string): Promise<void> {
  await tap(page, `${selector} > summary`, `${selector}[open]`);
  await tap(page, `${selector}[open] > summary`);
}

/** Sends a form, until the page has been drawn again and its button does the opposite. */
async function submit(page: Page, name: RegExp, then: RegExp): Promise<void> {
  await page.getByRole("main").getByRole("button", { name }).first().tap();
  await page.locator("main button", { hasText: then }).first().waitFor({ state: "attached" });
  await pause(BETWEEN_MS);
}

async function alive(page: Page): Promise<void> {
  await page.locator("html[data-alive]").waitFor({ state: "attached" });
}

/** What every page of a signed-in user has: menus, and the search dialog. */
async function frame(page: Page): Promise<void> {
  await tap(page, ".rail-opener", "#rail:popover-open");
  await tap(page, ".switch > summary", ".switch[open]");
  await key(page, "Escape", ".switch:not([open])");
  await tap(page, ".account > summary", ".account[open]");
  await key(page, "Escape", ".account:not([open])");
  // Beside it.
  await page.touchscreen.tap(PHONE.width - 4, PHONE.height / 2);
  await comes(page, "#rail:not(:popover-open)");
  await tap(page, ".top-search", "#palette:popover-open [data-palette-found] a");
  await page.keyboard.type("set", { delay: KEYS_MS });
  // Results come a while after the last key.
  await pause(300);
  await key(page, "Escape", "#palette:not(:popover-open)");
}

/** What there is to do on a page, by its name. */
const OWN: Record<string, (page: Page) => Promise<void>> = {
  "Sign in": async (page) => {
    await type(page, "input[name=email]", "ada@weir");
    await tap(page, "[data-shows]", "[aria-pressed=true]");
    await tap(page, "[data-shows]", "[aria-pressed=false]");
  },
  Start: async (page) => {
    await tap(page, ".tab:nth-of-type(2)");
    await tap(page, ".tab:nth-of-type(3)");
    await disclose(page, "main details.help");
  },
  Events: async (page) => {
    await type(page, "#event", "viewed 1");
    await key(page, "Enter", "main a:has-text('Clear filters')");
    await tap(page, "main button:has-text('Pause')", "main button:has-text('Resume')");
    await tap(page, "main button:has-text('Resume')", "main button:has-text('Pause')");
    await tap(page, ".row-link", ".live > .detail");
    await key(page, "Escape", ".live:not(:has(> .detail))");
  },
  Health: async (page) => disclose(page, "main details"),
  Persons: async (page) => type(page, "#q", "reader-1"),
  Transformations: async (page) => {
    await submit(page, /^Switch off/, /^Switch on/);
    await submit(page, /^Switch on/, /^Switch off/);
  },
  Exports: async (page) => {
    await tap(page, ".row-menu > summary", ".row-menu[open]");
    await submit(page, /^Unpause/, /^Pause/);
    await tap(page, ".row-menu > summary", ".row-menu[open]");
    await submit(page, /^Pause/, /^Unpause/);
  },
  "API keys": async (page) => disclose(page, "main details.row-menu"),
  Members: async (page) => {
    await type(page, "#search", "grace");
    await disclose(page, "main details.row-menu");
  },
};

export async function measureInteractions(browser: Browser, instance: Instance, wanted: Place[]): Promise<Answering[]> {
  const visits = wanted.map((): Interaction[][] => []);
  for (let round = 0; round < EFFORT.visits; round++) {
    say(`interactions, round ${round + 1} of ${EFFORT.visits}`);
    // The first page fills the cache for the others.
    const context = await phoneContext(browser, instance.server.url, instance.state);
    const outside = await phoneContext(browser, instance.server.url);
    for (const [at, place] of wanted.entries()) {
      const { page } = await phonePage(place.outside ? outside : context);
      await page.goto(place.path);
      await alive(page);
      if (!place.outside) await frame(page);
      await OWN[place.name]?.(page);
      await pause(BETWEEN_MS);
      visits[at]!.push(await interactions(page));
      await page.close();
    }
    await context.close();
    await outside.close();
  }
  return wanted.map(({ name }, at) => summed(name, visits[at]!));
}

function summed(name: string, visits: Interaction[][]): Answering {
  const worst = visits.map((visit) => Math.max(0, ...visit.map(({ duration }) => duration)));
  const all = visits.flat().sort((one, other) => other.duration - one.duration);
  return { name, noticed: all.length, worst, inp: p75(worst), slowest: all[0]?.what ?? "-" };
}
