// Takes versions like 1.2.3-beta.4+build apart into properties.

const VERSION = /^v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/

export function setupPlugin({ config, global }) {
    global.names = config.properties
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '')
}

export function processEvent(event, { global }) {
    for (const name of global.names) {
        const sent = event.properties && event.properties[name]
        const parts = typeof sent === 'string' && sent.length <= 200 && sent.trim().match(VERSION)
        if (!parts) {
            continue
        }
        const [, major, minor, patch, prerelease, build] = parts
        event.properties[`${name}__major`] = Number(major)
        event.properties[`${name}__minor`] = Number(minor)
        if (patch !== undefined) {
            event.properties[`${name}__patch`] = Number(patch)
        }
        if (prerelease !== undefined) {
            event.properties[`${name}__prerelease`] = prerelease
        }
        if (build !== undefined) {
            event.properties[`${name}__build`] = build
        }
    }
    return event
}
