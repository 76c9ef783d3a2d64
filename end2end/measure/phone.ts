// A mid-range phone on 4G, as the browser can pretend to be one.

import type { Browser, BrowserContext, CDPSession, Page } from "@playwright/test";
import { observe } from "./observe";

export const PHONE = {
  width: 360,
  height: 740,
  /** How many times slower the processor is. */
  slowdown: 4,
  /** Mbit/s. */
  down: 9,
  up: 1.5,
  /** ms of every request. */
  latency: 60,
};

/** Whatever takes longer than this does not come. */
const LIMIT_MS = 30_000;

/** What a signed-in browser sends and remembers. */
export type State = Awaited<ReturnType<BrowserContext["storageState"]>>;

/** An empty cache, and the cookies of `state`. */
export async function phoneContext(browser: Browser, url: string, state?: State): Promise<BrowserContext> {
  const context = await browser.newContext({
    baseURL: url,
    storageState: state,
    viewport: { width: PHONE.width, height: PHONE.height },
    deviceScaleFactor: 2,
    isMobile: true,
    hasTouch: true,
  });
  context.setDefaultTimeout(LIMIT_MS);
  await observe(context);
  return context;
}

/** A page, and what controls the browser around it. */
export interface PhonePage {
  page: Page;
  session: CDPSession;
}

/** A page with the processor and the network of the phone. */
export async function phonePage(context: BrowserContext): Promise<PhonePage> {
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await slowDown(session, PHONE.slowdown);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: PHONE.latency,
    downloadThroughput: (PHONE.down * 1e6) / 8,
    uploadThroughput: (PHONE.up * 1e6) / 8,
    connectionType: "cellular4g",
  });
  return { page, session };
}

/** A page that is slowed down keeps a processor busy, also when it has nothing to do. */
export async function slowDown(session: CDPSession, rate: number): Promise<void> {
  await session.send("Emulation.setCPUThrottlingRate", { rate });
}
