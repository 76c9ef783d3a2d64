// What a script asks of the host, and `meta`. Every answer comes as text, later.
(function (native, shared) {
  'use strict';

  const { stringify, parse, isArray, isObject, define, Buffer } = shared;
  const text = (value) => String(value);
  const json = (value) => (value === undefined ? null : value);

  const waiting = new Map();
  const [wait, find, forget] = [waiting.set, waiting.get, waiting.delete].map((f) => f.bind(waiting));
  const NativePromise = Promise;
  const call = (name, content) =>
    new NativePromise((resolve, reject) => {
      wait(native.call(stringify({ [name]: content })), { resolve, reject });
    });
  const tell = (name, content) => native.tell(stringify({ [name]: content }));

  // The child calls this when an answer has come.
  shared.answer = (id, ok, answer) => {
    const found = find(id);
    if (found === undefined) return;
    forget(id);
    if (ok) found.resolve(parse(answer));
    else found.reject(new Error(answer));
  };

  const headersOf = (given) => {
    const headers = {};
    if (isObject(given)) {
      const pairs = typeof given[Symbol.iterator] === 'function' ? given : Object.entries(given);
      for (const [name, value] of pairs) headers[text(name).toLowerCase()] = text(value);
    }
    return headers;
  };
  shared.headersOf = headersOf;

  const fetch = async (address, options = {}) => {
    const headers = headersOf(options.headers);
    let body = options.body ?? null;
    if (body !== null && typeof body !== 'string') {
      if (body instanceof URLSearchParams) headers['content-type'] ??= 'application/x-www-form-urlencoded';
      body = body instanceof Uint8Array ? native.decode(body, 'utf8') : text(body);
    }
    const method = text(options.method ?? 'GET').toUpperCase();
    const answer = await call('fetch', { url: text(address?.url ?? address), method, headers, body });
    const content = text(answer.body ?? '');
    const got = headersOf(answer.headers);
    return {
      status: answer.status,
      ok: answer.status >= 200 && answer.status < 300,
      statusText: text(answer.status_text ?? ''),
      url: text(address?.url ?? address),
      headers: {
        get: (name) => got[text(name).toLowerCase()] ?? null,
        has: (name) => text(name).toLowerCase() in got,
        entries: () => Object.entries(got)[Symbol.iterator](),
      },
      text: async () => content,
      json: async () => parse(content),
      arrayBuffer: async () => native.encode(content, 'utf8').buffer,
      buffer: async () => Buffer.from(content),
    };
  };
  shared.fetch = fetch;
  define('fetch', fetch);

  const noApi = async () => {
    throw new Error('the API cannot be called from a plugin here; use posthog.capture');
  };
  const units = {
    millisecond: 1, second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000,
    week: 604_800_000, month: 2_592_000_000, quarter: 7_776_000_000, year: 31_536_000_000,
  };
  const job = (name) => (payload) => {
    const enqueue = (after_ms) => call('job_enqueue', { name, payload: json(payload ?? {}), after_ms });
    return {
      runNow: () => enqueue(0),
      runIn: async (amount, unit) => {
        const size = units[text(unit).replace(/s$/, '')];
        if (size === undefined) throw new TypeError(`unknown unit of time: ${unit}`);
        if (!(amount >= 0)) throw new TypeError('a job runs now or later');
        return enqueue(Number(amount) * size);
      },
      runAt: async (date) => {
        const at = new Date(date).getTime();
        if (Number.isNaN(at)) throw new TypeError('runAt takes a date');
        return enqueue(Math.max(0, at - Date.now()));
      },
    };
  };
  const metric = (name, kind) => {
    const change = (op) => (value) => tell('metric', { name, op, value: Number(value) });
    if (kind === 'sum') return { increment: change('increment') };
    return { [kind]: change(kind) };
  };

  // `iso_code` is `isoCode` in what published plugins read. Names are by language.
  const camel = (value) => {
    if (!isObject(value)) return value;
    if (isArray(value)) return value.map(camel);
    const made = {};
    for (const [key, item] of Object.entries(value)) {
      const name = key.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
      made[name] = key === 'names' ? item : camel(item);
    }
    return made;
  };

  shared.makeMeta = (given, jobs, metrics) => {
    const attachments = {};
    for (const [name, file] of Object.entries(given.attachments)) {
      attachments[name] = { content_type: file.content_type, file_name: file.file_name, contents: Buffer.from(file.contents, 'base64') };
    }
    const get = (kind) => async (key, fallback) => {
      const found = await call(kind, { key: text(key) });
      return found === null || found === undefined ? fallback : found;
    };
    const list = (values) => (Array.isArray(values) ? values : [values]).map(json);
    const meta = {
      config: given.config,
      attachments,
      global: {},
      cache: {
        get: get('cache_get'),
        set: (key, value, ttl) => call('cache_set', { key: text(key), value: json(value), ttl: ttl ?? null }),
        incr: (key) => call('cache_incr', { key: text(key) }),
        expire: (key, ttl) => call('cache_expire', { key: text(key), ttl: Number(ttl) }),
        lpush: async (key, values) => {
          const items = list(values);
          if (items.length > 1000) throw new RangeError('lpush takes at most 1000 values');
          return call('cache_lpush', { key: text(key), values: items });
        },
        lrange: (key, start, end) => call('cache_lrange', { key: text(key), start: Math.trunc(start), end: Math.trunc(end) }),
        llen: (key) => call('cache_llen', { key: text(key) }),
        lpop: (key, count = 1) => call('cache_lpop', { key: text(key), count: Math.trunc(count) }),
        lrem: (key, count, value) => call('cache_lrem', { key: text(key), count: Math.trunc(count), value: json(value) }),
      },
      storage: {
        get: get('storage_get'),
        set: (key, value) =>
          value === undefined ? call('storage_del', { key: text(key) }) : call('storage_set', { key: text(key), value }),
        del: (key) => call('storage_del', { key: text(key) }),
      },
      geoip: { locate: async (ip) => camel(await call('geoip', { ip: text(ip) })) },
      jobs: {},
      metrics: {},
      utils: {
        cursor: {
          init: (key, value) => call('cursor_init', { key: text(key), value: Number(value ?? 0) }),
          increment: (key, by) => call('cursor_increment', { key: text(key), by: Number(by ?? 1) }),
        },
      },
    };
    for (const name of jobs) meta.jobs[name] = job(name);
    for (const [name, kind] of Object.entries(metrics)) meta.metrics[name] = metric(name, kind);
    define('posthog', {
      capture: (event, properties = {}) => {
        const { distinct_id = given.plugin, timestamp = null, ...rest } = properties;
        return call('capture', {
          event: text(event),
          distinct_id: text(distinct_id),
          timestamp: timestamp === null ? null : timestamp instanceof Date ? timestamp.toISOString() : text(timestamp),
          properties: rest,
        });
      },
      api: { get: noApi, post: noApi, put: noApi, delete: noApi },
    });
    return meta;
  };
});
