// Copies parameters of the query of a URL into properties.

function decoded(text) {
    try {
        return decodeURIComponent(text.replace(/\+/g, ' '))
    } catch {
        // What is no valid encoding is taken as it stands.
        return text
    }
}

function isYes(value) {
    return value === 'Yes'
}

export function setupPlugin({ config, global }) {
    const ignoresCase = isYes(config.ignoreCase)
    const names = config.parameters.split(',').map((name) => name.trim())
    global.names = new Map(
        names
            .filter((name) => name !== '')
            .map((name) => [ignoresCase ? name.toLowerCase() : name, name])
    )
    global.ignoresCase = ignoresCase
    global.urlProperty = config.urlProperty || '$current_url'
    global.prefix = config.prefix || ''
    global.setsPerson = isYes(config.setPerson)
    global.setsInitial = isYes(config.setInitial)
}

export function processEvent(event, { global }) {
    const url = event.properties && event.properties[global.urlProperty]
    if (typeof url !== 'string' || !url.includes('?')) {
        return event
    }
    const query = url.slice(url.indexOf('?') + 1).split('#')[0]
    for (const pair of query.split('&')) {
        const cut = pair.indexOf('=')
        if (cut < 0) {
            continue
        }
        const sent = decoded(pair.slice(0, cut))
        const name = global.names.get(global.ignoresCase ? sent.toLowerCase() : sent)
        if (name === undefined) {
            continue
        }
        const value = decoded(pair.slice(cut + 1))
        event.properties[global.prefix + name] = value
        if (global.setsPerson) {
            event.properties.$set = { ...event.properties.$set, [global.prefix + name]: value }
        }
        if (global.setsInitial) {
            const initial = `initial_${global.prefix}${name}`
            event.properties.$set_once = { ...event.properties.$set_once, [initial]: value }
        }
    }
    return event
}
