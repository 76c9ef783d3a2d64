// Sends a message to an address that takes Slack's incoming webhooks.

// Longer texts are cut by the receiver, or refused.
const LENGTH_MAX = 3000

// Senders of events must not call a whole channel or write links of their own.
function escaped(text) {
    return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
}

export function setupPlugin({ config, global }) {
    global.names = namesIn(config.events)
}

export function composeWebhook(event, { config, global }) {
    if (!global.names.includes(event.event) && !global.names.includes('*')) {
        return null
    }
    const text = config.message.replace(PLACE, (_, path) => escaped(asText(lookUp(event, path))))
    const letters = Array.from(text)
    const cut = letters.length > LENGTH_MAX ? letters.slice(0, LENGTH_MAX).join('') + '…' : text
    return {
        url: config.webhookUrl,
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ text: cut }),
    }
}
