// Finds what a script exports, and calls it as the contract says (PLG-25).
(function (native, shared) {
  'use strict';

  const { isObject, isArray, stringify, headersOf, makeMeta } = shared;
  const keys = Object.keys;
  const NativePromise = Promise;
  const functions = ['setupPlugin', 'teardownPlugin', 'processEvent', 'processEventBatch', 'onEvent', 'composeWebhook', 'exportEvents', 'onSnapshot', 'onAction'];
  const tasks = ['runEveryMinute', 'runEveryHour', 'runEveryDay'];
  const mirrored = ['$set', '$set_once'];

  shared.open = (given, places, globals) => {
    const filled = places.filter((place) => (isObject(place) || typeof place === 'function') && keys(place).length > 0);
    const look = (name) => {
      if (filled.length === 0) return globals[name];
      for (const place of filled) if (place[name] !== undefined && place[name] !== null) return place[name];
      return undefined;
    };
    const found = {};
    for (const name of [...functions, ...tasks]) {
      const value = look(name);
      if (typeof value === 'function') found[name] = value;
    }
    const jobs = {};
    const declared = look('jobs');
    if (isObject(declared)) for (const name of keys(declared)) if (typeof declared[name] === 'function') jobs[name] = declared[name];
    const metrics = {};
    const measured = look('metrics');
    if (isObject(measured)) for (const name of keys(measured)) if (['sum', 'min', 'max'].includes(measured[name])) metrics[name] = measured[name];

    const meta = makeMeta(given, keys(jobs), metrics);
    const { setupPlugin, teardownPlugin, processEvent, processEventBatch, onEvent, composeWebhook, exportEvents } = found;

    const single = processEvent ?? (processEventBatch && (async (event) => {
      const events = await processEventBatch([event], meta);
      return isArray(events) ? events[0] : events;
    }));
    // A result that is waited for is always a promise of the engine's own.
    const settled = (value) =>
      isObject(value) && !(value instanceof NativePromise) && typeof value.then === 'function'
        ? new NativePromise((resolve) => resolve(value))
        : value;
    const missing = (name) => {
      throw new TypeError(`the plugin has no function ${name}`);
    };

    let before = [undefined, undefined];
    return {
      hasSetup: setupPlugin !== undefined,
      hasTeardown: teardownPlugin !== undefined,
      setup: () => settled(setupPlugin(meta)),
      teardown: () => settled(teardownPlugin(meta)),

      // `$set` and `$set_once` are seen at both places.
      begin: (event) => {
        const { properties } = event;
        for (let i = 0; i < 2; i++) {
          const inside = isObject(properties) ? properties[mirrored[i]] : undefined;
          before[i] = inside;
          if (inside !== undefined && event[mirrored[i]] === undefined) event[mirrored[i]] = inside;
        }
        if (single === undefined) missing('processEvent');
        return settled(single(event, meta));
      },
      // What was put at the upper place moves into the properties. What was there
      // before and was taken out of the properties does not come back.
      end: (event) => {
        if (event === undefined || event === null) return null;
        if (!isObject(event)) return event;
        for (let i = 0; i < 2; i++) {
          const name = mirrored[i];
          const above = event[name];
          if (above === undefined) continue;
          delete event[name];
          const { properties } = event;
          if (above === before[i] || !isObject(above) || !isObject(properties)) continue;
          properties[name] = isObject(properties[name]) ? { ...properties[name], ...above } : above;
        }
        return event;
      },

      onEvent: (event) => settled((onEvent ?? missing('onEvent'))(event, meta)),
      exportEvents: (events) => settled((exportEvents ?? missing('exportEvents'))(events, meta)),
      composeWebhook: (event) => {
        if (composeWebhook === undefined) missing('composeWebhook');
        if (typeof event.timestamp === 'string') event.timestamp = new Date(event.timestamp);
        return settled(composeWebhook(event, meta));
      },
      webhook: (wanted) => {
        if (wanted === undefined || wanted === null) return null;
        if (!isObject(wanted) || typeof wanted.url !== 'string') return false;
        const headers = headersOf(wanted.headers);
        const { body } = wanted;
        const text = body === undefined || body === null ? null : typeof body === 'string' ? body : stringify(body);
        if (keys(headers).length === 0) headers['content-type'] = 'application/json';
        return { url: wanted.url, method: String(wanted.method ?? 'POST').toUpperCase(), headers, body: text };
      },

      task: (name) => settled((found[name] ?? missing(name))(meta)),
      job: (name, payload) => settled((Object.hasOwn(jobs, name) ? jobs[name] : missing(`jobs.${name}`))(payload, meta)),

      inspect: () => {
        const methods = functions.filter((name) => found[name]);
        if (single !== undefined && !methods.includes('processEvent')) methods.push('processEvent');
        return { methods, scheduled_tasks: tasks.filter((name) => found[name]), jobs: keys(jobs), metrics };
      },
    };
  };
});
