// How much is measured, and the progress of a run.

const quick = process.env.WEIR_QUICK === "1";

export const EFFORT = {
  /** Loads of each page. */
  loads: quick ? 2 : 7,
  /** Requests for the time to the first byte. */
  requests: quick ? 4 : 20,
  /** Visits of each page with interactions. */
  visits: quick ? 1 : 3,
  /** Times that each link is followed to another page. */
  changes: quick ? 2 : 7,
  /** Events whose rows are waited for. */
  events: quick ? 5 : 30,
  /** Persons of the long list. */
  persons: quick ? 1_000 : 10_000,
  /** Seconds of typing beside a stream of events. */
  typing: quick ? 3 : 10,
};

export function say(what: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${what}`);
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
