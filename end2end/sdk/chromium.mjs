// Starts the browser that all pages of the run share, each in a profile of its own;
// prints where it is to be found, and ends it when standard input ends.

import { chromium } from "@playwright/test";

const server = await chromium.launchServer({
  executablePath: process.env.CHROMIUM,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
process.stdout.write(`${server.wsEndpoint()}\n`);
process.stdin.resume();
await new Promise((ended) => process.stdin.once("end", ended));
await server.close();
process.exit(0);
