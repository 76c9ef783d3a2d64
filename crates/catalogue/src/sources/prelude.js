// What plugins find around them, as little as the entries need.
const kept = new Map()
const KEYS_MAX = 1000
const KEY_MAX = 200

function checked(key) {
    if (key.length > KEY_MAX) {
        throw new Error('too long')
    }
    return key
}

globalThis.console = { warn() {} }
const meta = {
    config,
    global: {},
    storage: {
        get: async (key, otherwise) => (kept.has(checked(key)) ? kept.get(key) : otherwise),
        set: async (key, value) => {
            if (!kept.has(checked(key)) && kept.size >= KEYS_MAX) {
                throw new Error('full')
            }
            kept.set(key, value)
        },
    },
}
globalThis.meta = meta

class Element {
    constructor(tag) {
        Object.assign(this, { tag, attributes: {}, style: {}, children: [], listeners: {} })
    }
    setAttribute(name, value) {
        this.attributes[name] = value
    }
    set textContent(text) {
        this.text = text
    }
    addEventListener(name, listener) {
        this.listeners[name] = listener
    }
    appendChild(child) {
        child.parent = this
        this.children.push(child)
    }
    insertBefore(child, other) {
        child.parent = this
        this.children.splice(this.children.indexOf(other), 0, child)
    }
    get firstChild() {
        return this.children[0] ?? null
    }
    remove() {
        this.parent.children = this.parent.children.filter((child) => child !== this)
    }
    find(tag) {
        return this.tag === tag ? this : this.children.map((child) => child.find(tag)).find(Boolean)
    }
    toJSON() {
        const { tag, attributes, style, children, text } = this
        return { tag, attributes, style, children, text }
    }
}

globalThis.show = (clicks) => {
    const stored = {}
    const captured = []
    globalThis.window = {
        localStorage: {
            getItem: (key) => stored[key] ?? null,
            setItem: (key, value) => (stored[key] = value),
        },
    }
    const posthog = { capture: (name) => captured.push(name) }
    const visit = () => {
        const body = new Element('body')
        body.appendChild(new Element('main'))
        globalThis.document = { body, createElement: (tag) => new Element(tag) }
        exports.inject({ config, posthog })
        return body
    }
    const body = visit()
    for (const tag of clicks) {
        body.find(tag).listeners.click()
    }
    return { body: body.children, captured, again: visit().children }
}

if (exports.setupPlugin) {
    exports.setupPlugin(meta)
}
