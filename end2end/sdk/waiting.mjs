// Waiting for conditions, always with a deadline. No other code of the drivers pauses.

import { setTimeout as pause } from "node:timers/promises";

// Less than the harness waits for a driver (`PATIENCE` of drivers.py), so that the error
// says what is missing.
const PATIENCE_MS = 140_000;
const LOOK_MS = 20;

/** Waits until the condition holds. `what` is missing when it does not hold in time. */
export async function until(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`no ${what} after ${PATIENCE_MS} ms`);
    await pause(LOOK_MS);
  }
}

/** Acts again and again, with so many seconds in between, until the promise is resolved. */
export async function repeat(act, seconds, end) {
  let ended = false;
  end.then(() => (ended = true));
  while (!ended) {
    await act();
    await Promise.race([end, pause(seconds * 1000)]);
  }
}
