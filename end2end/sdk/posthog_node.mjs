// The driver of the Node library: reads a scenario from standard input, runs it,
// and prints a report. Both are described in drivers.py.

import { createInterface } from "node:readline";

import { PostHog } from "posthog-node";

import { repeat, until } from "./waiting.mjs";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const scenario = JSON.parse((await lines.next()).value);

let posthog;
let clients = 0;
let captured = 0;
let features;
const failures = [];

const make = {
  client({ options }) {
    const client = clients++;
    posthog = new PostHog(options.key ?? scenario.key, {
      host: scenario.url,
      // Beyond this number it drops the oldest ones.
      maxQueueSize: 10_000,
      historicalMigration: options.historical ?? false,
      ...("gzip" in options && { disableCompression: !options.gzip }),
      ...(options.secret && { personalApiKey: options.secret }),
      ...(options.flush_at && { flushAt: options.flush_at }),
      ...(options.patient && { fetchRetryCount: 60, fetchRetryDelay: 500 }),
    });
    posthog.on("error", (error) => {
      const text = String(error);
      // Protocol v1 has the status in its words only.
      const status = text.match(/HTTP (\d{3})/)?.[1];
      failures.push({ client, status: error.status ?? (status ? Number(status) : null), text });
    });
  },
  capture({ event, distinct_id, properties, groups, uuid, timestamp }) {
    posthog.capture({
      event,
      properties,
      groups,
      uuid,
      ...(distinct_id && { distinctId: distinct_id }),
      ...(timestamp && { timestamp: new Date(timestamp) }),
    });
  },
  identify({ distinct_id, set }) {
    posthog.identify({ distinctId: distinct_id, properties: set });
  },
  set_once({ distinct_id, set_once }) {
    posthog.setPersonProperties({ distinctId: distinct_id, propertiesOnce: set_once });
  },
  alias({ previous, main }) {
    posthog.alias({ distinctId: previous, alias: main });
  },
  group({ group_type, key, set }) {
    posthog.groupIdentify({ groupType: group_type, groupKey: key, properties: set });
  },
  // The failure is reported as an error as well.
  flush: () => posthog.flush().catch(() => {}),
  given_up: () => until(() => failures.length > 0, "batch that was given up"),
  async pause({ why }) {
    process.stdout.write(`${JSON.stringify({ paused: why })}\n`);
    await lines.next();
  },
  async features() {
    await posthog.reloadFeatureFlags();
    features = {
      flag: await posthog.isFeatureEnabled("new-page", "user-1"),
      flags: await posthog.getAllFlags("user-1"),
      payload: await posthog.getFeatureFlagPayload("new-page", "user-1"),
      remote_config: await posthog.getRemoteConfigPayload("new-page"),
    };
  },
  shutdown: () => posthog.shutdown(60_000),
  stream({ event, distinct_ids, pause }) {
    const capture = () => {
      const distinct_id = distinct_ids[captured % distinct_ids.length];
      const properties = { n: captured++, captured_at: Date.now() / 1000 };
      make.capture({ event, distinct_id, properties });
    };
    return repeat(capture, pause, lines.next());
  },
};

for (const { call, ...values } of scenario.calls) {
  await make[call](values);
}
// Exit once it is written, because standard input stays open.
const report = JSON.stringify({ captured, failures, features });
process.stdout.write(`${report}\n`, () => process.exit(0));
