// Marks the first event with a name: in the project, and of each distinct id.

export function setupPlugin({ config, global }) {
    global.names = config.events
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '')
}

// Undefined where the answer is unknown, because the storage is full: an event
// without the mark is better than a plugin that fails with every event.
async function isFirst(key, uuid, { global, storage }) {
    try {
        const seen = await storage.get(key, null)
        if (seen === null) {
            await storage.set(key, uuid)
            return true
        }
        // The same event may come again after a fault.
        return seen === uuid
    } catch (error) {
        if (!global.hasReported) {
            global.hasReported = true
            console.warn(`Events are not marked that cannot be remembered: ${error}`)
        }
        return undefined
    }
}

export async function processEvent(event, meta) {
    if (!meta.global.names.includes(event.event) || !event.properties) {
        return event
    }
    const key = `first:${event.event}`
    event.properties.is_event_first_ever = await isFirst(key, event.uuid, meta)
    event.properties.is_event_first_for_user = await isFirst(
        `${key}:${event.distinct_id}`,
        event.uuid,
        meta
    )
    return event
}
