// What `{…}` in a text stands for.

const PLACE = /\{((?:event|distinct_id|uuid|timestamp|properties|person|groups)(?:\.[^{}]+)?)\}/g

function lookUp(event, path) {
    let value = event
    const names = path.split('.')
    for (let index = 0; index < names.length; index++) {
        if (value === null || typeof value !== 'object') {
            return null
        }
        // Names of properties may have dots in them.
        const rest = names.slice(index).join('.')
        if (Object.prototype.hasOwnProperty.call(value, rest)) {
            return value[rest]
        }
        if (!Object.prototype.hasOwnProperty.call(value, names[index])) {
            return null
        }
        value = value[names[index]]
    }
    return value
}

function asText(value) {
    if (value === null || value === undefined) {
        return ''
    }
    if (value instanceof Date) {
        return value.toISOString()
    }
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function namesIn(text) {
    return (text || '')
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '')
}
