// A realistic instance: a few of everything, and later many persons.

import { type Browser } from "@playwright/test";
import { startServer, type Server } from "../server";
import { alive, call, enter, newKey, projectKey } from "../tests/helpers";
import { ask, cookieOf } from "./requests";
import { EFFORT, pause, say } from "./effort";
import type { State } from "./phone";

export interface Instance {
  server: Server;
  state: State;
  /** The cookies of the signed-in user, as a header. */
  cookie: string;
  project: string;
  organization: string;
  /** What events are sent with. */
  key: string;
}

/** Things of a kind, where a page lists some. */
const SOME = 12;
const PASSWORD = "plum-otter-violin-93";

export async function begin(): Promise<Server> {
  return startServer({ env: { WEIR_RATE_PER_MINUTE: "0", WEIR_RATE_PER_HOUR: "0" } });
}

export async function fill(browser: Browser, server: Server): Promise<Instance> {
  const context = await browser.newContext({ baseURL: server.url });
  const page = await context.newPage();
  await enter(page, server, true);
  await alive(page, true);
  const project = /projects\/(\d+)/.exec(page.url())![1]!;
  const key = await projectKey(page);
  const api = await newKey(page, true, "Measuring");
  for (const label of ["Reports", "Backup"]) await newKey(page, true, label);
  const state = await context.storageState();
  await context.close();

  const [{ id: organization }] = (await call(server, api, "GET", "/api/organizations/")).results;
  const root = `/api/organizations/${organization}`;
  const people = async (name: string) =>
    call(server, api, "POST", `${root}/invites/bulk/`, some((at) => ({ target_email: `${name}-${at}@mail.example`, first_name: "Grace" })));
  for (const { token } of await people("member")) {
    const answer = await fetch(`${server.url}/api/signup/${token}/`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ first_name: "Grace", password: PASSWORD }),
    });
    if (!answer.ok) throw new Error(`an invite was answered with ${answer.status}`);
  }
  await people("guest");
  for (const at of some((at) => at)) {
    // No server listens at the destination.
    const config = { bucket_name: "events", region: "eu-west-1", prefix: "weir/", aws_access_key_id: "AKIAEXAMPLE", aws_secret_access_key: "example" };
    const destination = { type: "S3", config };
    await call(server, api, "POST", `${root}/batch_exports/`, { name: `Export ${at}`, interval: "day", paused: true, destination });
  }
  for (const [at, entry] of ["bot-filter", "location", "user-agent"].entries()) {
    const plugin = await call(server, api, "POST", `${root}/pipeline_destinations/`, { url: `inline:${entry}` });
    const config = { plugin: plugin.id, order: at + 1, enabled: true, config: {} };
    await call(server, api, "POST", `/api/projects/${project}/pipeline_transformation_configs/`, config);
  }
  const instance = { server, state, cookie: cookieOf(state), project, organization, key };
  await batch(instance, Array.from({ length: 300 }, (_, at) => event(`page viewed ${at % 20}`, `reader-${at % 60}`)));
  return instance;
}

function some<T>(make: (at: number) => T): T[] {
  return Array.from({ length: SOME }, (_, at) => make(at));
}

/** As a browser sends one, more or less. */
export function event(name: string, distinct_id: string): object {
  return {
    event: name,
    distinct_id,
    properties: {
      $lib: "web",
      $lib_version: "1.449.2",
      $current_url: "https://shop.example/prices?from=letter",
      $host: "shop.example",
      $browser: "Chrome",
      $os: "Android",
      $screen_width: 360,
      plan: "pro",
      seats: 12,
      $set: { email: `${distinct_id}@mail.example` },
    },
  };
}

export async function batch({ server, key }: Instance, events: object[]): Promise<void> {
  const answer = await fetch(`${server.url}/batch/`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ api_key: key, batch: events }),
  });
  if (!answer.ok) throw new Error(`events were answered with ${answer.status}`);
}

/** A page of the list of persons that is full once all of them are there. */
export function lastPersons({ project }: Instance): string {
  return `/projects/${project}/persons?offset=${EFFORT.persons - 50}`;
}

export async function manyPersons(instance: Instance): Promise<void> {
  say(`${EFFORT.persons} persons`);
  for (let first = 0; first < EFFORT.persons; first += 500) {
    await batch(instance, Array.from({ length: 500 }, (_, at) => event("signed up", `person-${first + at}`)));
  }
  const person = new RegExp(`href="/projects/${instance.project}/persons/`, "g");
  const deadline = Date.now() + 240_000;
  for (;;) {
    const { text } = await ask(instance.server.url + lastPersons(instance), instance.cookie);
    if ((text.match(person)?.length ?? 0) >= 50) return;
    if (Date.now() > deadline) throw new Error(`${EFFORT.persons} persons are not there in time`);
    await pause(500);
  }
}
