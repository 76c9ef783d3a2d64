// Started by scripts/bench --pages: the browser of the tests, one thing at a time.

import { defineConfig } from "@playwright/test";
import tests from "../playwright.config";

export default defineConfig({
  testDir: ".",
  testMatch: "*.measure.ts",
  outputDir: "../test-results/measure",
  workers: 1,
  timeout: 1_200_000,
  reporter: "line",
  use: { ...tests.use, trace: "off" },
});
