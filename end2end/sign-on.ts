// What tests of single sign-on need: name servers, an issuer of OpenID Connect, an identity
// provider of SAML, and a Weir that uses them. Specs take their `test` from here, each file
// its own:
//
//   const test = withProviders();
//   test("a sign-in", async ({ page, server, names }) => {

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import type { Browser, Locator, Page } from "@playwright/test";
import type { Server } from "./server";
import { alive, test as base, expect } from "./tests/helpers";

const run = promisify(execFile);

const START = { timeout: 30_000, intervals: [50] };

/** Answers questions for TXT records. */
export class NameServer {
  /** The text at each name. */
  readonly records = new Map<string, string>();

  private constructor(private readonly socket: Socket) {}

  static async open(): Promise<NameServer> {
    const socket = createSocket("udp4");
    const names = new NameServer(socket);
    socket.on("message", (question, { address, port }) => socket.send(names.answer(question), port, address));
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    return names;
  }

  get address(): string {
    return `127.0.0.1:${this.socket.address().port}`;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.socket.close(resolve));
  }

  /** The answer to a message with one question (RFC 1035). */
  private answer(message: Buffer): Buffer {
    const labels: string[] = [];
    let at = 12;
    for (let length = message[at]!; length > 0; length = message[at]!) {
      labels.push(message.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    const text = this.records.get(labels.join(".").toLowerCase());
    const header = Buffer.from(message.subarray(0, 12));
    // A response, with recursion, without an error: one question, and one answer or none.
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(text === undefined ? 0 : 1, 6);
    header.writeUInt32BE(0, 8);
    // Behind the name are its type and class, with two bytes each.
    const parts = [header, message.subarray(12, at + 5)];
    if (text !== undefined) {
      // The name of the question, TXT, IN, for a minute.
      const record = Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, text.length + 1, text.length]);
      parts.push(record, Buffer.from(text, "latin1"));
    }
    return Buffer.concat(parts);
  }
}

/** A program that the test has started. */
class Program {
  /** What it has written so far, for messages of failing tests. */
  output = "";
  private readonly child: ChildProcess;
  private readonly ended: Promise<void>;
  private readonly kill = () => this.child.kill("SIGKILL");

  constructor(command: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    // A test program that is killed itself must not leave others behind.
    process.once("exit", this.kill);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (this.output += text));
    }
    child.once("error", (error) => (this.output += error.message));
    this.ended = new Promise((resolve) => child.once("close", () => resolve()));
  }

  /** Waits until it has written this, and returns the first group. */
  async wrote(pattern: RegExp): Promise<string> {
    await expect(() => {
      if (this.child.exitCode !== null) throw new Error(`it ended with ${this.child.exitCode}:\n${this.output}`);
      expect(this.output).toMatch(pattern);
    }).toPass(START);
    return this.output.match(pattern)?.[1] ?? "";
  }

  async stop(): Promise<void> {
    this.child.kill("SIGTERM");
    await this.ended;
    process.off("exit", this.kill);
  }
}

async function answers(url: string, program: Program): Promise<void> {
  await expect(async () => {
    const answer = await fetch(url).catch(() => undefined);
    expect(answer?.ok, `${url}\n${program.output}`).toBe(true);
  }).toPass(START);
}

/** A port that is free now: programs name themselves to others before they listen. */
async function freePort(): Promise<number> {
  const tcp = createServer();
  await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
  const address = tcp.address();
  await new Promise((resolve) => tcp.close(resolve));
  if (!address || typeof address === "string") throw new Error("not listening");
  return address.port;
}

/** A Weir whose data stays when it stops: the operator works on it in between. */
export class KeptServer implements Server {
  readonly setupLink: string;

  private constructor(
    readonly url: string,
    private readonly directory: string,
    private readonly env: NodeJS.ProcessEnv,
    private program: Program,
  ) {
    this.setupLink = program.output.match(/^Set up Weir at (\S+)/m)?.[1] ?? "";
  }

  static async start(names: NameServer): Promise<KeptServer> {
    const directory = await mkdtemp(join(tmpdir(), "weir-test-"));
    const address = `127.0.0.1:${await freePort()}`;
    const others = Object.entries(process.env).filter(([name]) => !name.startsWith("WEIR_"));
    const env = {
      ...Object.fromEntries(others),
      WEIR_LISTEN: address,
      WEIR_METRICS_LISTEN: "127.0.0.1:0",
      WEIR_DATA: join(directory, "data"),
      WEIR_DNS_SERVERS: names.address,
      // Where the issuer is.
      WEIR_EGRESS_ALLOW: "127.0.0.1",
    };
    const program = serve(directory, env);
    await program.wrote(/^Set up Weir at (\S+)/m);
    const server = new KeptServer(`http://${address}`, directory, env, program);
    await answers(`${server.url}/_readyz`, program);
    return server;
  }

  output(): string {
    return this.program.output;
  }

  /** The path of a link that signs this user in, made as the guide says: while Weir is stopped. */
  async signInLink(email: string): Promise<string> {
    await this.program.stop();
    const { stdout } = await run(binary(), ["user", "sign-in-link", "--email", email], { cwd: this.directory, env: this.env });
    this.program = serve(this.directory, this.env);
    await answers(`${this.url}/_readyz`, this.program);
    const { origin, pathname, search } = new URL(stdout.trim());
    expect(origin).toBe(this.url);
    return pathname + search;
  }

  async stop(): Promise<void> {
    await this.program.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

function binary(): string {
  const path = process.env.WEIR_BIN;
  if (!path) throw new Error("WEIR_BIN must name the weir binary; scripts/test sets it");
  return path;
}

function serve(cwd: string, env: NodeJS.ProcessEnv): Program {
  return new Program(binary(), ["serve"], { cwd, env });
}

/** An issuer of OpenID Connect. It signs one user of `corp.example` in, without a form. */
export class Issuer {
  readonly clientId = "weir-client";
  readonly clientSecret = "hidden/client+secret%";

  private constructor(
    readonly url: string,
    private readonly program: Program,
  ) {}

  /** An issuer that sends browsers back to this address. */
  static async start(redirectUri: string, login: string): Promise<Issuer> {
    const address = `127.0.0.1:${await freePort()}`;
    const file = fileURLToPath(new URL("issuer.mjs", import.meta.url));
    const program = new Program(process.execPath, [file, "--listen", address, "--redirect-uri", redirectUri, "--login", login]);
    const issuer = new Issuer(`http://${address}`, program);
    await answers(`${issuer.url}/.well-known/openid-configuration`, program);
    return issuer;
  }

  async stop(): Promise<void> {
    await this.program.stop();
  }
}

/** An identity provider of SAML. It asks for an address, and confirms every one. */
export class IdentityProvider {
  private constructor(
    readonly url: string,
    /** What an administrator enters in Weir. */
    readonly settings: { entity_id: string; sign_in_url: string; certificate: string },
    private readonly program: Program,
  ) {}

  static async start(): Promise<IdentityProvider> {
    const file = fileURLToPath(new URL("idp.py", import.meta.url));
    const tools = process.env.WEIR_TOOLS;
    if (!tools) throw new Error("WEIR_TOOLS must name the installed tools; scripts/env sets it");
    const program = new Program(join(tools, "saml/bin/python"), ["-B", file]);
    const url = await program.wrote(/^Listening on (\S+)/m);
    return new IdentityProvider(url, await (await fetch(`${url}/settings`)).json(), program);
  }

  async stop(): Promise<void> {
    await this.program.stop();
  }
}

/** A page of a browser of its own. */
export async function visitor(browser: Browser, server: Server, scripts: boolean): Promise<Page> {
  const context = await browser.newContext({ baseURL: server.url, javaScriptEnabled: scripts });
  return context.newPage();
}

/** The first step of the sign-in page: the address. */
export async function enterAddress(page: Page, scripts: boolean, email: string): Promise<void> {
  await page.goto("/login");
  await alive(page, scripts);
  await page.getByLabel("E-mail address").fill(email);
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.waitForURL(/[?&]email=/);
  await alive(page, scripts);
}

/** The value beside a term of a list of facts. */
export function fact(page: Page, term: string): Locator {
  return page.locator(`xpath=//main//dt[normalize-space()="${term}"]/following-sibling::dd[1]`);
}

interface Place {
  names: NameServer;
  server: KeptServer;
}

export function withProviders() {
  return base.extend<{ server: KeptServer; names: NameServer }, { place: Place }>({
    place: [
      async ({}, use) => {
        const names = await NameServer.open();
        const server = await KeptServer.start(names);
        await use({ names, server });
        await server.stop();
        await names.close();
      },
      { scope: "worker" },
    ],
    server: async ({ place }, use) => use(place.server),
    names: async ({ place }, use) => use(place.names),
  });
}
