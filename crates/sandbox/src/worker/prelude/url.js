// URL and URLSearchParams. What a URL is made of is decided by the child (`native`).
(function (native, shared) {
  'use strict';

  const { define, isArray, isObject } = shared;

  class URLSearchParams {
    #pairs = [];
    #changed = () => {};

    constructor(from = '', changed) {
      if (changed) this.#changed = changed;
      if (typeof from === 'string') this.#read(from);
      else if (isObject(from)) {
        const pairs = typeof from[Symbol.iterator] === 'function' ? from : Object.entries(from);
        for (const [name, value] of pairs) this.#pairs.push([String(name), String(value)]);
      } else this.#read(String(from));
    }
    #read(text) {
      const flat = native.formParse(text.startsWith('?') ? text.slice(1) : text);
      for (let i = 0; i < flat.length; i += 2) this.#pairs.push([flat[i], flat[i + 1]]);
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#pairs.push([String(name), String(value)]);
      this.#changed(this);
    }
    delete(name, value) {
      this.#pairs = this.#pairs.filter((pair) => pair[0] !== String(name) || (value !== undefined && pair[1] !== String(value)));
      this.#changed(this);
    }
    get(name) {
      const found = this.#pairs.find((pair) => pair[0] === String(name));
      return found ? found[1] : null;
    }
    getAll(name) {
      return this.#pairs.filter((pair) => pair[0] === String(name)).map((pair) => pair[1]);
    }
    has(name, value) {
      return this.#pairs.some((pair) => pair[0] === String(name) && (value === undefined || pair[1] === String(value)));
    }
    set(name, value) {
      const at = this.#pairs.findIndex((pair) => pair[0] === String(name));
      if (at < 0) return this.append(name, value);
      this.#pairs = this.#pairs.filter((pair, i) => i <= at || pair[0] !== String(name));
      this.#pairs[at] = [String(name), String(value)];
      this.#changed(this);
    }
    sort() {
      this.#pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      this.#changed(this);
    }
    forEach(callback, self) {
      for (const [name, value] of this.#pairs) callback.call(self, value, name, this);
    }
    *entries() {
      for (const [name, value] of this.#pairs) yield [name, value];
    }
    *keys() {
      for (const [name] of this.#pairs) yield name;
    }
    *values() {
      for (const [, value] of this.#pairs) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      const flat = [];
      for (const [name, value] of this.#pairs) flat.push(name, value);
      return native.formWrite(flat);
    }
  }
  define('URLSearchParams', URLSearchParams);

  const parts = ['href', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash', 'origin'];

  class URL {
    #parts;
    #params;

    constructor(text, base) {
      const found = native.urlParse(String(text), base === undefined ? undefined : String(base));
      if (!isArray(found)) throw new TypeError(`Invalid URL: ${String(text).slice(0, 200)}`);
      this.#parts = found;
    }
    static canParse(text, base) {
      return isArray(native.urlParse(String(text), base === undefined ? undefined : String(base)));
    }
    static of(url, i) {
      return url.#parts[i];
    }
    static change(url, name, value) {
      const found = native.urlSet(url.#parts[0], name, String(value));
      if (isArray(found)) url.#parts = found;
      else if (name === 'href') throw new TypeError(`Invalid URL: ${String(value).slice(0, 200)}`);
      if (name === 'href' || name === 'search') url.#params = undefined;
    }
    get searchParams() {
      this.#params ??= new URLSearchParams(this.#parts[8], (changed) => {
        const text = changed.toString();
        const found = native.urlSet(this.#parts[0], 'search', text);
        if (isArray(found)) this.#parts = found;
      });
      return this.#params;
    }
    toString() {
      return this.#parts[0];
    }
    toJSON() {
      return this.#parts[0];
    }
  }
  const { of, change } = URL;
  delete URL.of;
  delete URL.change;
  for (let i = 0; i < parts.length; i++) {
    const name = parts[i];
    Object.defineProperty(URL.prototype, name, {
      get() {
        return of(this, i);
      },
      set: name === 'origin' ? undefined : function (value) {
        change(this, name, value);
      },
      enumerable: true,
      configurable: true,
    });
  }
  define('URL', URL);
});
