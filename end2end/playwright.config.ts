import { defineConfig } from "@playwright/test";

// Set by scripts/env where Playwright's own browser could not be downloaded.
const chromium = process.env.CHROMIUM;

export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  forbidOnly: !!process.env.CI,
  // A test that fails now and then is a fault, in it or in Weir.
  retries: 0,
  // Each worker runs a server and a browser; two cores carry two of them.
  workers: 2,
  // The unoptimised server shares two cores with two browsers.
  timeout: 120_000,
  expect: {
    timeout: 15_000,
    // What pages are compared with, the same for every project: pictures of parts,
    // and what assistive technology finds on a page.
    toHaveScreenshot: { animations: "disabled", maxDiffPixelRatio: 0.01, pathTemplate: "{testDir}/shots/{arg}{ext}" },
  },
  snapshotPathTemplate: "{testDir}/aria/{arg}{ext}",
  reporter: process.env.CI ? [["list"], ["html", { open: "never" }]] : "list",
  use: {
    browserName: "chromium",
    locale: "en-GB",
    timezoneId: "UTC",
    // What is not there by then does not come: the test need not wait for its own limit.
    actionTimeout: 30_000,
    // Without pictures and copies of the page at every step: they cost a quarter of the
    // processor time of the browser. A failure has a picture and the accessibility tree.
    trace: { mode: "retain-on-failure", screenshots: false, snapshots: false },
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: chromium,
      // What the system's browser needs to run as root, and to keep to itself.
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
  // Every page and form works without scripts, so every test runs both ways.
  // *.hydrate.spec.ts are about what scripts add.
  projects: [
    { name: "scripts-on" },
    {
      name: "scripts-off",
      testIgnore: "**/*.hydrate.spec.ts",
      use: { javaScriptEnabled: false },
    },
    // Pictures for review, only on request.
    ...(process.env.WEIR_SCREENS ? [{ name: "screens", testMatch: "**/*.screens.ts" }] : []),
  ],
});
