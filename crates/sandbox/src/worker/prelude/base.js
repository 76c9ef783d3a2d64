// What every script finds: console, text and bytes, URLs. `native` is what the child
// offers; `shared` is handed from one file of the prelude to the next. Neither is
// reachable from a script. What the host relies on is kept in constants here, before
// a script could change it.
(function (native, shared) {
  'use strict';

  const { stringify, parse } = JSON;
  const isArray = Array.isArray;
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  const isObject = (value) => typeof value === 'object' && value !== null;
  Object.assign(shared, { stringify, parse, isArray, isObject, define });

  // Text must not become code.
  const refused = () => {
    throw new EvalError('code cannot be made from text in a plugin');
  };
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (const kind of kinds) {
    const prototype = Object.getPrototypeOf(kind);
    const stub = function Function() {
      refused();
    };
    Object.defineProperty(stub, 'prototype', { value: prototype, writable: false });
    Object.defineProperty(prototype, 'constructor', { value: stub, writable: false, configurable: false });
    if (kind === kinds[0]) define('Function', stub);
  }
  for (const name of ['eval', 'Atomics', 'SharedArrayBuffer', 'performance', 'setTimeout', 'setInterval']) {
    delete globalThis[name];
  }

  const shown = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return String(value.stack ? `${value}\n${value.stack}` : value);
    if (isObject(value)) {
      try {
        return stringify(value) ?? String(value);
      } catch (error) {
        return '[object that cannot be shown]';
      }
    }
    return String(value);
  };
  const console = {};
  for (const level of ['debug', 'log', 'info', 'warn', 'error']) {
    console[level] = (...values) => {
      let text = '';
      for (let i = 0; i < values.length; i++) text += (i ? ' ' : '') + shown(values[i]);
      native.log(level, text);
    };
  }
  console.trace = console.debug;
  define('console', console);

  class RetryError extends Error {
    constructor(message) {
      super(message);
      this.name = 'RetryError';
    }
  }
  shared.RetryError = RetryError;
  define('RetryError', RetryError);

  const encodings = {
    utf8: 'utf8', 'utf-8': 'utf8', hex: 'hex', base64: 'base64', base64url: 'base64url',
    latin1: 'latin1', binary: 'latin1', ascii: 'latin1',
  };
  const encoding = (name = 'utf8') => {
    const known = encodings[String(name).toLowerCase()];
    if (known === undefined) throw new TypeError(`unknown encoding: ${name}`);
    return known;
  };
  const viewed = (value) => {
    if (value instanceof Uint8Array) return value;
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return undefined;
  };
  const bytes = (value, name) =>
    typeof value === 'string' ? native.encode(value, encoding(name)) : viewed(value);
  shared.bytes = (value, name) => {
    const found = bytes(value, name);
    if (found === undefined) throw new TypeError('text or bytes are needed');
    return found;
  };

  class Buffer extends Uint8Array {
    static from(value, name) {
      const found = bytes(value, name);
      if (found !== undefined) return new Buffer(found);
      if (isObject(value) && value.type === 'Buffer' && isArray(value.data)) return new Buffer(value.data);
      if (isArray(value)) return new Buffer(value);
      throw new TypeError('Buffer.from takes text, bytes or an array');
    }
    static alloc(length) {
      return new Buffer(length);
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static byteLength(value, name) {
      return shared.bytes(value, name).length;
    }
    static concat(list) {
      let length = 0;
      for (const part of list) length += part.length;
      const joined = new Buffer(length);
      let at = 0;
      for (const part of list) {
        joined.set(part, at);
        at += part.length;
      }
      return joined;
    }
    toString(name, start = 0, end = this.length) {
      return native.decode(start === 0 && end === this.length ? this : this.subarray(start, end), encoding(name));
    }
    toJSON() {
      return { type: 'Buffer', data: Array.from(this) };
    }
    equals(other) {
      return native.decode(this, 'hex') === native.decode(shared.bytes(other), 'hex');
    }
  }
  shared.Buffer = Buffer;
  define('Buffer', Buffer);

  define('TextEncoder', class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(text = '') {
      return native.encode(String(text), 'utf8');
    }
  });
  define('TextDecoder', class TextDecoder {
    constructor(label = 'utf-8') {
      if (encodings[String(label).toLowerCase()] !== 'utf8') throw new RangeError(`unknown encoding: ${label}`);
    }
    get encoding() {
      return 'utf-8';
    }
    decode(value) {
      return value === undefined ? '' : native.decode(shared.bytes(value), 'utf8');
    }
  });
  const invalid = () => new TypeError('the text has characters that this encoding has not');
  define('btoa', (value) => {
    const text = String(value);
    for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 255) throw invalid();
    return native.decode(native.encode(text, 'latin1'), 'base64');
  });
  define('atob', (value) => native.decode(native.encode(String(value), 'base64'), 'latin1'));

  const copy = (value, seen) => {
    if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError('functions cannot be cloned');
    if (!isObject(value)) return value;
    if (seen.has(value)) return seen.get(value);
    let made;
    const keep = (fresh) => (seen.set(value, fresh), (made = fresh));
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Map) {
      keep(new Map());
      for (const [key, item] of value) made.set(copy(key, seen), copy(item, seen));
    } else if (value instanceof Set) {
      keep(new Set());
      for (const item of value) made.add(copy(item, seen));
    } else if (viewed(value)) {
      return keep(viewed(value).slice());
    } else {
      keep(isArray(value) ? [] : {});
      for (const key of Object.keys(value)) made[key] = copy(value[key], seen);
    }
    return made;
  };
  define('structuredClone', (value) => copy(value, new Map()));
});
