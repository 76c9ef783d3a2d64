// Shows a bar with a text on the pages of visitors. Everything from the config is
// set as text or checked: it never becomes markup or script.

const COLOUR = /^(#[0-9a-f]{3,8}|[a-z]{3,30})$/i

function colour(value, otherwise) {
    return typeof value === 'string' && COLOUR.test(value.trim()) ? value.trim() : otherwise
}

function address(value) {
    const text = typeof value === 'string' ? value.trim() : ''
    return /^(https?:\/\/|\/(?!\/)|#)/i.test(text) ? text : null
}

// Another text is another message, which no visitor has closed yet.
function storageKey(text) {
    let sum = 0
    for (const letter of text) {
        sum = (sum * 31 + letter.codePointAt(0)) >>> 0
    }
    return `weir_notification_bar_${sum}`
}

function wasClosed(key) {
    try {
        return window.localStorage.getItem(key) === 'closed'
    } catch {
        // Storage may be forbidden.
        return false
    }
}

function keepClosed(key) {
    try {
        window.localStorage.setItem(key, 'closed')
    } catch {
        // Then it is there again on the next page.
    }
}

export function inject({ config, posthog }) {
    const text = typeof config.text === 'string' ? config.text.trim() : ''
    const key = storageKey(text)
    if (text === '' || wasClosed(key)) {
        return
    }
    const foreground = colour(config.textColour, '#ffffff')
    const isBelow = config.position === 'bottom'

    const bar = document.createElement('div')
    bar.setAttribute('role', 'region')
    bar.setAttribute('aria-label', config.label || 'Notification')
    Object.assign(bar.style, {
        position: isBelow ? 'fixed' : 'sticky',
        top: isBelow ? 'auto' : '0',
        bottom: isBelow ? '0' : 'auto',
        left: '0',
        right: '0',
        zIndex: '2147483000',
        display: 'flex',
        gap: '16px',
        alignItems: 'center',
        justifyContent: 'center',
        padding: '10px 16px',
        font: '16px/1.4 system-ui, sans-serif',
        background: colour(config.backgroundColour, '#1d3557'),
        color: foreground,
    })

    const words = document.createElement('span')
    words.textContent = text
    bar.appendChild(words)

    const target = address(config.link)
    if (target !== null) {
        const link = document.createElement('a')
        link.setAttribute('href', target)
        link.textContent = config.linkText || target
        Object.assign(link.style, { color: foreground, textDecoration: 'underline' })
        link.addEventListener('click', () => {
            posthog.capture('notification bar clicked', { notification_text: text })
        })
        bar.appendChild(link)
    }

    if (config.closable !== 'No') {
        const button = document.createElement('button')
        button.setAttribute('type', 'button')
        button.setAttribute('aria-label', config.closeLabel || 'Close')
        button.textContent = '×'
        Object.assign(button.style, {
            minWidth: '32px',
            minHeight: '32px',
            border: '0',
            background: 'transparent',
            color: foreground,
            font: 'inherit',
            fontSize: '20px',
            cursor: 'pointer',
        })
        button.addEventListener('click', () => {
            keepClosed(key)
            bar.remove()
            posthog.capture('notification bar closed', { notification_text: text })
        })
        bar.appendChild(button)
    }

    if (isBelow) {
        document.body.appendChild(bar)
    } else {
        document.body.insertBefore(bar, document.body.firstChild)
    }
}
