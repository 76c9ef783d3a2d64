// Pages as they load on the phone: first byte, largest paint, shifts, console.

import type { Browser } from "@playwright/test";
import { ask } from "./requests";
import { p75 } from "./budgets";
import { EFFORT, pause, say } from "./effort";
import type { Instance } from "./fill";
import { phoneContext, phonePage, slowDown } from "./phone";

export interface Place {
  name: string;
  path: string;
  /** Whether no user is signed in. */
  outside?: boolean;
}

/** All in ms, at p75. */
export interface Load {
  name: string;
  /** Without browser and network. */
  ttfb: number;
  /** The same on the phone. */
  ttfbPhone: number;
  lcp: number;
  /** When the page answers to scripts. */
  alive: number;
  shifts: number;
  /** What moved. */
  moved: string[];
  /** What stood in the console. */
  said: string[];
}

/** A page counts as done when nothing moved for so long. */
const QUIET_MS = 2000;
/** Nothing else runs so long after a page has come to life. */
const ALONE_MS = 250;

export function places({ project, organization }: Instance): Place[] {
  return [
    { name: "Sign in", path: "/login", outside: true },
    { name: "Start", path: `/projects/${project}/start` },
    { name: "Overview", path: `/projects/${project}` },
    { name: "Events", path: `/projects/${project}/events` },
    { name: "Health", path: `/projects/${project}/health` },
    { name: "Persons", path: `/projects/${project}/persons` },
    { name: "Transformations", path: `/projects/${project}/transformations` },
    { name: "Exports", path: `/organizations/${organization}/exports` },
    { name: "API keys", path: "/account/keys" },
    { name: "Members", path: `/organizations/${organization}/members` },
  ];
}

interface Once {
  ttfb: number;
  lcp: number;
  alive: number;
  shifts: number;
  moved: string[];
  said: string[];
}

/** Loads the pages alternately, so that a disturbance of the machine affects all of them. */
export async function measureLoads(browser: Browser, instance: Instance, wanted: Place[]): Promise<Load[]> {
  const loaded = wanted.map((): Promise<Once>[] => []);
  for (let round = 0; round < EFFORT.loads; round++) {
    say(`loads, round ${round + 1} of ${EFFORT.loads}`);
    for (const [at, place] of wanted.entries()) {
      const { rest } = await load(browser, instance, place);
      // A failure is met below; it must not end the program before.
      rest.catch(() => undefined);
      loaded[at]!.push(rest);
    }
  }
  const loads: Load[] = [];
  for (const [at, place] of wanted.entries()) {
    const all = await Promise.all(loaded[at]!);
    const of = (take: (one: Once) => number) => p75(all.map(take));
    loads.push({
      name: place.name,
      ttfb: await local(instance, place),
      ttfbPhone: of((one) => one.ttfb),
      lcp: of((one) => one.lcp),
      alive: of((one) => one.alive),
      shifts: of((one) => one.shifts),
      moved: [...new Set(all.flatMap((one) => one.moved))],
      said: [...new Set(all.flatMap((one) => one.said))],
    });
  }
  return loads;
}

/** One load with an empty cache. The wait until it is idle overlaps the next load. */
async function load(browser: Browser, { server, state }: Instance, place: Place): Promise<{ rest: Promise<Once> }> {
  const context = await phoneContext(browser, server.url, place.outside ? undefined : state);
  const { page, session } = await phonePage(context);
  // The browser's own timing of a navigation leaves out the network of the phone.
  let [asked, answered] = [0, 0];
  session.on("Network.requestWillBeSent", ({ type, timestamp }) => {
    if (type === "Document") asked ||= timestamp;
  });
  session.on("Network.responseReceived", ({ type, timestamp }) => {
    if (type === "Document") answered ||= timestamp;
  });
  const said: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) said.push(message.text());
  });
  page.on("pageerror", (error) => said.push(String(error)));
  const answer = await page.goto(place.path, { waitUntil: "commit" });
  if (answer?.status() !== 200) throw new Error(`${place.path} was answered with ${answer?.status()}`);
  await page.locator("html[data-alive]").waitFor({ state: "attached" });
  const alive = await page.evaluate(() => performance.now());
  await pause(ALONE_MS);
  await slowDown(session, 1);

  const rest = async (): Promise<Once> => {
    await page.waitForFunction(
      ([alive, quiet]) => performance.now() - Math.max(alive!, window.seen.shiftedAt) > quiet!,
      [alive, QUIET_MS],
      { polling: 200 },
    );
    const { lcp, shifts, moved } = await page.evaluate(() => {
      const { lcp, shifts, moved } = window.seen;
      return { lcp, shifts, moved };
    });
    await context.close();
    return { ttfb: (answered - asked) * 1000, lcp, alive, shifts, moved, said };
  };
  return { rest: rest() };
}

async function local({ server, cookie }: Instance, { path, outside }: Place): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < EFFORT.requests; at++) {
    times.push((await ask(server.url + path, outside ? "" : cookie)).ttfb);
  }
  return p75(times);
}
