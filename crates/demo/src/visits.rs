//! What happens on a day: visits with their events, events of the shop's servers, and the
//! mistakes that its apps make.
//!
//! Numbers are drawn in the same order each time, and none depends on the time.

use serde_json::{Map, Value, json};
use uuid::{Builder, Uuid};
use weir_model::Timestamp;

use crate::random::Random;
use crate::shop::{
    BOT, CAFES, COUNTRIES, DEVICE_WEIGHTS, DEVICES, Device, FIRST_NAMES, HOURS, LAST_NAMES,
    PRODUCTS, Product, SLOTS, SOURCE_WEIGHTS, SOURCES, VISITS,
};
use crate::{Content, DAY, HOUR, MINUTE, SECOND};

const SEED: u64 = 20_260_601;
/// Visits of the last day begin at least this long before the end.
const LONGEST_VISIT: i64 = 40 * MINUTE;
/// Milliseconds in microseconds: times are sent with milliseconds.
const MILLI: i64 = 1_000;
/// The distinct ids of customers begin so.
const CUSTOMER: &str = "customer-";

/// A visitor who has an account of the shop.
#[derive(Clone)]
struct Customer {
    id: String,
    /// The café that the customer buys for: an index of [`CAFES`].
    cafe: Option<usize>,
}

/// Writes the days of the month.
pub(crate) struct Writer {
    random: Random,
    begin: i64,
    end: i64,
    customers: Vec<Customer>,
    /// Customers when the present day began.
    known: usize,
    orders: u64,
    /// Orders of the present day.
    orders_of_day: u64,
    /// What the servers send on the next day: name, distinct id, properties.
    later: Vec<(&'static str, String, Value)>,
    /// Events with the key of the project, with their times in microseconds.
    pub(crate) events: Vec<(i64, Value)>,
    /// Requests with other content.
    pub(crate) others: Vec<(i64, Content)>,
}

/// A visit in progress.
struct Visit {
    /// The time of the next event.
    at: i64,
    id: String,
    session: String,
    address: String,
    device: &'static Device,
    referrer: &'static str,
    source: Option<&'static str>,
    customer: Option<Customer>,
}

impl Writer {
    pub(crate) fn new(begin: i64, end: i64) -> Self {
        Self {
            random: Random::new(SEED),
            begin,
            end,
            customers: Vec::new(),
            known: 0,
            orders: 0,
            orders_of_day: 0,
            later: Vec::new(),
            events: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Writes a day. Days are written in order.
    pub(crate) fn write(&mut self, day: u8) {
        self.known = self.customers.len();
        self.orders_of_day = 0;
        self.write_cafes(day);
        for (name, id, properties) in std::mem::take(&mut self.later) {
            let at = self.time(day).max(self.begin_of(day) + HOUR);
            self.push(at, name, &id, properties);
        }
        let visits = VISITS[usize::from(day) % VISITS.len()] + u64::from(day) / 3;
        for _ in 0..visits {
            self.visit(day);
        }
        self.write_bots(day);
        self.write_merges(day);
        self.write_mistakes(day);
    }

    fn begin_of(&self, day: u8) -> i64 {
        self.begin + i64::from(day) * DAY
    }

    /// A time of the day at which visits begin.
    fn time(&mut self, day: u8) -> i64 {
        let hour = i64::try_from(self.random.weighted(&HOURS)).unwrap_or(0);
        let millis = i64::try_from(self.random.below(3_600_000)).unwrap_or(0);
        let of_day = hour * HOUR + millis * MILLI;
        let begin = self.begin_of(day);
        let at = begin + (of_day - begin).rem_euclid(DAY);
        at.min(self.end - LONGEST_VISIT)
    }

    /// A time in microseconds between so many seconds.
    fn pause(&mut self, from: u64, to: u64) -> i64 {
        let millis = from * 1_000 + self.random.below((to - from) * 1_000);
        i64::try_from(millis).unwrap_or(0) * MILLI
    }

    fn uuid(&mut self) -> Uuid {
        Builder::from_random_bytes(self.random.bits().to_be_bytes()).into_uuid()
    }

    fn event(&mut self, at: i64, name: &str, id: &str, properties: Value) -> Value {
        let time = Timestamp::from_micros(at / MILLI * MILLI).to_string();
        let uuid = self.uuid().to_string();
        json!({
            "event": name, "distinct_id": id, "uuid": uuid, "timestamp": time,
            "properties": properties,
        })
    }

    fn push(&mut self, at: i64, name: &str, id: &str, properties: Value) {
        let event = self.event(at, name, id, properties);
        self.events.push((at, event));
    }

    /// Cafés that become customers on this day.
    fn write_cafes(&mut self, day: u8) {
        for cafe in CAFES.iter().filter(|cafe| cafe.since == day) {
            let at = self.begin_of(day) + self.pause(60, 3_600);
            let properties = json!({
                "$group_type": "cafe", "$group_key": cafe.key,
                "$group_set": {"name": cafe.name, "city": cafe.city, "plan": cafe.plan},
                "$lib": "shop-server",
            });
            self.push(at, "$groupidentify", cafe.key, properties);
        }
    }

    fn visit(&mut self, day: u8) {
        let at = self.time(day);
        let device = &DEVICES[self.random.weighted(&DEVICE_WEIGHTS)];
        let (referrer, source) = SOURCES[self.random.weighted(&SOURCE_WEIGHTS)];
        let address = format!("198.51.100.{}", 1 + self.random.below(250));
        let comes_back = self.known > 0 && self.random.percent(38);
        // On another device a customer is not known before signing in.
        let customer = match comes_back {
            true => {
                let index = self.random.index(self.known);
                Some(self.customers[index].clone())
            }
            false => None,
        };
        let is_known = customer.is_some() && self.random.percent(70);
        let anonymous = self.uuid().to_string();
        let id = match &customer {
            Some(customer) if is_known => customer.id.clone(),
            _ => anonymous,
        };
        let session = session_id(at, self.random.bits()).to_string();
        let mut visit = Visit { at, id, session, address, device, referrer, source, customer };
        self.page(&mut visit, "/");
        if self.random.percent(12) {
            let query = *self.random.one_of(&["oolong", "mint", "gift", "decaf", "matcha"]);
            let results = u64::from(!matches!(query, "decaf" | "matcha")) * 3;
            self.track(&mut visit, "search performed", json!({"query": query, "results": results}));
        }
        if self.random.percent(30) {
            // Visitors who leave again.
            self.track(&mut visit, "$pageleave", json!({}));
            return;
        }
        let mut basket: Vec<&'static Product> = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let product: &'static Product = self.random.one_of(&PRODUCTS);
            self.page(&mut visit, &format!("/tea/{}", product.slug));
            let viewed = json!({
                "product": product.name, "category": product.category,
                "price": euros(product.price), "currency": "EUR",
            });
            self.track(&mut visit, "product viewed", viewed);
            if self.random.percent(38) {
                let added = json!({
                    "product": product.name, "quantity": 1 + self.random.below(2),
                    "price": euros(product.price),
                });
                self.track(&mut visit, "product added", added);
                basket.push(product);
            }
        }
        if self.random.percent(7) {
            self.page(&mut visit, "/newsletter");
            let joined = json!({"list": "new teas", "$set": {"newsletter": true}});
            self.track(&mut visit, "newsletter joined", joined);
        }
        if !basket.is_empty() && self.random.percent(72) {
            self.check_out(&mut visit, &basket, is_known);
        }
        self.track(&mut visit, "$pageleave", json!({}));
    }

    fn check_out(&mut self, visit: &mut Visit, basket: &[&'static Product], is_known: bool) {
        let value: u64 = basket.iter().map(|product| product.price).sum();
        self.page(visit, "/checkout");
        let started = json!({"items": basket.len(), "value": euros(value), "currency": "EUR"});
        self.track(visit, "checkout started", started);
        if self.random.percent(22) {
            return;
        }
        if !is_known {
            self.sign_in(visit);
        }
        self.orders += 1;
        self.orders_of_day += 1;
        let number = format!("FT-{:05}", 1_000 + self.orders);
        let cafe = visit.customer.as_ref().and_then(|customer| customer.cafe);
        let value = if cafe.is_some() { value * 6 } else { value };
        let payment = *self.random.one_of(&["card", "card", "invoice", "transfer"]);
        let slot = *self.random.one_of(&SLOTS);
        let mut order = json!({
            "order_id": number, "items": basket.len(), "value": euros(value), "currency": "EUR",
            "payment": payment, "app_version": "4.2.0", "delivery_slot": slot,
        });
        // An old version of the app leaves the field out, which the failing plugin needs.
        let is_old = self.random.percent(9) || self.orders_of_day == 1;
        if let Some(fields) = order.as_object_mut().filter(|_| is_old) {
            fields.remove("delivery_slot");
            fields.insert("app_version".to_owned(), json!("4.0.3"));
        }
        self.track(visit, "order placed", order);
        let mut shipped =
            json!({"order_id": number, "carrier": "Swift Post", "$lib": "shop-server"});
        if let (Some(fields), Some(cafe)) = (shipped.as_object_mut(), cafe) {
            fields.insert("$groups".to_owned(), json!({"cafe": CAFES[cafe].key}));
        }
        self.later.push(("order shipped", visit.id.clone(), shipped));
        if self.random.percent(5) {
            let refunded =
                json!({"order_id": number, "value": euros(value), "$lib": "shop-server"});
            self.later.push(("order refunded", visit.id.clone(), refunded));
        }
    }

    /// Identifies the visitor: a customer on another device, or a new one.
    fn sign_in(&mut self, visit: &mut Visit) {
        let customer = match &visit.customer {
            Some(customer) => customer.clone(),
            None => {
                let customer = self.new_customer();
                self.customers.push(customer.clone());
                customer
            }
        };
        let anonymous = std::mem::replace(&mut visit.id, customer.id.clone());
        let first = self.random.one_of(&FIRST_NAMES);
        let last = self.random.one_of(&LAST_NAMES);
        let country = self.random.one_of(&COUNTRIES);
        let identify = json!({
            "$anon_distinct_id": anonymous,
            "$set": {
                "name": format!("{first} {last}"),
                "email": format!("{}@customers.example", customer.id),
            },
            "$set_once": {"country": country, "first_source": visit.source},
        });
        visit.customer = Some(customer);
        self.track(visit, "$identify", identify);
    }

    fn new_customer(&mut self) -> Customer {
        let number = self.customers.len() + 1;
        let cafe = match self.random.percent(15) {
            true => Some(self.random.index(CAFES.len())),
            false => None,
        };
        Customer { id: format!("{CUSTOMER}{number:04}"), cafe }
    }

    fn page(&mut self, visit: &mut Visit, path: &str) {
        let mut url = format!("https://www.fernhill.example{path}");
        if let Some(source) = visit.source.filter(|_| path == "/") {
            url.push_str("?utm_source=");
            url.push_str(source);
        }
        self.track(visit, "$pageview", json!({"$current_url": url, "$pathname": path}));
    }

    /// Adds an event of a visit, some seconds after the one before.
    fn track(&mut self, visit: &mut Visit, name: &str, own: Value) {
        let mut properties = Map::new();
        let domain = visit.referrer.split('/').nth(2).unwrap_or(visit.referrer);
        for (key, value) in [
            ("$lib", "web"),
            ("$session_id", visit.session.as_str()),
            ("$host", "www.fernhill.example"),
            ("$browser", visit.device.browser),
            ("$os", visit.device.system),
            ("$device_type", visit.device.kind),
            ("$raw_user_agent", visit.device.agent),
            ("$referrer", visit.referrer),
            ("$referring_domain", domain),
            ("$ip", visit.address.as_str()),
        ] {
            properties.insert(key.to_owned(), json!(value));
        }
        if let Some(source) = visit.source {
            properties.insert("utm_source".to_owned(), json!(source));
        }
        if let Some(cafe) = visit.customer.as_ref().and_then(|customer| customer.cafe) {
            properties.insert("$groups".to_owned(), json!({"cafe": CAFES[cafe].key}));
        }
        if let Value::Object(own) = own {
            properties.extend(own);
        }
        let id = visit.id.clone();
        self.push(visit.at, name, &id, Value::Object(properties));
        visit.at += self.pause(4, 75);
    }

    fn write_bots(&mut self, day: u8) {
        for _ in 0..3 + day % 3 {
            let (at, id) = (self.time(day), self.uuid().to_string());
            let product = self.random.one_of(&PRODUCTS);
            let url = format!("https://www.fernhill.example/tea/{}", product.slug);
            let properties = json!({
                "$lib": "web", "$current_url": url, "$raw_user_agent": BOT, "$ip": "192.0.2.77",
            });
            self.push(at, "$pageview", &id, properties);
        }
    }

    /// Merges that succeed, and merges that are refused.
    fn write_merges(&mut self, day: u8) {
        if self.known < 2 {
            return;
        }
        if day % 4 == 2 {
            let index = self.random.index(self.known);
            let (at, id) = (self.time(day), self.customers[index].id.clone());
            let alias = format!("loyalty-{}", id.trim_start_matches(CUSTOMER));
            let properties = json!({"alias": alias, "$lib": "shop-server"});
            self.push(at, "$create_alias", &id, properties);
        }
        if day % 8 == 5 {
            // Two customers with one device, in an app that does not reset the id.
            let (at, id) = (self.time(day), self.customers[0].id.clone());
            let other = self.customers[1].id.clone();
            self.push(at, "$identify", &id, json!({"$anon_distinct_id": other, "$lib": "kiosk"}));
        }
        if day % 9 == 4 {
            let (at, anonymous) = (self.time(day), self.uuid().to_string());
            let properties = json!({"$anon_distinct_id": anonymous, "$lib": "kiosk"});
            self.push(at, "$identify", "null", properties);
        }
    }

    /// Events that are dropped or altered, each for another reason, and refused requests.
    fn write_mistakes(&mut self, day: u8) {
        let kiosk = || json!({"$lib": "kiosk"});
        if day.is_multiple_of(2) {
            for _ in 0..2 {
                let at = self.time(day);
                let mut event = self.event(at, "kiosk opened", "", kiosk());
                if let Some(fields) = event.as_object_mut() {
                    fields.remove("distinct_id");
                }
                self.events.push((at, event));
            }
        }
        if day % 3 == 1 {
            let at = self.time(day);
            self.push(at, "", "kiosk-1", kiosk());
        }
        if day % 4 == 2 {
            self.push_with(day, "kiosk closed", "uuid", json!("17"));
        }
        if day % 5 == 3 {
            self.push_with(day, "kiosk closed", "properties", json!(["night"]));
        }
        if day % 7 == 5 {
            self.push_with(day, "kiosk closed", "timestamp", json!("yesterday"));
        }
        if day % 6 == 4 {
            let at = self.time(day);
            let name = format!("clicked {}", "very ".repeat(45));
            self.push(at, &name, "kiosk-1", kiosk());
        }
        if day % 4 == 1 {
            let at = self.time(day);
            self.push(at, "$snapshot", "kiosk-1", kiosk());
        }
        if day.is_multiple_of(3) {
            // An app that sends again what was answered too late.
            let at = self.time(day);
            self.push(at, "kiosk opened", "kiosk-2", kiosk());
            let again = self.events.last().map(|(_, event)| event.clone());
            self.events.extend(again.map(|event| (at + 5 * SECOND, event)));
        }
        if day % 3 == 2 {
            let at = self.time(day);
            let event = self.event(at, "price changed", "price-bot", json!({"$lib": "cron"}));
            self.others.push((at, Content::UnknownKey(vec![event])));
        }
        if day % 10 == 6 {
            let at = self.time(day);
            self.others.push((at, Content::Broken("{\"api_key\": ")));
        }
    }

    /// Adds an event of a kiosk with another value of one field.
    fn push_with(&mut self, day: u8, name: &str, field: &str, value: Value) {
        let at = self.time(day);
        let mut event = self.event(at, name, "kiosk-1", json!({"$lib": "kiosk"}));
        if let Some(fields) = event.as_object_mut() {
            fields.insert(field.to_owned(), value);
        }
        self.events.push((at, event));
    }
}

/// An id of a session as browsers make it: UUID v7 of the time of the first event.
fn session_id(at: i64, random: u128) -> Uuid {
    let millis = u64::try_from(at / MILLI).unwrap_or(0);
    let random = random.to_be_bytes();
    let mut tail = [0; 10];
    tail.copy_from_slice(&random[..10]);
    Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

fn euros(cents: u64) -> Value {
    json!(cents as f64 / 100.0)
}
