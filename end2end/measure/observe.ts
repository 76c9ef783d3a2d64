// What the browser itself says about a page: paint, shifts, interactions, long tasks.

import type { BrowserContext, Page } from "@playwright/test";

export interface Interaction {
  /** From the input until the next frame, in ms; below 16 ms there is no entry. */
  duration: number;
  what: string;
}

export interface Seen {
  /** When the largest element was painted, in ms. */
  lcp: number;
  /** Sum of the shifts that no input caused. */
  shifts: number;
  shiftedAt: number;
  /** What moved. */
  moved: string[];
  longTasks: { at: number; duration: number }[];
}

declare global {
  interface Window {
    seen: Seen & { interactions(): Interaction[] };
  }
}

/** Observes every page of the context from its beginning. */
export async function observe(context: BrowserContext): Promise<void> {
  await context.addInitScript(observer);
}

/** All interactions of the tab so far, also on pages that it left. */
export async function interactions(page: Page): Promise<Interaction[]> {
  return page.evaluate(() => window.seen.interactions());
}

/** Runs in the page, so nothing from outside is known here. */
function observer(): void {
  if (location.protocol === "about:" || window.top !== window) return;
  const KEPT = "interactions";
  const before: Interaction[] = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  const byId = new Map<number, Interaction>();
  const seen: Seen = { lcp: 0, shifts: 0, shiftedAt: 0, moved: [], longTasks: [] };

  const watch = (type: string, take: (entry: any) => void, options = {}) => {
    const each = (entries: PerformanceEntryList) => entries.forEach(take);
    const watching = new PerformanceObserver((list) => each(list.getEntries()));
    watching.observe({ type, buffered: true, ...options });
    return () => each(watching.takeRecords());
  };
  const name = (target?: Element | null) => {
    const element = target?.closest?.("a, button, summary, label, input, select") ?? target;
    if (!element) return "what is gone";
    const { id, classList, tagName, parentElement } = element;
    const mark = id ? `#${id}` : classList[0] ? `.${classList[0]}` : "";
    const within = mark || !parentElement?.classList[0] ? "" : ` of .${parentElement.classList[0]}`;
    return `${tagName.toLowerCase()}${mark}${within}`;
  };
  watch("largest-contentful-paint", (entry) => (seen.lcp = entry.startTime));
  watch("layout-shift", (entry) => {
    if (entry.hadRecentInput) return;
    seen.shifts += entry.value;
    seen.shiftedAt = entry.startTime;
    for (const { node } of entry.sources) seen.moved.push(name(node instanceof Element ? node : node?.parentElement));
  });
  watch("longtask", ({ startTime, duration }) => seen.longTasks.push({ at: startTime, duration }));

  const takeRest = watch(
    "event",
    (entry) => {
      // One interaction is several events: the longest counts.
      if (!entry.interactionId || (byId.get(entry.interactionId)?.duration ?? 0) >= entry.duration) return;
      byId.set(entry.interactionId, { duration: entry.duration, what: `${entry.name} on ${name(entry.target)}` });
    },
    { durationThreshold: 16 },
  );
  const all = () => (takeRest(), [...before, ...byId.values()]);
  addEventListener("pagehide", () => sessionStorage.setItem(KEPT, JSON.stringify(all())));
  window.seen = Object.assign(seen, { interactions: all });
}
