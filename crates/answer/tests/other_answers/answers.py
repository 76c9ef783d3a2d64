"""Answers questions from the rules in docs/spec/questions.md, without any code of Weir.

Standard input: a JSON object with the events that count, the merges of persons, the current
time, the filters for internal users, and the questions with the calendar of their project.
Standard output: a list with the answer to each question.

Ways are plain and slow: attempts of funnels begin at every event, sets are sets, sums are
`math.fsum`, and local times are those of `zoneinfo`.
"""

import ast
import bisect
import datetime
import json
import math
import re
import sys
import zoneinfo

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
MICRO = datetime.timedelta(microseconds=1)
SECOND = 1_000_000
CLOCK = {"M": 60 * SECOND, "h": 3600 * SECOND}
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
UNIT_OF = {"minute": "M", "hour": "h", "day": "d", "week": "w", "month": "m"}
OTHER = "$$_posthog_breakdown_other_$$"
NO_VALUE = "$$_posthog_breakdown_null_$$"


# Time (QRY-6 to QRY-11)


class Calendar:
    """The calendar of a project. Instants are microseconds since 1970."""

    def __init__(self, zone, week_start, now):
        self.zone = zoneinfo.ZoneInfo(zone)
        self.first_weekday = {"Monday": 0, "Sunday": 6}[week_start]
        self.now = now

    def local(self, instant):
        return (EPOCH + instant * MICRO).astimezone(self.zone).replace(tzinfo=None)

    def instant(self, local):
        return (local.replace(tzinfo=self.zone).astimezone(UTC) - EPOCH) // MICRO

    def midnight(self, date):
        return self.instant(datetime.datetime(date.year, date.month, date.day))

    def first_date(self, unit, date):
        """The first day of the unit that contains a day."""
        if unit == "w":
            return date - datetime.timedelta(days=(date.weekday() - self.first_weekday) % 7)
        if unit == "m":
            return date.replace(day=1)
        if unit == "q":
            return date.replace(day=1, month=(date.month - 1) // 3 * 3 + 1)
        if unit == "y":
            return date.replace(day=1, month=1)
        return date

    def next_date(self, unit, date):
        """The first day of the unit after one that begins on a day."""
        if unit in "dw":
            return date + datetime.timedelta(days={"d": 1, "w": 7}[unit])
        months = {"m": 1, "q": 3, "y": 12}[unit]
        return date_before(date, -months)

    def floor(self, unit, instant):
        local = self.local(instant)
        if unit in CLOCK:
            since = local.second * SECOND + local.microsecond
            return instant - since - (local.minute * 60 * SECOND if unit == "h" else 0)
        return self.midnight(self.first_date(unit, local.date()))

    def ceiling(self, unit, instant):
        """The first instant after the unit that contains an instant."""
        if unit in CLOCK:
            return self.floor(unit, instant) + CLOCK[unit]
        first = self.first_date(unit, self.local(instant).date())
        return self.midnight(self.next_date(unit, first))

    def back(self, instant, count, unit):
        """So many units earlier, at the same time of the day."""
        if unit in CLOCK:
            return instant - count * CLOCK[unit]
        return self.instant(self.local_back(self.local(instant), count, unit))

    def local_back(self, local, count, unit):
        if unit in "dw":
            days = count * {"d": 1, "w": 7}[unit]
            return local - datetime.timedelta(days=days)
        date = date_before(local.date(), count * {"m": 1, "q": 3, "y": 12}[unit])
        return datetime.datetime.combine(date, local.time())

    def relative(self, count, unit, edge):
        moved = self.back(self.now, count, unit)
        if edge == "Start":
            return self.floor(unit, moved)
        return self.ceiling(unit, moved) if edge == "End" else moved

    def time_of(self, date):
        """The instant of a parsed date that is not `all`."""
        kind, *value = date
        if kind == "relative":
            return self.relative(*value)
        if kind == "day":
            return self.midnight(value[0])
        return self.instant(value[0]) if kind == "local" else value[0]


def date_before(date, months):
    """The same day so many months earlier, or the last one of that month."""
    month = date.year * 12 + date.month - 1 - months
    first = datetime.date(month // 12, month % 12 + 1, 1)
    after = datetime.date((month + 1) // 12, (month + 1) % 12 + 1, 1)
    return first.replace(day=min(date.day, (after - first).days))


def parse_date(text):
    if text is None or not text.strip():
        return None
    text = text.strip()
    if text == "all":
        return ("all",)
    found = re.fullmatch(r"-?(\d*)([Mhdwmqy])(Start|End)?", text)
    if found and (found[1] or found[3]):
        return ("relative", int(found[1] or 0), found[2], found[3])
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return ("day", datetime.date.fromisoformat(text))
    if re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?", text):
        time = datetime.datetime.fromisoformat(text)
        if time.tzinfo is None:
            return ("local", time)
        return ("instant", (time - EPOCH) // MICRO)
    raise ValueError(text)


class Dates:
    """The dates of a question."""

    def __init__(self, question):
        dates = question.get("dateRange") or {}
        self.begin = parse_date(dates.get("date_from"))
        self.end = parse_date(dates.get("date_to"))
        self.is_explicit = bool(dates.get("explicitDate"))

    def relative_begin(self):
        return self.begin[1:] if self.begin and self.begin[0] == "relative" else None


class Range:
    """Instants from `begin` to before `end`. `is_cut`: events before it do not count, also
    if they are in its first bucket."""

    def __init__(self, begin, end, interval, is_cut):
        self.begin, self.end, self.interval, self.is_cut = begin, end, interval, is_cut


def range_end(calendar, dates, interval):
    is_clock = interval in ("minute", "hour")
    now = calendar.now
    if dates.end is None:
        if dates.is_explicit:
            return now
        return calendar.ceiling(UNIT_OF[interval] if is_clock else "d", now)
    kind, *value = dates.end
    time = calendar.time_of(dates.end)
    if dates.is_explicit:
        return time
    if kind == "day":
        return calendar.ceiling("d", time)
    if kind == "relative":
        _, unit, edge = value
        if edge == "End":
            return time
        if edge is None:
            return calendar.ceiling(unit if is_clock and unit in CLOCK else "d", time)
    return time if is_clock else calendar.ceiling("d", time)


def range_begin(calendar, dates, interval, earliest):
    if dates.begin is None:
        return calendar.floor("d", calendar.back(calendar.now, 7, "d"))
    kind, *value = dates.begin
    if kind == "all":
        return calendar.floor("d", min(earliest, calendar.now))
    time = calendar.time_of(dates.begin)
    if kind != "relative" or value[2] or dates.is_explicit:
        return time
    if interval == "minute":
        return calendar.floor("M", time)
    return calendar.floor(value[1] if value[1] in CLOCK else "d", time)


def range_of(calendar, dates, interval, earliest):
    begin = range_begin(calendar, dates, interval, earliest)
    end = range_end(calendar, dates, interval)
    relative = dates.relative_begin()
    is_of_hours = relative is not None and relative[1] in CLOCK and relative[2] is None
    is_cut = dates.is_explicit or (is_of_hours and interval not in ("minute", "hour"))
    return Range(begin, end, interval, is_cut)


def previous_range(calendar, dates, current, compare_to):
    """The range that a range is compared with."""

    def moved(count, unit):
        """The range of the same length that begins so many units earlier."""
        begin = calendar.back(current.begin, count, unit)
        if unit in CLOCK:
            return begin, begin + current.end - current.begin
        first, last = calendar.local(current.begin), calendar.local(current.end)
        end = calendar.instant(calendar.local_back(first, count, unit) + (last - first))
        return begin, max(begin, end)

    def bounds():
        if compare_to:
            _, count, unit, _ = parse_date(compare_to)
            return moved(count, unit)
        relative = dates.relative_begin()
        if relative and dates.end is None:
            count, unit, edge = relative
            if count == 0 and edge == "Start" and unit in "wmqy":
                return calendar.floor(unit, current.begin - 1), current.begin
        if current.interval == "minute":
            return 2 * current.begin - current.end, current.begin
        if current.interval == "hour":
            hours = (current.end - current.begin) // CLOCK["h"] - 1
            return moved(max(1, math.ceil(hours / 24)), "d")
        if current.interval == "day" and dates.end is None:
            count, unit, edge = relative or (7, "d", None)
            is_default = dates.begin is None or relative
            if is_default and unit == "d" and edge is None and count and count % 7 == 0:
                return moved(count, "d")
        first, last = calendar.local(current.begin), calendar.local(current.end - 1)
        return moved((last.date() - first.date()).days + 1, "d")

    begin, end = bounds()
    return Range(begin, end, current.interval, current.is_cut)


class Span:
    """The intervals of a range, with their texts."""

    def __init__(self, calendar, of, is_total=False):
        self.days, self.labels = [], []
        if is_total:
            self.begin, self.end = of.begin, of.end
            self.boundaries = [of.begin, of.end]
            return
        unit = UNIT_OF[of.interval]
        at = calendar.floor(unit, of.begin)
        self.boundaries = []
        first = calendar.local(of.begin if of.is_cut else at).date()
        last = calendar.local(of.end - 1).date()
        while at < of.end or not self.boundaries:
            self.boundaries.append(at)
            start = calendar.local(at)
            form = "%Y-%m-%d %H:%M:%S" if unit in CLOCK else "%Y-%m-%d"
            self.days.append(start.strftime(form))
            self.labels.append(label_of(of.interval, start, first, last))
            at = calendar.ceiling(unit, at)
        self.boundaries.append(at)
        self.begin = of.begin if of.is_cut else self.boundaries[0]
        self.end = of.end

    def __len__(self):
        return len(self.boundaries) - 1

    def index(self, time):
        """The number of the interval of an instant. `None`: it does not count."""
        if not self.begin <= time < self.end:
            return None
        return bisect.bisect_right(self.boundaries, time) - 1

    def contains(self, time):
        return self.begin <= time < self.end

    def written(self):
        return {"date_from": timestamp(self.begin), "date_to": timestamp(self.end - 1)}


def label_of(interval, start, first, last):
    def full(date):
        return f"{date.day}-{MONTHS[date.month - 1]}-{date.year}"

    month = MONTHS[start.month - 1]
    if interval in ("minute", "hour"):
        return f"{start.day}-{month} {start:%H:%M}"
    if interval == "day":
        return full(start)
    if interval == "month":
        return f"{month} {start.year}"
    begin = max(start.date(), first)
    end = max(min(start.date() + datetime.timedelta(days=6), last), begin)
    if begin == end:
        return full(begin)
    if begin.year != end.year:
        return f"{full(begin)} – {full(end)}"
    if begin.month != end.month:
        return f"{begin.day}-{MONTHS[begin.month - 1]} – {end.day}-{MONTHS[end.month - 1]}"
    return f"{begin.day}–{end.day} {MONTHS[end.month - 1]}"


def timestamp(instant):
    time = EPOCH + instant * MICRO
    fraction = f".{time.microsecond:06}".rstrip("0") if time.microsecond else ""
    return f"{time:%Y-%m-%dT%H:%M:%S}{fraction}Z"


# Values and filters (QRY-25, QRY-26, QRY-29, QRY-21)


def parse_integer(digits):
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else float(digits)


def parse_properties(text):
    """Of equal names, the last one counts; null is no value."""
    members = json.loads(text, parse_int=parse_integer)
    return {name: value for name, value in members.items() if value is not None}


def text_of(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if value == int(value) and abs(value) < 2**64:
            return str(int(value))
        mantissa, _, exponent = repr(value).partition("e")
        return f"{mantissa}e{int(exponent)}" if exponent else mantissa
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def number_of(value):
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    pattern = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
    if isinstance(value, str) and re.fullmatch(pattern, value):
        number = json.loads(value, parse_int=parse_integer)
        return number if math.isfinite(number) else None
    return None


def instants_of(calendar, value):
    """The instant that a value of a property stands for."""
    if isinstance(value, str) and number_of(value) is None:
        try:
            date = parse_date(value)
        except ValueError:
            return None
        return calendar.time_of(date) if date and date[0] not in ("all", "relative") else None
    number = number_of(value)
    if number is None or number < 10**8:
        return None
    return int(number) * (SECOND if number < 10**11 else 1000)


NEGATIVE = {"is_not": "exact", "not_in": "exact", "not_icontains": "icontains",
            "not_regex": "regex", "is_not_set": "is_set", "in": "exact"}


def is_equal(value, wanted):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = number_of(wanted)
        return number is not None and number == value
    return text_of(value) == text_of(wanted)


def compile_filter(calendar, given):
    key, operator = given["key"], given.get("operator") or "exact"
    values = given.get("value")
    values = values if isinstance(values, list) else [values]
    is_negative = operator in NEGATIVE and operator != "in"
    operator = NEGATIVE.get(operator, operator)

    def holds(value):
        if value is None:
            return False
        if operator == "is_set":
            return True
        if operator == "exact":
            return any(is_equal(value, wanted) for wanted in values)
        if operator == "icontains":
            text = text_of(value).lower()
            return any(text_of(wanted).lower() in text for wanted in values)
        if operator == "regex":
            text = text_of(value)
            return any(re.search(text_of(wanted), text, re.DOTALL) for wanted in values)
        if operator.startswith("is_date_"):
            return compare_date(value)
        number = number_of(value)
        if number is None:
            return False
        least = number_of(values[0])
        if operator == "between":
            return least <= number <= number_of(values[1])
        if operator == "not_between":
            return not least <= number <= number_of(values[1])
        return {"gt": number > least, "gte": number >= least,
                "lt": number < least, "lte": number <= least}[operator]

    def compare_date(value):
        time = instants_of(calendar, value)
        if time is None:
            return False
        date = parse_date(values[0])
        begin = calendar.time_of(date)
        end = calendar.ceiling("d", begin) if date[0] == "day" else begin + 1
        return {"is_date_exact": begin <= time < end, "is_date_before": time < begin,
                "is_date_after": time >= end}[operator]

    return lambda event: holds(event["properties"].get(key)) != is_negative


def compile_filters(calendar, given):
    """A test for events of a list or a group of filters."""
    if not given:
        return lambda event: True
    if isinstance(given, dict) and "values" not in given:
        return compile_filter(calendar, given)
    is_any = isinstance(given, dict) and given["type"] == "OR"
    inner = given["values"] if isinstance(given, dict) else given
    tests = [compile_filters(calendar, each) for each in inner]
    if not tests:
        return lambda event: True
    return lambda event: (any if is_any else all)(test(event) for test in tests)


def exact_sum(numbers):
    """The sum, rounded once. A whole number of 64 bits is the sum of two doubles."""
    parts = []
    for number in numbers:
        nearest = float(number)
        parts.append(nearest)
        if isinstance(number, int):
            parts.append(float(number - int(nearest)))
    try:
        return math.fsum(parts)
    except OverflowError:
        return math.inf


def amount(number):
    """A number as results write it (QRY-23)."""
    if not math.isfinite(number):
        return 0
    if number == int(number) and abs(number) <= 2**53:
        return int(number)
    return number


PERCENTILES = {"median": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def number_for(math_word, numbers):
    if not numbers:
        return 0.0
    values = sorted(float(number) for number in numbers)
    if math_word in PERCENTILES:
        place = PERCENTILES[math_word] * (len(values) - 1)
        below = math.floor(place)
        above = min(below + 1, len(values) - 1)
        return values[below] + (values[above] - values[below]) * (place - below)
    if math_word == "sum":
        return exact_sum(numbers)
    if math_word == "avg":
        return exact_sum(numbers) / len(numbers)
    return values[0] if math_word == "min" else values[-1]


# What all questions have


class Asked:
    """A question with what it is asked with."""

    def __init__(self, world, given):
        self.question = given["question"]
        self.calendar = Calendar(given["zone"], given["weekStart"], world.now)
        self.dates = Dates(self.question)
        self.interval = self.question.get("interval") or "day"
        self.group_type = self.question.get("aggregation_group_type_index")
        self.world = world
        scope = [compile_filters(self.calendar, self.question.get("properties"))]
        if self.question.get("filterTestAccounts"):
            scope.append(compile_filters(self.calendar, world.internal))
        self.events = [event for event in world.events if all(test(event) for test in scope)]

    def range(self, interval=None):
        interval = interval or self.interval
        return range_of(self.calendar, self.dates, interval, self.world.earliest)

    def so_far(self, current):
        """The hours of today that have begun, if the range is today."""
        first, last = self.calendar.local(current.begin), self.calendar.local(current.end - 1)
        is_today = self.dates.end is None and first.date() == last.date()
        return self.range("hour") if is_today else current

    def spans(self, is_total=False, is_of_site=False):
        """The range of the question, and the one that it is compared with."""
        current = self.range()
        ranges = [current]
        compare = self.question.get("compareFilter") or {}
        if compare.get("compare"):
            to = compare.get("compare_to")
            compared = self.so_far(current) if is_of_site and not to else current
            ranges.append(previous_range(self.calendar, self.dates, compared, to))
        return [Span(self.calendar, each, is_total) for each in ranges]

    def test(self, node, name="event"):
        passes = compile_filters(self.calendar, node.get("properties"))
        event_name = node.get(name) or None
        return lambda event: event_name in (None, event["name"]) and passes(event)

    def actor(self, group_type):
        """A function with the person or the group of an event. `None`: it has none."""
        if group_type is None:
            return lambda event: event["person"]
        key = f"$group_{group_type}"
        return lambda event: text_of(event["properties"].get(key)) or None

    def by_actor(self, events, group_type=None):
        """Events by person or group, by time and then by arrival."""
        group_type = self.group_type if group_type is None else group_type
        actor, found = self.actor(group_type), {}
        for event in events:
            if (key := actor(event)) is not None:
                found.setdefault(key, []).append(event)
        for events in found.values():
            events.sort(key=lambda event: (event["time"], event["arrival"]))
        return found


class World:
    def __init__(self, given):
        self.now, self.internal = given["now"], given["internal"]
        into = dict(given["merges"])

        def person(distinct_id):
            while distinct_id in into:
                distinct_id = into[distinct_id]
            return distinct_id

        self.events = [
            {"name": name, "time": time, "arrival": arrival, "person": person(distinct_id),
             "properties": parse_properties(properties)}
            for name, time, arrival, distinct_id, properties in given["events"]
        ]
        self.earliest = min(event["time"] for event in self.events)
        self.first_seen = {}
        for event in self.events:
            seen = self.first_seen.setdefault(event["person"], event["time"])
            self.first_seen[event["person"]] = min(seen, event["time"])


# Breakdowns (QRY-30)


class Breakdown:
    def __init__(self, question):
        given = question.get("breakdownFilter") or {}
        self.listed = given.get("breakdowns") or []
        self.is_single = not self.listed and isinstance(given.get("breakdown"), str)
        if not self.listed and given.get("breakdown"):
            names = given["breakdown"]
            self.listed = [
                {"property": name, "normalize_url": given.get("breakdown_normalize_url"),
                 "histogram_bin_count": given.get("breakdown_histogram_bin_count")}
                for name in ([names] if isinstance(names, str) else names)
            ]
        display = (question.get("trendsFilter") or {}).get("display")
        by_default = 250 if display == "WorldMap" else 25
        self.limit = given.get("breakdown_limit") or by_default
        self.hides_other = bool(given.get("breakdown_hide_other_aggregation"))
        self.bins = {}

    def find_bins(self, events):
        """Divides the numbers of these events into ranges of the same width."""
        for each in self.listed:
            count, name = each.get("histogram_bin_count"), each["property"]
            if not count:
                continue
            numbers = [number_of(event["properties"].get(name)) for event in events]
            numbers = [float(number) for number in numbers if number is not None]
            if numbers:
                width = (max(numbers) - min(numbers)) / count
                bounds = [min(numbers) + width * at for at in range(count)] + [max(numbers)]
                self.bins[name, count] = bounds

    def value(self, each, event):
        value = event["properties"].get(each["property"])
        if each.get("histogram_bin_count"):
            bounds = self.bins.get((each["property"], each["histogram_bin_count"]))
            number = number_of(value)
            if bounds is None or number is None or not bounds[0] <= number <= bounds[-1]:
                return None
            at = min(bisect.bisect_right(bounds, float(number)), len(bounds) - 1)
            last = bounds[at] + 0.01 if at == len(bounds) - 1 else bounds[at]
            return f"[{text_of(bounds[at - 1])},{text_of(last)}]"
        text = text_of(value)
        if text is None:
            return None
        if each.get("normalize_url"):
            text = text.rstrip("/?#") or "/"
        return text[:400] or None

    def key(self, event):
        return tuple(self.value(each, event) for each in self.listed)

    def written(self, key, is_list=False):
        """A value in results; `None`: all others."""
        if key is None:
            texts = [OTHER] * len(self.listed)
        else:
            texts = [NO_VALUE if text is None else text for text in key]
        return texts[0] if self.is_single and not is_list else texts


def order_of(key):
    return tuple((text is not None, text or "") for text in key)


def ranked(totals):
    """Values by their totals, those that an event lacks behind all others."""
    def place(item):
        key, total = item
        return (any(text is None for text in key), -total, order_of(key))

    return [key for key, _ in sorted(totals.items(), key=place)]


# Trends


class Formula:
    def __init__(self, text):
        self.body = ast.parse(text.strip(), mode="eval").body

    def value(self, numbers):
        found = self.evaluate(self.body, numbers)
        return found if isinstance(found, float) and math.isfinite(found) else 0.0

    def evaluate(self, node, numbers):
        if isinstance(node, ast.Constant):
            return float(node.value)
        if isinstance(node, ast.Name):
            return float(numbers[ord(node.id.upper()) - ord("A")])
        if isinstance(node, ast.UnaryOp):
            inner = self.evaluate(node.operand, numbers)
            return -inner if isinstance(node.op, ast.USub) else inner
        left, right = self.evaluate(node.left, numbers), self.evaluate(node.right, numbers)
        try:
            found = {
                ast.Add: lambda: left + right, ast.Sub: lambda: left - right,
                ast.Mult: lambda: left * right, ast.Div: lambda: left / right,
                ast.Mod: lambda: left % right, ast.Pow: lambda: left**right,
            }[type(node.op)]()
        except (ZeroDivisionError, OverflowError):
            return 0.0
        return found if isinstance(found, float) and math.isfinite(found) else 0.0


def action_of(node, at):
    word = node.get("math") or "total"
    return {
        "id": node.get("event"), "type": "events", "order": at,
        "name": node.get("event") or "All events", "custom_name": node.get("custom_name"),
        "math": word, "math_property": node.get("math_property"),
        "math_group_type_index": node.get("math_group_type_index"),
    }


class Series:
    """A series of trends with its events."""

    def __init__(self, asked, node, at):
        self.node, self.at = node, at
        self.math = node.get("math") or "total"
        test = asked.test(node)
        self.events = [event for event in asked.events if test(event)]
        self.actor = {
            "dau": asked.actor(asked.group_type),
            "unique_group": asked.actor(node.get("math_group_type_index")),
            "unique_session": lambda e: text_of(e["properties"].get("$session_id")) or None,
        }.get(self.math)

    def number(self, events):
        if self.math == "total":
            return float(len(events))
        if self.actor:
            return float(len(self.actors(events)))
        name = self.node["math_property"]
        numbers = [number_of(event["properties"].get(name)) for event in events]
        return number_for(self.math, [number for number in numbers if number is not None])

    def actors(self, events):
        return {self.actor(event) for event in events} - {None}

    def numbers(self, span, events, counts_once):
        """The number of each interval."""
        cells = [[] for _ in range(len(span))]
        for event in events:
            if (at := span.index(event["time"])) is not None:
                cells[at].append(event)
        if not (counts_once and self.actor):
            return [amount(self.number(cell)) for cell in cells]
        seen, found = set(), []
        for cell in cells:
            new = self.actors(cell) - seen
            seen |= new
            found.append(len(new))
        return found


def trends(asked):
    question = asked.question
    given = question.get("trendsFilter") or {}
    display = given.get("display") or "ActionsLineGraph"
    is_total = display in TOTALS
    is_cumulative = display == "ActionsLineGraphCumulative"
    spans = asked.spans(is_total)
    all_series = [Series(asked, node, at) for at, node in enumerate(question["series"])]
    breakdown = Breakdown(question)
    formulas = given.get("formulaNodes") or []
    formulas = formulas or [{"formula": text} for text in given.get("formulas") or []]
    if not formulas and given.get("formula"):
        formulas = [{"formula": given["formula"]}]
    is_divided = bool(breakdown.listed)

    current = [e for s in all_series for e in s.events if spans[0].contains(e["time"])]
    breakdown.find_bins(current)
    values = [[()] for _ in all_series]
    by_key = []
    for at, series in enumerate(all_series):
        found = {}
        for event in series.events:
            found.setdefault(breakdown.key(event), []).append(event)
        by_key.append(found)
        if is_divided:
            totals = {}
            for key, events in found.items():
                events = [event for event in events if spans[0].contains(event["time"])]
                if events:
                    totals[key] = series.number(events)
            values[at] = ranked(totals)[: breakdown.limit]
    if formulas:
        shared = list(dict.fromkeys(key for keys in values for key in keys))
        values = [shared for _ in all_series]

    def others(at, span):
        events = [e for k, es in by_key[at].items() if k not in values[at] for e in es]
        return [event for event in events if span.contains(event["time"])]

    def result(number, at, key):
        series, span = all_series[at], spans[number]
        events = others(at, span) if key is None else by_key[at].get(key, [])
        numbers = series.numbers(span, events, is_cumulative)
        name = series.node.get("event") or "All events"
        found = {"action": action_of(series.node, at), "order": at, "label": name,
                 "count": 0, "data": [], "labels": span.labels, "days": span.days}
        if is_total:
            found["aggregated_value"] = numbers[0]
        else:
            found["data"], found["count"] = numbers, amount(exact_sum(numbers))
        if is_cumulative:
            sums = [amount(exact_sum(numbers[: at + 1])) for at in range(len(numbers))]
            found["data"], found["count"] = sums, sums[-1]
        if len(spans) > 1:
            found["compare"], found["compare_label"] = True, ["current", "previous"][number]
        if is_divided:
            value = breakdown.written(key)
            found["breakdown_value"] = value
            text = value if isinstance(value, str) else "::".join(value)
            found["label"] = text if len(all_series) == 1 else f"{name} - {text}"
        return found

    results = []
    every = range(len(all_series))
    shows_other = is_divided and not breakdown.hides_other
    if not formulas:
        for number, span in enumerate(spans):
            for at in every:
                keys = list(values[at])
                if shows_other and others(at, span):
                    keys.append(None)
                results += [result(number, at, key) for key in keys]
    for order, node in enumerate(formulas):
        formula = Formula(node["formula"])
        for number, span in enumerate(spans):
            keys = list(values[0])
            if shows_other and any(others(at, span) for at in every):
                keys.append(None)
            for key in keys:
                parts = [result(number, at, key) for at in every]
                name = node.get("custom_name") or f"Formula ({node['formula']})"
                found = {**parts[0], "action": None, "order": order, "label": name}
                if is_total:
                    inputs = [part["aggregated_value"] for part in parts]
                    found["aggregated_value"] = amount(formula.value(inputs))
                else:
                    rows = zip(*[part["data"] for part in parts])
                    found["data"] = [amount(formula.value(row)) for row in rows]
                    numbers = found["data"]
                    found["count"] = numbers[-1] if is_cumulative else amount(exact_sum(numbers))
                results.append(found)
    more = any(others(at, spans[0]) for at in every) if is_divided else None
    return {"results": results, "hasMore": more, "range": spans[0].written()}


TOTALS = ("BoldNumber", "ActionsPie", "ActionsTable", "ActionsBarValue", "WorldMap")


# Funnels (QRY-13, QRY-14, QRY-33)


def matched(events):
    """An event for each of as many steps as possible, of sets of steps. Earlier ones in the
    list are preferred."""
    event_of = {}

    def place(at, seen):
        for step in events[at]:
            if step in seen:
                continue
            seen.add(step)
            if step not in event_of or place(event_of[step], seen):
                event_of[step] = at
                return True
        return False

    for at in range(len(events)):
        place(at, set())
    return event_of


class Funnel:
    WINDOWS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800,
               "month": 31 * 86400}

    def __init__(self, asked):
        self.question = asked.question
        given = self.question.get("funnelsFilter") or {}
        self.steps = self.question["series"]
        self.tests = [asked.test(step) for step in self.steps]
        self.order = given.get("funnelOrderType") or "ordered"
        self.kind = given.get("funnelVizType") or "steps"
        unit = given.get("funnelWindowIntervalUnit") or "day"
        self.window = (given.get("funnelWindowInterval") or 14) * self.WINDOWS[unit] * SECOND
        self.exclusions = [
            (asked.test(each), each.get("funnelFromStep") or 0,
             each.get("funnelToStep", len(self.steps) - 1))
            for each in given.get("exclusions") or []
        ]
        self.attribution = given.get("breakdownAttributionType") or "first_touch"
        self.attributed_step = given.get("breakdownAttributionValue") or 0
        self.from_step = given.get("funnelFromStep") or 0
        self.to_step = given.get("funnelToStep", len(self.steps) - 1)
        self.bins = given.get("binCount")
        self.shown = None

    def mark(self, events):
        """Events with the steps that each is, and the exclusions."""
        return [
            {"time": event["time"], "event": event,
             "steps": {at for at, test in enumerate(self.tests) if test(event)},
             "bans": [(a, b) for test, a, b in self.exclusions if test(event)]}
            for event in events
        ]

    def person(self, events, begins=None):
        """The times of the steps of a person, and whether an exclusion is in between.
        `begins`: attempts begin in this range."""
        if self.order == "unordered":
            attempts = self.unordered(events)
        else:
            find = self.strict if self.order == "strict" else self.ordered
            starts = [
                at for at, event in enumerate(events)
                if 0 in event["steps"] and (begins is None or begins(event["time"]))
            ]
            attempts = [find(events, at) for at in starts]
            if self.order == "ordered":
                attempts = self.continued(attempts)
        if not attempts:
            return [], False
        most = max(len(times) for times, _ in attempts)
        clean = [times for times, is_banned in attempts if len(times) == most and not is_banned]
        if not clean:
            return [], True
        if self.order == "strict":
            return clean[0], False
        # The one that is done first; of those, the one that begins last.
        return min(clean, key=lambda times: (times[-1], -times[0], times)), False

    def ordered(self, events, start):
        """The attempt that begins at an event, with each step as early as possible. Steps at
        the same time are different events."""
        first = events[start]["time"]
        by_time = {}
        for event in events:
            if first <= event["time"] <= first + self.window:
                by_time.setdefault(event["time"], []).append(event["steps"])
        times, together = [first], {0}
        for step in range(1, len(self.steps)):
            for time in sorted(time for time in by_time if time >= times[-1]):
                now = {*together, step} if time == times[-1] else {step}
                if self.can_do(by_time[time], now):
                    break
            else:
                break
            times.append(time)
            together = now
        done = self.banned_after(times, events)
        return times, done is not None, done

    def continued(self, attempts):
        """Of the attempts that would do a step with the same event, only the one that begins
        last goes on. One that is excluded ends with its next step."""
        kept, taken = [], set()
        for times, is_banned, done in sorted(attempts, key=lambda attempt: -attempt[0][0]):
            steps = list(enumerate(times))[1:]
            # Of steps at the same time, the last one says how far the attempt is then.
            if not any(step in taken for step in steps if step[1] not in times[step[0] + 1 :]):
                kept.append((times, is_banned))
            taken.update(steps[:done] if is_banned else steps)
        return kept

    def can_do(self, events, steps):
        """Whether each of the steps can be another one of the events."""
        return len(matched([event & steps for event in events])) == len(steps)

    def banned_after(self, times, events):
        """The steps that an attempt has done when an excluded event is between its steps.
        Such an event comes before the steps of the same time."""
        found = []
        for event in events:
            time = event["time"]
            done = sum(step < time for step in times)
            for after, before in event["bans"]:
                if after < done <= before and time <= times[0] + self.window:
                    found.append(done)
        return min(found, default=None)

    def strict(self, events, start):
        times, is_banned = [], False
        for step, event in enumerate(events[start : start + len(self.steps) + 1]):
            time = event["time"]
            if times and time > times[0] + self.window:
                break
            if times and any(a < len(times) <= b for a, b in event["bans"]):
                is_banned = True
            if step == len(self.steps) or step not in event["steps"]:
                break
            times.append(time)
        return times, is_banned

    def unordered(self, events):
        """For each event the attempts that end with it: with all events of the window, and
        with those after the last excluded event."""
        attempts = []
        banned = sorted(event["time"] for event in events if event["bans"])
        for end in sorted({event["time"] for event in events if event["steps"]}):
            window = [e for e in events if end - self.window <= e["time"] <= end]
            most = self.chosen(window)
            before = [time for time in banned if time <= end]
            window = [e for e in window if not before or e["time"] >= before[-1]]
            times = self.chosen(window)
            if len(most) > len(times):
                attempts.append((most, True))
            if times:
                after = [time for time in banned if end < time <= times[0] + self.window]
                attempts.append((times, len(times) < len(self.steps) and bool(after)))
        return attempts

    def chosen(self, events):
        """The times of as many steps as possible, each another event, the latest ones."""
        events = sorted(events, key=lambda event: -event["time"])
        found = matched([event["steps"] for event in events])
        return sorted(events[at]["time"] for at in found.values())

    def by_value(self, events, key):
        """The values that a person belongs to, with the events that count for each. Values
        that are not shown are one: `None`."""
        def shown(value):
            return value if self.shown is None or value in self.shown else None

        if self.attribution in ("all_events", "step"):
            return self.divided(events, lambda event: shown(key(event)))
        return [(shown(value), events) for value, events in self.divided(events, key)]

    def divided(self, events, key):
        if self.attribution == "all_events":
            found = {}
            for event in events:
                found.setdefault(key(event["event"]), []).append(event)
            return list(found.items())
        if self.attribution == "step":
            of_step = [event for event in events if self.attributed_step in event["steps"]]
            found = {key(event["event"]): None for event in of_step}
            for value in found:
                found[value] = [
                    event if key(event["event"]) == value
                    else {**event, "steps": event["steps"] - {self.attributed_step}}
                    for event in events
                ]
            return list(found.items())
        values = [
            (event["time"], value) for event in events
            if event["steps"] and has_value(value := key(event["event"]))
        ]
        if not values:
            return [(key({"properties": {}}), events)]
        times = [time for time, _ in values]
        touch = min(times) if self.attribution == "first_touch" else max(times)
        return [(min((v for time, v in values if time == touch), key=order_of), events)]


def has_value(key):
    return any(text is not None for text in key)


def seconds(times):
    return sum(times) / (len(times) * SECOND) if times else None


def middle(times):
    values = sorted(time / SECOND for time in times)
    return number_for("median", values) if values else None


def maybe(number):
    return None if number is None else amount(number)


def hundredths(number):
    return math.floor(number * 100 + 0.5) / 100


def funnels(asked):
    funnel = Funnel(asked)
    span = Span(asked.calendar, asked.range(), funnel.kind != "trends")
    persons = asked.by_actor(event for event in asked.events if span.contains(event["time"]))
    persons = [funnel.mark(events) for events in persons.values()]
    breakdown = Breakdown(asked.question)

    def outcomes(key):
        """The outcomes of the persons by value."""
        found = {}
        for events in persons:
            for value, events in funnel.by_value(events, key):
                times, is_banned = funnel.person(events)
                if times and not is_banned:
                    found.setdefault(value, []).append(times)
        return found

    def steps_of(outcomes, value):
        results = []
        for at, step in enumerate(funnel.steps):
            done = [times for times in outcomes if len(times) > at]
            since = [times[at] - times[at - 1] for times in done] if at else []
            is_named = funnel.order != "unordered"
            result = {
                "action_id": step.get("event") if is_named else None,
                "name": step.get("event") or "All events",
                "custom_name": step.get("custom_name") if is_named else None,
                "order": at, "count": len(done), "type": "events", "people": [],
                "average_conversion_time": maybe(seconds(since)),
                "median_conversion_time": maybe(middle(since)),
            }
            if not is_named:
                result["name"] = f"Completed {at + 1} step" + ("s" if at else "")
            if value is not None:
                result["breakdown"] = result["breakdown_value"] = value
            results.append(result)
        return results

    def begun(key):
        """By value, for each bucket: the persons who begin, and those of them who convert."""
        found = {}
        for events in persons:
            for value, events in funnel.by_value(events, key):
                for at in {span.index(event["time"]) for event in events if 0 in event["steps"]}:
                    begin, end = span.boundaries[at], span.boundaries[at + 1]
                    times, _ = funnel.person(events, lambda time: begin <= time < end)
                    if times:
                        buckets = found.setdefault(value, [[0, 0] for _ in range(len(span))])
                        buckets[at][0] += len(times) > funnel.from_step
                        buckets[at][1] += len(times) > funnel.to_step
        return found

    def rates_of(buckets, value):
        rates = [
            amount(hundredths(converted * 100 / began) if began else 0)
            for began, converted in buckets or [(0, 0)] * len(span)
        ]
        result = {"count": len(span), "data": rates, "days": span.days,
                  "labels": span.labels}
        if value is not None:
            result["breakdown_value"] = value
        return result

    def times_of(outcomes):
        times = [
            times[funnel.to_step] - times[funnel.from_step]
            for times in outcomes if len(times) > funnel.to_step
        ]
        average = seconds(times)
        average = None if average is None else amount(hundredths(average))
        return {"average_conversion_time": average, "bins": bins_of(times, funnel.bins)}

    is_trend = funnel.kind == "trends"
    count = begun if is_trend else outcomes
    show = rates_of if is_trend else steps_of
    more = None
    if not breakdown.listed:
        everyone = count(lambda event: ()).get((), [])
        is_time = funnel.kind == "time_to_convert"
        results = times_of(everyone) if is_time else show(everyone, None)
        results = [results] if is_trend else results
    else:
        by_value = count(breakdown.key)
        # The persons who begin, of rates those of all buckets together.
        totals = {
            value: sum(began for began, _ in found) if is_trend else len(found)
            for value, found in by_value.items()
        }
        values = ranked(totals)
        more = len(values) > breakdown.limit
        values = values[: breakdown.limit]
        # All other values are one, so that a person counts once in it.
        funnel.shown = set(values)
        by_value = count(breakdown.key)
        if more and not breakdown.hides_other:
            values.append(None)
        results = [
            show(by_value.get(value, []), breakdown.written(value, is_list=True))
            for value in values
        ]
    return {"results": results, "hasMore": more, "range": span.written()}


def bins_of(times, count):
    """The beginnings of bins in seconds, with the times in them, and one bin more."""
    if not times:
        return []
    count = count or min(max(1, math.ceil(round(len(times) ** (1 / 3), 9))), 90)
    least = min(times) // SECOND
    width = -(-(-(-max(times) // SECOND) - least) // count) or 60
    bins = [[least + at * width, 0] for at in range(count + 1)]
    for time in times:
        bins[(time // SECOND - least) // width][1] += 1
    return bins


# Retention (QRY-15, QRY-16)


def retention(asked):
    given = asked.question["retentionFilter"]
    period = (given.get("period") or "Day").lower()
    total = given.get("totalIntervals") or 8
    unit = UNIT_OF[period]
    calendar = asked.calendar
    last = range_end(calendar, asked.dates, period) - 1
    if asked.dates.begin is None:
        begin = calendar.floor(unit, last)
        for _ in range(total - 1):
            begin = calendar.floor(unit, begin - 1)
    else:
        begin = asked.range(period).begin
    whole = Range(calendar.floor(unit, begin), calendar.ceiling(unit, last), period, False)
    span = Span(calendar, whole)
    page = {"id": "$pageview"}
    is_target = asked.test(given.get("targetEntity") or page, "id")
    is_return = asked.test(given.get("returningEntity") or page, "id")
    is_first = given.get("retentionType") == "retention_first_time"
    occurrences = given.get("minimumOccurrences") or 1
    breakdown = Breakdown(asked.question)

    def person(events):
        """The periods in which a person begins, each with those in which it returns."""
        targets = [event["time"] for event in events if is_target(event)]
        begins = {span.index(time) for time in (targets[:1] if is_first else targets)}
        returns = [0] * len(span)
        for event in events:
            if is_return(event) and (at := span.index(event["time"])) is not None:
                returns[at] += 1
        found = {}
        for begin in begins - {None}:
            after = range(begin + 1, min(begin + total, len(span)))
            back = {at - begin for at in after if returns[at] >= occurrences}
            if given.get("cumulative"):
                back = set(range(1, max(back, default=0) + 1))
            found[begin] = back
        return found

    def counts(key):
        found = {}
        for events in asked.by_actor(asked.events).values():
            by_value = {}
            for event in events:
                by_value.setdefault(key(event), []).append(event)
            for value, events in by_value.items():
                if begun := person(events):
                    found.setdefault(value, []).append(begun)
        return found

    def rows(persons, value):
        name = period.capitalize()
        results = []
        for begin in range(len(span)):
            own = [begun[begin] for begun in persons if begin in begun]
            numbers = [len(own)]
            for after in range(1, min(total, len(span) - begin)):
                numbers.append(sum(after in back for back in own))
            values = [{"count": n, "label": f"{name} {at}"} for at, n in enumerate(numbers)]
            result = {"values": values, "label": f"{name} {begin}",
                      "date": timestamp(span.boundaries[begin])}
            if value is not None:
                result["breakdown_value"] = value
            results.append(result)
        return results

    written = {"date_from": timestamp(span.begin), "date_to": timestamp(span.end - 1)}
    if not breakdown.listed:
        results = rows(counts(lambda event: ()).get((), []), None)
        return {"results": results, "hasMore": None, "range": written}
    totals = {value: len(persons) for value, persons in counts(breakdown.key).items()}
    values = ranked(totals)
    more = len(values) > breakdown.limit
    values = values[: breakdown.limit]
    shown = set(values)

    def key(event):
        value = breakdown.key(event)
        return value if value in shown else None

    by_value = counts(key)
    if more and not breakdown.hides_other:
        values.append(None)
    results = []
    for value in values:
        results += rows(by_value.get(value, []), breakdown.written(value))
    return {"results": results, "hasMore": more, "range": written}


# Stickiness and lifecycle (QRY-17, QRY-18)


def stickiness(asked):
    given = asked.question.get("stickinessFilter") or {}
    criteria = given.get("stickinessCriteria") or {"operator": "gte", "value": 1}
    is_cumulative = given.get("computedAs") == "cumulative"
    spans = asked.spans()
    results = []

    def is_active(count):
        wanted = criteria["value"]
        compared = {"gte": count >= wanted, "lte": count <= wanted, "exact": count == wanted}
        return count > 0 and compared[criteria["operator"]]

    for number, span in enumerate(spans):
        for at, node in enumerate(asked.question["series"]):
            test = asked.test(node)
            events = [event for event in asked.events if test(event)]
            group_type = node.get("math_group_type_index")
            counts = [0] * len(span)
            for events in asked.by_actor(events, group_type).values():
                active = [0] * len(span)
                for event in events:
                    if (interval := span.index(event["time"])) is not None:
                        active[interval] += 1
                if intervals := sum(is_active(count) for count in active):
                    counts[intervals - 1] += 1
            data = [sum(counts[at:]) for at in range(len(span))] if is_cumulative else counts
            more = " or more" if is_cumulative else ""
            numbers = range(1, len(span) + 1)
            result = {
                "action": action_of(node, at), "label": node.get("event") or "All events",
                "count": sum(counts), "data": data, "days": list(numbers),
                "labels": [f"{n} {asked.interval}{'s' if n > 1 else ''}{more}" for n in numbers],
            }
            if len(spans) > 1:
                result["compare"] = True
                result["compare_label"] = ["current", "previous"][number]
            results.append(result)
    return {"results": results, "hasMore": None, "range": spans[0].written()}


def lifecycle(asked):
    node = asked.question["series"][0]
    span = Span(asked.calendar, asked.range())
    first = span.boundaries[0]
    before = asked.calendar.floor(UNIT_OF[asked.interval], first - 1)
    test = asked.test(node)
    counts = {word: [0] * len(span) for word in ("new", "returning", "resurrecting", "dormant")}
    for person, events in asked.by_actor(e for e in asked.events if test(e)).items():
        active = {span.index(event["time"]) for event in events} - {None}
        if any(before <= event["time"] < first for event in events):
            active.add(-1)
        seen = bisect.bisect_right(span.boundaries, asked.world.first_seen[person]) - 1
        for at in range(len(span)):
            if at in active:
                word = "returning" if at - 1 in active else "resurrecting"
                counts["new" if at == seen else word][at] += 1
            elif at - 1 in active:
                counts["dormant"][at] += 1
    results = []
    for word, numbers in counts.items():
        data = [-number for number in numbers] if word == "dormant" else numbers
        name = node.get("event") or "All events"
        results.append({"action": action_of(node, 0), "label": f"{name} - {word}",
                        "status": word, "count": sum(data), "data": data, "days": span.days,
                        "labels": span.labels})
    return {"results": results, "hasMore": None, "range": span.written()}


# Paths (QRY-19)


def without_slash(text):
    return text[:-1] if len(text) > 1 and text.endswith("/") else text


def paths(asked):
    given = asked.question["pathsFilter"]
    kinds = given.get("includeEventTypes") or []
    excluded = given.get("excludeEvents") or []
    groupings = given.get("pathGroupings") or []
    limit = given.get("stepLimit") or 5
    begin, end = (without_slash(given.get(name) or "") for name in ("startPoint", "endPoint"))
    whole = asked.range("day")
    span = Span(asked.calendar, whole, True)

    def name_of(event):
        name = event["name"]
        is_kind = {"$pageview": name == "$pageview", "$screen": name == "$screen",
                   "custom_event": not name.startswith("$")}
        if kinds and not any(is_kind[kind] for kind in kinds):
            return None
        if name == "$pageview":
            name = without_slash(text_of(event["properties"].get("$current_url")) or "")
        elif name == "$screen":
            name = text_of(event["properties"].get("$screen_name")) or ""
        for grouping in groupings:
            pattern = ".*?".join(re.escape(part) for part in grouping.split("*") if part)
            if re.search(pattern, name, re.DOTALL):
                name = grouping
                break
        return name if name and name not in excluded else None

    def part(path):
        """The part of a path that counts."""
        names = [name for _, name in path]
        if begin:
            if begin not in names:
                return []
            path = path[names.index(begin):]
            names = [name for _, name in path]
        if end:
            if end not in names:
                return []
            path = path[: names.index(end) + 1]
        if len(path) <= limit:
            return path
        if begin and end:
            half = limit // 2
            return path[:half] + [(path[half][0], "...")] + path[len(path) - half :]
        return path[-limit:] if end else path[:limit]

    edges = {}
    for events in asked.by_actor(e for e in asked.events if span.contains(e["time"])).values():
        steps = sorted((event["time"], name_of(event)) for event in events if name_of(event))
        pieces = []
        for step in steps:
            if not pieces or step[0] - pieces[-1][-1][0] >= 30 * 60 * SECOND:
                pieces.append([step])
            elif pieces[-1][-1][1] == step[1]:
                pieces[-1][-1] = step
            else:
                pieces[-1].append(step)
        for path in map(part, pieces):
            for at, (one, two) in enumerate(zip(path, path[1:]), 1):
                edges.setdefault((at, one[1], two[1]), []).append(two[0] - one[0])
    least, most = given.get("minEdgeWeight") or 0, given.get("maxEdgeWeight")
    kept = [
        (-len(times), edge, times) for edge, times in edges.items()
        if len(times) >= least and (most is None or len(times) <= most)
    ]
    kept.sort()
    count = given.get("edgeLimit") or 50
    results = [
        {"source": f"{at}_{source}", "target": f"{at + 1}_{target}", "value": len(times),
         "average_conversion_time": amount(sum(times) / (len(times) * 1000))}
        for _, (at, source, target), times in kept[:count]
    ]
    return {"results": results, "hasMore": len(kept) > count, "range": span.written()}


# The web overview (QRY-61 to QRY-65)


DAY = 24 * CLOCK["h"]
# The view that has the value of a session, and the property. `None`: each view has a value.
UTM = {f"$entry_utm_{name}": (0, f"utm_{name}")
       for name in ("source", "medium", "campaign", "term", "content")}
SESSION_PROPERTIES = {"$entry_pathname": (0, "$pathname"), "$end_pathname": (-1, "$pathname"),
                      "$entry_referring_domain": (0, "$referring_domain"), **UTM}
WEB_VALUES = {"Page": (None, "$pathname"), "InitialPage": (0, "$pathname"),
              "ExitPage": (-1, "$pathname"), "InitialReferringDomain": (0, "$referring_domain"),
              "InitialUTMSource": (0, "utm_source"), "InitialUTMMedium": (0, "utm_medium"),
              "Browser": (None, "$browser"), "Country": (None, "$geoip_country_code")}


def sessions_of(events):
    """The sessions of events of a person, which are sorted."""
    by_id, without_id, found = {}, None, []
    for event in events:
        name = text_of(event["properties"].get("$session_id")) or None
        own = by_id.get(name)
        if name is None and without_id:
            pause = event["time"] - without_id[-1]["time"]
            own = without_id if pause < 30 * 60 * SECOND else None
        if own is None:
            own = []
            found.append(own)
        if name is None:
            without_id = own
        else:
            by_id[name] = own
        own.append(event)
    return found


class Web:
    """The sessions of a question about a site."""

    def __init__(self, asked):
        given = asked.question.get("properties") or []
        is_list = isinstance(given, list)
        of_sessions = [each for each in given if each.get("type") == "session"] if is_list else []
        of_views = [each for each in given if each not in of_sessions] if is_list else given
        tests = [compile_filters(asked.calendar, of_views)]
        if asked.question.get("filterTestAccounts"):
            tests.append(compile_filters(asked.calendar, asked.world.internal))
        self.counts = lambda view: all(test(view) for test in tests)
        self.session_tests = []
        for each in of_sessions:
            place, name = SESSION_PROPERTIES[each["key"]]
            test = compile_filter(asked.calendar, {**each, "key": name})
            self.session_tests.append((place, test))
        self.persons = asked.by_actor(asked.world.events)

    def sessions(self, span):
        """The sessions that begin in a range and count."""
        found = []
        for person, events in self.persons.items():
            near = [e for e in events if span.begin - DAY <= e["time"] < span.end + DAY]
            for own in sessions_of(near):
                views = [event for event in own if event["name"] == "$pageview"]
                counted = [view for view in views if self.counts(view)]
                if not span.contains(own[0]["time"]) or not counted:
                    continue
                if not all(test(views[place]) for place, test in self.session_tests):
                    continue
                length = own[-1]["time"] - own[0]["time"]
                has_clicks = any(event["name"] == "$autocapture" for event in own)
                found.append({
                    "person": person, "begin": own[0]["time"], "length": length,
                    "views": counted, "ends": {0: views[0], -1: views[-1]},
                    "is_bounce": len(views) == 1 and not has_clicks and length < 10 * SECOND,
                })
        return found


def visitors_of(sessions):
    return len({session["person"] for session in sessions})


def views_of(sessions):
    return sum(len(session["views"]) for session in sessions)


def bounce_rate(sessions):
    bounces = sum(session["is_bounce"] for session in sessions)
    return bounces / len(sessions) if sessions else None


def duration_of(sessions):
    length = sum(session["length"] for session in sessions)
    return float(length) / 1e6 / len(sessions) if sessions else None


def web_overview(asked):
    web, spans = Web(asked), asked.spans(True, is_of_site=True)
    found = [web.sessions(span) for span in spans]

    def percent(sessions):
        rate = bounce_rate(sessions)
        return None if rate is None else rate * 100

    results = []
    for key, kind, number in [
        ("visitors", "unit", visitors_of), ("views", "unit", views_of),
        ("sessions", "unit", len), ("session duration", "duration_s", duration_of),
        ("bounce rate", "percentage", percent),
    ]:
        value = number(found[0])
        before = number(found[1]) if len(found) > 1 else None
        change = None
        if value is not None and before:
            change = round(100.0 * (value - before) / before)
        results.append({"key": key, "kind": kind, "value": maybe(value),
                        "isIncreaseBad": True if kind == "percentage" else None,
                        "previous": maybe(before), "changeFromPreviousPct": change})
    return {"results": results, "hasMore": None, "range": spans[0].written()}


def web_trends(asked):
    web, span = Web(asked), Span(asked.calendar, asked.range())
    buckets = [[] for _ in range(len(span))]
    for session in web.sessions(span):
        buckets[span.index(session["begin"])].append(session)
    numbers = {
        "UniqueUsers": visitors_of, "PageViews": views_of, "Sessions": len,
        "Bounces": lambda sessions: sum(session["is_bounce"] for session in sessions),
        "SessionDuration": duration_of,
    }
    results = []
    for day, sessions in zip(span.days, buckets):
        metrics = {word: numbers[word](sessions) for word in asked.question["metrics"]}
        metrics = {word: amount(n) for word, n in metrics.items() if n is not None}
        results.append({"bucket": day, "metrics": metrics})
    return {"results": results, "hasMore": None, "range": span.written()}


def web_table(asked):
    question = asked.question
    place, name = WEB_VALUES[question["breakdownBy"]]
    has_bounces = bool(question.get("includeBounceRate"))
    web, spans = Web(asked), asked.spans(True, is_of_site=True)
    rows = {}

    def value_of(view):
        return (text_of(view["properties"].get(name)) or "")[:400] or None

    def row(value):
        new = [{"persons": set(), "views": 0, "sessions": []} for _ in spans]
        return rows.setdefault(value, new)

    for number, span in enumerate(spans):
        for session in web.sessions(span):
            first = session["ends"][0]
            at = session["views"] if place is None else [session["ends"][place]] * len(
                session["views"])
            for view in at:
                own = row(value_of(view))[number]
                own["persons"].add(session["person"])
                own["views"] += 1
            is_page = question["breakdownBy"] == "Page"
            for value in {value_of(view) for view in ([first] if is_page else at)}:
                row(value)[number]["sessions"].append(session)
    shows_missing = name.startswith("utm_")
    rows = [
        (value, [(len(each["persons"]), each["views"], bounce_rate(each["sessions"]))
                 for each in found])
        for value, found in rows.items()
        if any(each["persons"] for each in found) and (value is not None or shows_missing)
    ]
    column, direction = question.get("orderBy") or ("Visitors", "DESC")
    sign = 1 if direction == "ASC" else -1

    def order(item):
        value, found = item
        visitors = [numbers[0] for numbers in found]
        views = [numbers[1] for numbers in found]
        rate = found[0][2]
        first = {
            "Visitors": [sign * number for number in visitors],
            "Views": [sign * number for number in views],
            "BounceRate": [rate is None, sign * (rate or 0)],
        }[column]
        rest = [-number for number in visitors], [-number for number in views]
        return first, rest, value is None, value or ""

    rows.sort(key=order)
    counted = 1 if column == "Views" else 0
    total = sum(found[0][counted] for _, found in rows)

    def pair(found, at):
        numbers = [numbers[at] for numbers in found]
        return [maybe(number) for number in [*numbers, None][:2]]

    def cells(value, found):
        part = found[0][counted] / total if total else 0
        if column == "BounceRate":
            part = found[0][2] or 0
        rates = [pair(found, 2)] if has_bounces else []
        return [value, pair(found, 0), pair(found, 1), *rates, amount(part)]

    skipped, most = question.get("offset") or 0, question.get("limit") or 100
    results = [cells(*each) for each in rows[skipped : skipped + most]]
    more = len(rows) > skipped + most
    return {"results": results, "hasMore": more, "range": spans[0].written()}


KINDS = {"TrendsQuery": trends, "FunnelsQuery": funnels, "RetentionQuery": retention,
         "StickinessQuery": stickiness, "LifecycleQuery": lifecycle, "PathsQuery": paths,
         "WebOverviewQuery": web_overview, "WebTrendsQuery": web_trends,
         "WebStatsTableQuery": web_table}


def main():
    given = json.load(sys.stdin)
    world = World(given)
    answers = []
    for each in given["questions"]:
        answers.append(KINDS[each["question"]["kind"]](Asked(world, each)))
    json.dump(answers, sys.stdout, ensure_ascii=False)


main()
