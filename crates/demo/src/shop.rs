//! What the shop sells, to whom, and what its visitors use. All names are made up, and all
//! addresses are reserved for examples.

/// A kind of tea.
pub(crate) struct Product {
    pub(crate) slug: &'static str,
    pub(crate) name: &'static str,
    pub(crate) category: &'static str,
    /// In cents.
    pub(crate) price: u64,
}

const fn product(
    slug: &'static str,
    name: &'static str,
    category: &'static str,
    price: u64,
) -> Product {
    Product { slug, name, category, price }
}

pub(crate) static PRODUCTS: [Product; 12] = [
    product("first-flush", "Darjeeling First Flush", "black", 1_490),
    product("assam", "Assam Second Flush", "black", 1_190),
    product("earl-grey", "Earl Grey", "black", 890),
    product("sencha", "Sencha", "green", 1_290),
    product("gunpowder", "Gunpowder", "green", 790),
    product("jasmine", "Jasmine Pearls", "green", 1_690),
    product("silver-needle", "Silver Needle", "white", 2_490),
    product("oolong", "Iron Goddess Oolong", "oolong", 1_890),
    product("rooibos", "Rooibos Vanilla", "herbal", 690),
    product("mint", "Mint and Lemon", "herbal", 590),
    product("teapot", "Glass Teapot", "accessories", 3_490),
    product("gift-box", "Gift Box of Eight", "accessories", 2_990),
];

/// A café that buys for its guests.
pub(crate) struct Cafe {
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    pub(crate) city: &'static str,
    pub(crate) plan: &'static str,
    /// The day on which it becomes a customer.
    pub(crate) since: u8,
}

pub(crate) static CAFES: [Cafe; 6] = [
    Cafe { key: "cafe-01", name: "Café Rosa", city: "Lisbon", plan: "monthly", since: 0 },
    Cafe { key: "cafe-02", name: "Corner Cup", city: "Dublin", plan: "weekly", since: 0 },
    Cafe { key: "cafe-03", name: "Nordlys", city: "Oslo", plan: "monthly", since: 1 },
    Cafe { key: "cafe-04", name: "Blue Kettle", city: "Ghent", plan: "weekly", since: 4 },
    Cafe { key: "cafe-05", name: "Old Mill", city: "Graz", plan: "monthly", since: 9 },
    Cafe { key: "cafe-06", name: "Harbour Room", city: "Gdańsk", plan: "weekly", since: 16 },
];

pub(crate) const FIRST_NAMES: [&str; 20] = [
    "Amara", "Bruno", "Carla", "Dmitri", "Elif", "Farid", "Greta", "Hana", "Ivo", "Jonas", "Katya",
    "Lucia", "Malik", "Noor", "Oskar", "Petra", "Quinn", "Rosa", "Samuel", "Tessa",
];

pub(crate) const LAST_NAMES: [&str; 16] = [
    "Almeida", "Berg", "Costa", "Doyle", "Eriksen", "Fischer", "Gallo", "Horvat", "Ito", "Jansen",
    "Kowalski", "Lind", "Moreau", "Novak", "Okafor", "Petrov",
];

pub(crate) const COUNTRIES: [&str; 8] =
    ["Portugal", "Ireland", "Norway", "Belgium", "Austria", "Poland", "Germany", "France"];

/// What a visitor uses.
pub(crate) struct Device {
    pub(crate) browser: &'static str,
    pub(crate) system: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) agent: &'static str,
}

pub(crate) static DEVICES: [Device; 4] = [
    Device {
        browser: "Chrome",
        system: "Windows",
        kind: "Desktop",
        agent: "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                Chrome/126.0.0.0 Safari/537.36",
    },
    Device {
        browser: "Mobile Safari",
        system: "iOS",
        kind: "Mobile",
        agent: "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
                (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
    },
    Device {
        browser: "Firefox",
        system: "Linux",
        kind: "Desktop",
        agent: "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
    },
    Device {
        browser: "Chrome",
        system: "Android",
        kind: "Mobile",
        agent: "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) \
                Chrome/126.0.0.0 Mobile Safari/537.36",
    },
];

/// How often each device is used.
pub(crate) const DEVICE_WEIGHTS: [u64; 4] = [38, 30, 10, 22];

pub(crate) const BOT: &str =
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

/// Where visitors come from: the referrer, and the parameter `utm_source` of the address.
pub(crate) const SOURCES: [(&str, Option<&str>); 5] = [
    ("$direct", None),
    ("https://search.example/", None),
    ("https://news.example/best-tea", None),
    ("https://social.example/", Some("social")),
    ("$direct", Some("newsletter")),
];

/// How often visitors come from each.
pub(crate) const SOURCE_WEIGHTS: [u64; 5] = [40, 30, 8, 12, 10];

/// Times of day of delivery.
pub(crate) const SLOTS: [&str; 4] = ["08:00-10:00", "10:00-12:00", "14:00-16:00", "18:00-20:00"];

/// How many visits a day has, beginning with the first, and again after a week.
pub(crate) const VISITS: [u64; 7] = [30, 31, 29, 33, 38, 44, 40];

/// How many visits begin in each hour of the day in UTC.
pub(crate) const HOURS: [u64; 24] =
    [2, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 11, 12, 10, 9, 9, 10, 11, 13, 15, 16, 13, 8, 4];
