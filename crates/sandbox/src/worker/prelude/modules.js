// The modules that a script may import or require. There are no others.
(function (native, shared) {
  'use strict';

  const { define, Buffer, bytes, RetryError, fetch } = shared;

  const algorithm = (name) => {
    const known = String(name).toLowerCase().replace('-', '');
    if (!['md5', 'sha1', 'sha256', 'sha512'].includes(known)) throw new Error(`unknown digest: ${name}`);
    return known;
  };
  const hashing = (finish) => {
    const parts = [];
    const hash = {
      update: (data, encoding) => {
        parts.push(bytes(data, encoding));
        return hash;
      },
      digest: (encoding) => {
        const sum = new Buffer(finish(Buffer.concat(parts)));
        return encoding === undefined || encoding === 'buffer' ? sum : sum.toString(encoding);
      },
    };
    return hash;
  };
  const crypto = {
    createHash: (name) => {
      const known = algorithm(name);
      return hashing((data) => native.hash(known, data));
    },
    createHmac: (name, key) => {
      const known = algorithm(name);
      const secret = bytes(key);
      return hashing((data) => native.hmac(known, secret, data));
    },
    randomUUID: () => native.uuid(),
    randomBytes: (length) => new Buffer(native.random(Math.trunc(length))),
  };
  define('crypto', { randomUUID: crypto.randomUUID });

  const url = {
    URL,
    URLSearchParams,
    parse: (text, query = false) => {
      const empty = { protocol: null, auth: null, host: null, port: null, hostname: null, hash: null, search: null, query: null, pathname: null, path: null, href: String(text) };
      let found;
      try {
        found = new URL(text);
      } catch (error) {
        return empty;
      }
      const search = found.search === '' ? null : found.search;
      const plain = search === null ? null : search.slice(1);
      return {
        protocol: found.protocol,
        auth: found.username ? found.username + (found.password ? `:${found.password}` : '') : null,
        host: found.host,
        port: found.port || null,
        hostname: found.hostname,
        hash: found.hash || null,
        search,
        query: query ? Object.fromEntries(found.searchParams) : plain,
        pathname: found.pathname,
        path: found.pathname + (search ?? ''),
        href: found.href,
      };
    },
  };

  // Collects until there is enough or it has waited long enough. There are no timers:
  // both are looked at when something is added.
  const createBuffer = ({ limit = 1024 * 1024, timeoutSeconds = 600, onFlush = () => {} } = {}) => {
    let [items, points, since] = [[], 0, 0];
    const buffer = {
      add: async (item, size = 1) => {
        if (items.length > 0 && (points + size > limit || Date.now() - since >= timeoutSeconds * 1000)) await buffer.flush();
        if (items.length === 0) since = Date.now();
        items.push(item);
        points += size;
      },
      flush: async () => {
        const all = items;
        [items, points] = [[], 0];
        if (all.length > 0) await onFlush(all, {});
      },
    };
    return buffer;
  };

  const known = {
    '@posthog/plugin-scaffold': { RetryError },
    '@posthog/plugin-contrib': { createBuffer, RetryError },
    crypto,
    url,
    'node-fetch': Object.assign((...given) => fetch(...given), { default: fetch }),
  };
  known['node-fetch'].default = known['node-fetch'];
  const require = (name) => {
    const plain = String(name).replace(/^node:/, '');
    if (!Object.hasOwn(known, plain)) {
      throw new Error(`the module "${name}" cannot be used in a plugin; there are: ${Object.keys(known).join(', ')}`);
    }
    return known[plain];
  };
  define('require', require);
});
