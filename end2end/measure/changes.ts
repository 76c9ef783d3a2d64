// Changes of the page by links, in one document: from the click until the next page is painted.

import type { Browser, Locator, Page } from "@playwright/test";
import { EFFORT, say } from "./effort";
import type { Instance } from "./fill";
import { phoneContext, phonePage } from "./phone";

/** All in ms, one value for each change. */
export interface Times {
  taken: number[];
  /** Until the last answer of the server before the page was painted; 0 without one. */
  waited: number[];
}

export interface Change {
  name: string;
  desktop: Times;
  phone: Times;
}

export interface Changes {
  list: Change[];
  /** What stood in the console. */
  said: string[];
}

interface Step {
  name: string;
  link: (page: Page, round: number) => Locator;
  /** Where the next page shows what it is. */
  place: string;
  /** What stands there then; without it, the text of the link. */
  text?: string;
}

declare global {
  interface Window {
    /** Requests of scripts: how many are on their way, and when the last one began or ended. */
    calls: { underway: number; changed: number; answered: number };
  }
}

export const DESKTOP = { width: 1280, height: 800 };
const HEADING = "#main h1";
/** The page counts as settled when no request was on its way for so long. */
const QUIET_MS = 200;

/** What a round consists of, in this order. No page but the list of persons is in it twice, see `forget`. */
const STEPS: Step[] = [
  rail("Events"),
  { name: "Event in the list", link: (page, round) => page.locator(".row-link").nth(round), place: "#detail-heading" },
  rail("Persons"),
  {
    name: "Persons, the next page",
    link: (page) => page.locator(".pager a[rel=next]"),
    place: "#main .pager p",
    text: "Showing persons 51 to",
  },
  { name: "Person", link: (page, round) => row(page, "Persons", round), place: HEADING },
  {
    name: "Persons, back from a person",
    link: (page) => page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: "Persons", exact: true }),
    place: HEADING,
    text: "Persons",
  },
  rail("Health"),
  rail("Transformations"),
  rail("Exports"),
  { name: "Export", link: (page, round) => row(page, "Exports", round), place: HEADING },
  rail("Plugins", "Destinations"),
  rail("Members"),
  rail("Activity"),
  rail("Settings", "Organization settings"),
  rail("Overview"),
];

function rail(label: string, heading = label): Step {
  return { name: heading, link: (page) => railLink(page, label), place: HEADING, text: heading };
}

/** Not by its whole text, which can have a number of failing exports. */
function railLink(page: Page, label: string): Locator {
  return page.locator("#rail .nav-link", { has: page.locator(`span:text-is("${label}")`) });
}

/** The link of a row of a table, another one in each round. */
function row(page: Page, table: string, round: number): Locator {
  return page.getByRole("table", { name: table, exact: true }).locator("tbody tr").nth(round).getByRole("link").first();
}

/** A page to walk on, and how a link of it is followed. */
interface Walk {
  page: Page;
  follow: (link: Locator) => Promise<void>;
  /** Documents that were requested. */
  documents: string[];
  said: string[];
  close: () => Promise<void>;
}

export async function measureChanges(browser: Browser, instance: Instance): Promise<Changes> {
  const list = STEPS.map(({ name }): Change => ({ name, desktop: { taken: [], waited: [] }, phone: { taken: [], waited: [] } }));
  const said: string[] = [];
  for (const where of ["desktop", "phone"] as const) {
    const walk = await (where === "phone" ? onPhone : onDesktop)(browser, instance);
    await walk.page.goto(`/projects/${instance.project}`);
    await walk.page.locator("html[data-alive]").waitFor({ state: "attached" });
    await settled(walk.page);
    walk.documents.length = 0;
    // The first round loads the code of the pages.
    for (let round = 0; round <= EFFORT.changes; round++) {
      say(`page changes, ${where}, ${round === 0 ? "code" : `round ${round} of ${EFFORT.changes}`}`);
      for (const [at, step] of STEPS.entries()) {
        const [taken, waited] = await change(walk, step, round);
        if (round === 0) continue;
        list[at]![where].taken.push(taken);
        list[at]![where].waited.push(waited);
      }
      await forget(walk);
    }
    said.push(...walk.said.map((line) => `${where}: ${line}`));
    await walk.close();
  }
  return { list, said: [...new Set(said)] };
}

async function onDesktop(browser: Browser, { server, state }: Instance): Promise<Walk> {
  const context = await browser.newContext({ baseURL: server.url, storageState: state, viewport: DESKTOP });
  await context.addInitScript(countCalls);
  const page = await context.newPage();
  return { page, follow: (link) => link.click(), ...watched(page), close: () => context.close() };
}

async function onPhone(browser: Browser, { server, state }: Instance): Promise<Walk> {
  const context = await phoneContext(browser, server.url, state);
  await context.addInitScript(countCalls);
  const { page } = await phonePage(context);
  const follow = async (link: Locator) => {
    await atRest(link);
    await link.tap();
  };
  return { page, follow, ...watched(page), close: () => context.close() };
}

/**
 * Scrolls to a link and waits until it does not move any more. Cards of a table get their
 * height when they are seen, so the page moves for a moment, and a press would miss.
 */
async function atRest(link: Locator): Promise<void> {
  await link.scrollIntoViewIfNeeded();
  await link.evaluate(async (element) => {
    let top = NaN;
    for (let frames = 0; frames < 5; frames++) {
      await new Promise(requestAnimationFrame);
      const next = element.getBoundingClientRect().top;
      if (next !== top) frames = 0;
      top = next;
    }
  });
}

function watched(page: Page): Pick<Walk, "documents" | "said"> {
  const documents: string[] = [];
  const said: string[] = [];
  page.on("request", (request) => {
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) documents.push(request.url());
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) said.push(message.text());
  });
  page.on("pageerror", (error) => said.push(String(error)));
  return { documents, said };
}

/** Follows a link: the times until the page was painted, and until its data was there. */
async function change(walk: Walk, { name, link: find, place, text }: Step, round: number): Promise<[number, number]> {
  const link = find(walk.page, round);
  await reach(walk, link);
  const wanted = text ?? ((await link.textContent()) ?? "").trim();
  const watching = await walk.page.evaluateHandle(watchChange, { place, wanted });
  await walk.follow(link);
  const { taken, waited } = await watching
    .evaluate(({ painted }) => painted)
    .catch((error) => {
      throw new Error(`${name}: ${walk.documents.length > 0 ? `the document ${walk.documents[0]} was loaded` : error}`);
    });
  await watching.dispose();
  await settled(walk.page);
  if (walk.documents.length > 0) throw new Error(`${name}: the document ${walk.documents[0]} was loaded`);
  return [taken, waited];
}

/** On the phone, the links of the rail are behind a button. */
async function reach({ page, follow }: Walk, link: Locator): Promise<void> {
  const opener = page.locator(".rail-opener");
  await link.waitFor({ state: "attached" });
  if ((await link.isVisible()) || !(await opener.isVisible())) return;
  await follow(opener);
  await page.locator("#rail:popover-open").waitFor();
}

/**
 * The browser keeps the data of the last pages and shows it at once when their address is
 * opened again, also by a link. A form that is saved empties it, so that in each round
 * only the way back to the persons has its data already.
 */
async function forget(walk: Walk): Promise<void> {
  const { page, follow } = walk;
  const link = railLink(page, "Project settings");
  await reach(walk, link);
  await follow(link);
  const button = page.getByRole("button", { name: "Save settings" });
  await button.waitFor();
  await settled(page);
  const answered = page.waitForResponse((answer) => answer.url().includes("/_fn/update_project"));
  await follow(button);
  await answered;
  await settled(page);
}

async function settled(page: Page): Promise<void> {
  await page.waitForFunction(
    (quiet) => window.calls.underway === 0 && performance.now() - window.calls.changed > quiet,
    QUIET_MS,
    { polling: 50 },
  );
}

/** Runs in the page, from its beginning. */
function countCalls(): void {
  const calls = { underway: 0, changed: 0, answered: 0 };
  const send = window.fetch;
  window.fetch = (...given) => {
    calls.underway += 1;
    calls.changed = performance.now();
    return send(...given).finally(() => {
      calls.underway -= 1;
      calls.changed = calls.answered = performance.now();
    });
  };
  window.calls = calls;
}

/** Runs in the page: the times from the next click until `wanted` stands at its place and is painted. */
function watchChange({ place, wanted }: { place: string; wanted: string }): { painted: Promise<{ taken: number; waited: number }> } {
  const isThere = () => !!document.querySelector(place)?.textContent?.trim().startsWith(wanted);
  if (isThere()) throw new Error(`${wanted} is there already`);
  const painted = new Promise<{ taken: number; waited: number }>((resolve, reject) => {
    let clicked = 0;
    addEventListener("click", ({ timeStamp }) => (clicked = timeStamp), { capture: true, once: true });
    const watching = new MutationObserver(() => {
      if (clicked === 0 || !isThere()) return;
      watching.disconnect();
      const waited = Math.max(0, window.calls.answered - clicked);
      // A task after the next frame begins when that frame was painted.
      requestAnimationFrame(() => setTimeout(() => resolve({ taken: performance.now() - clicked, waited })));
    });
    watching.observe(document.querySelector("#main")!, { childList: true, characterData: true, subtree: true });
    setTimeout(() => reject(new Error(`no ${wanted} in time`)), 30_000);
  });
  return { painted };
}
