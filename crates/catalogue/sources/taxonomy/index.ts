// Gives names of events one style. Names that begin with $ are the libraries' own.

const STYLES = {
    snake_case: (words) => words.join('_'),
    'kebab-case': (words) => words.join('-'),
    camelCase: (words) => words.map((word, at) => (at === 0 ? word : capital(word))).join(''),
    PascalCase: (words) => words.map(capital).join(''),
    'Title Case': (words) => words.map(capital).join(' '),
    'lower case': (words) => words.join(' '),
}

function capital(word) {
    const [first, ...rest] = word
    return first.toUpperCase() + rest.join('')
}

function words(name) {
    return name
        .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
        .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
        .split(/[\s_-]+/u)
        .filter((word) => word !== '')
        .map((word) => word.toLowerCase())
}

function styled(name, style) {
    const parts = name.startsWith('$') ? [] : words(name)
    return parts.length === 0 ? name : style(parts)
}

export function setupPlugin({ config, global }) {
    global.style = STYLES[config.style] || STYLES.snake_case
    global.properties = config.renameProperties === 'Yes'
}

export function processEvent(event, { global }) {
    event.event = styled(event.event, global.style)
    if (global.properties && event.properties) {
        const renamed = Object.entries(event.properties).map(([name, value]) => {
            const other = styled(name, global.style)
            // A property that has the new name already keeps its own.
            const isFree = !Object.hasOwn(event.properties, other)
            return [isFree ? other : name, value]
        })
        // Entries, for a name may be __proto__.
        event.properties = Object.fromEntries(renamed)
    }
    return event
}
