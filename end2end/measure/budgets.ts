// What is wanted of pages, and how figures are summed up.

export interface Budget {
  /** Above it a figure is worth a look. */
  warn: number;
  /** Above it a figure is a fault. */
  fail: number;
}

/** Sizes are kB after gzip, times are ms, both at p75. They only ever go down. */
export const BUDGETS = {
  wasm: { warn: 395, fail: 400 },
  glue: { warn: 15, fail: 20 },
  css: { warn: 18, fail: 25 },
  icons: { warn: 8, fail: 12 },
  html: { warn: 30, fail: 60 },
  /** Without a network between. */
  ttfb: { warn: 80, fail: 200 },
  lcp: { warn: 1200, fail: 2500 },
  inp: { warn: 100, fail: 200 },
  cls: { warn: 0.02, fail: 0.1 },
  /** From a click on a link until the next page is painted, with its code loaded. */
  change: { warn: 100, fail: 250 },
  changePhone: { warn: 250, fail: 500 },
  /** From sending an event until its row is visible. */
  row: { warn: 300, fail: 1000 },
} satisfies Record<string, Budget>;

export function exceeds(value: number, budget: Budget): "" | "warn" | "fail" {
  if (value > budget.fail) return "fail";
  return value > budget.warn ? "warn" : "";
}

/** The smallest value that so large a share of the values does not exceed. */
export function percentile(values: number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN;
}

export const p75 = (values: number[]): number => percentile(values, 0.75);
