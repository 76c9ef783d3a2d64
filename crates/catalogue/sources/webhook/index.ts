// Sends every event as a request. What `{…}` in the body stands for is put in where
// the template has a text, so that what comes out is JSON whatever the values are.

function fill(template, event) {
    if (typeof template === 'string') {
        const whole = template.match(/^\{([^{}]+)\}$/)
        if (whole && template.replace(PLACE, '') === '') {
            const value = lookUp(event, whole[1])
            return value === undefined ? null : value
        }
        return template.replace(PLACE, (_, path) => asText(lookUp(event, path)))
    }
    if (Array.isArray(template)) {
        return template.map((item) => fill(item, event))
    }
    if (template !== null && typeof template === 'object') {
        return Object.fromEntries(
            Object.entries(template).map(([name, item]) => [name, fill(item, event)])
        )
    }
    return template
}

function parsed(value, otherwise) {
    if (value === null || value === undefined || value === '') {
        return otherwise
    }
    return typeof value === 'string' ? JSON.parse(value) : value
}

export function setupPlugin({ config, global }) {
    global.names = namesIn(config.events)
    global.headers = parsed(config.headers, {})
    global.template = parsed(config.body, null)
}

export function composeWebhook(event, { config, global }) {
    if (global.names.length > 0 && !global.names.includes(event.event)) {
        return null
    }
    const method = config.method || 'POST'
    const request = { url: config.url, method, headers: { ...global.headers } }
    if (method === 'GET') {
        return request
    }
    const names = Object.keys(request.headers).map((name) => name.toLowerCase())
    if (!names.includes('content-type')) {
        request.headers['Content-Type'] = 'application/json'
    }
    request.body = JSON.stringify(global.template === null ? event : fill(global.template, event))
    return request
}
