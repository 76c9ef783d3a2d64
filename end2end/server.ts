// Starts real servers for tests: the built `weir`, on a port of its own, with an
// empty data directory that is removed afterwards. Specs import `test` from here:
//
//   test("a page", async ({ page, server }) => {
//     await page.goto(server.setupLink);

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { test as base } from "@playwright/test";

export interface Server {
  /** Where it answers, without a slash at the end. */
  url: string;
  /** The one-time link with which this empty instance is set up. */
  setupLink: string;
  /** What it has written so far, for messages of failing tests. */
  output(): string;
  /** Ends it as an operator would, waits, and removes its data. */
  stop(): Promise<void>;
}

export interface Options {
  /** More arguments for `weir serve`. */
  args?: string[];
  env?: Record<string, string>;
}

/** Tests with a server each; relative addresses lead to it. */
export const test = base.extend<{ server: Server }>({
  server: async ({}, use) => {
    const server = await startServer();
    await use(server);
    await server.stop();
  },
  baseURL: async ({ server }, use) => use(server.url),
});

const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 15_000;

export async function startServer(options: Options = {}): Promise<Server> {
  const binary = process.env.WEIR_BIN;
  if (!binary) {
    throw new Error("WEIR_BIN must name the weir binary; scripts/test sets it");
  }
  // The key of the data lies beside it.
  const directory = await mkdtemp(join(tmpdir(), "weir-test-"));
  const child = spawn(binary, ["serve", ...(options.args ?? [])], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: directory,
    env: {
      ...withoutOurNames(process.env),
      // Port 0: any that is free.
      WEIR_LISTEN: "127.0.0.1:0",
      WEIR_METRICS_LISTEN: "127.0.0.1:0",
      WEIR_DATA: join(directory, "data"),
      ...options.env,
    },
  });
  // A test program that is killed itself must not leave servers behind.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let written = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (written += text));
  }
  let failure: Error | undefined;
  child.once("error", (error) => (failure = error));

  const stop = async () => {
    await end(child, exited);
    process.off("exit", kill);
    await rm(directory, { recursive: true, force: true });
  };
  const alive = () => {
    if (failure) throw failure;
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
  };
  try {
    const url = await until("its address", () => (alive(), find(written, /^Listening on (http:\S+)/m)));
    await until("readiness", async () => (alive(), await isReady(url)));
    const setupLink = await until("its set-up link", () => (alive(), find(written, /^Set up Weir at (\S+)/m)));
    return { url, setupLink, output: () => written, stop };
  } catch (error) {
    await stop();
    throw new Error(`weir did not start: ${(error as Error).message}\n${written}`);
  }
}

function find(text: string, pattern: RegExp): string | undefined {
  return text.match(pattern)?.[1];
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/_readyz`)).ok;
  } catch {
    // Not listening yet.
    return false;
  }
}

/** Asks until there is an answer. */
async function until<T>(what: string, ask: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + START_LIMIT_MS;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > deadline) throw new Error(`no ${what} after ${START_LIMIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function end(child: ChildProcess, exited: Promise<void>): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.pid) {
    child.kill("SIGTERM");
    const killer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
    await exited;
    clearTimeout(killer);
  }
}

/** Names of the build, which the server would take for unknown settings. */
function withoutOurNames(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("WEIR_")));
}
