//! Tests of the normal form.

use super::normal;

#[test]
fn questions_have_one_normal_form() {
    for (text, expected) in [
        ("select event from events;", "SELECT event FROM events LIMIT 100"),
        (
            "SELECT e.event AS event, count() FROM events AS e GROUP BY 1 ORDER BY 2 desc, event asc",
            "SELECT event, count() FROM events GROUP BY event ORDER BY count() DESC, event LIMIT 100",
        ),
        (
            "SELECT toStartOfDay(timestamp) AS day, uniqExact(person_id) AS n FROM events \
             WHERE event = '$pageview' AND timestamp >= now() - INTERVAL 7 days \
             GROUP BY toStartOfDay(timestamp) HAVING n > 5 ORDER BY day LIMIT 10 OFFSET 20",
            "SELECT toStartOfDay(timestamp) AS day, uniq(person_id) AS n FROM events \
             WHERE event = '$pageview' AND timestamp >= now() - INTERVAL 7 DAY \
             GROUP BY day HAVING n > 5 ORDER BY day LIMIT 10 OFFSET 20",
        ),
        (
            "SELECT properties.$browser, person.properties['a b'].c, group_0.properties.name, \
             session.id, person.id FROM events",
            "SELECT properties.$browser, person.properties.`a b`.c, group_0.properties.name, \
             session.id, person_id FROM events LIMIT 100",
        ),
        (
            "SELECT * FROM events",
            "SELECT uuid, event, timestamp, distinct_id, person_id, properties FROM events LIMIT 100",
        ),
        (
            "SELECT p.*, p.properties.email AS email FROM persons p",
            "Expected a name after `.`, found `*` (line 1, column 10)",
        ),
        (
            "SELECT *, persons.properties.email AS email FROM persons WHERE is_identified",
            "SELECT id, created_at, properties, is_identified, distinct_ids, \
             properties.email AS email FROM persons WHERE is_identified LIMIT 100",
        ),
        (
            "SELECT index, key, properties.name, created_at FROM groups",
            "SELECT index, key, properties.name, created_at FROM groups LIMIT 100",
        ),
        (
            "SELECT entry_utm_source, avg(duration), countIf(is_bounce) / count(*) FROM sessions \
             GROUP BY entry_utm_source",
            "SELECT entry_utm_source, avg(duration), countIf(is_bounce) / count() FROM sessions \
             GROUP BY entry_utm_source LIMIT 100",
        ),
        (
            "SELECT COUNT(DISTINCT distinct_id), median(toFloat(properties.x)), \
             quantile(0.90)(properties.x), QUANTILE(0.5)(properties.y), sumIf(1, event = 'a'), \
             quantileIf(1)(properties.x, true), argMax(event, timestamp), groupUniqArray(event), \
             any(event), uniqIf(event, timestamp > '2026-01-01') FROM events",
            "SELECT uniq(distinct_id), median(toFloat(properties.x)), \
             quantile(0.9)(properties.x), median(properties.y), sumIf(1, event = 'a'), \
             quantileIf(1.0)(properties.x, true), argMax(event, timestamp), groupUniqArray(event), \
             any(event), uniqIf(event, timestamp > '2026-01-01') FROM events LIMIT 100",
        ),
        (
            "SELECT CASE WHEN event = 'a' THEN 1 ELSE 2 END AS x, \
             CASE event WHEN 'a' THEN 1 WHEN 'b' THEN 2 END AS y FROM events",
            "SELECT multiIf(event = 'a', 1, 2) AS x, \
             multiIf(event = 'a', 1, event = 'b', 2, NULL) AS y FROM events LIMIT 100",
        ),
        (
            "SELECT CAST(properties.a AS Int) AS a, properties.b::Float AS b, '2026-01-01'::date AS d, \
             -properties.n::int AS n FROM events",
            "SELECT toInt(properties.a) AS a, toFloat(properties.b) AS b, toDate('2026-01-01') AS d, \
             -toInt(properties.n) AS n FROM events LIMIT 100",
        ),
        (
            "SELECT 'a' || event || 'b' AS t, concat('a', 'b') || 'c' AS u FROM events",
            "SELECT concat('a', event, 'b') AS t, concat('a', 'b', 'c') AS u FROM events LIMIT 100",
        ),
        (
            "SELECT (1 + 2) * 3 AS a, 1 + (2 * 3) AS b, 1 - (2 - 3) AS c, 1 - 2 - 3 AS d, \
             -(1 + 2) AS e, -(-properties.x) AS f, 6 / (2 * 3) AS g FROM events",
            "SELECT (1 + 2) * 3 AS a, 1 + 2 * 3 AS b, 1 - (2 - 3) AS c, 1 - 2 - 3 AS d, \
             -(1 + 2) AS e, -(-properties.x) AS f, 6 / (2 * 3) AS g FROM events LIMIT 100",
        ),
        (
            "SELECT event FROM events WHERE (event = 'a' OR event = 'b') AND NOT (event = 'c') \
             AND (event IS NULL) = false AND event NOT LIKE '%x' AND event ILIKE 'y_' \
             AND properties.n BETWEEN 1 AND 2 AND NOT (NOT properties.yes)",
            "SELECT event FROM events WHERE (event = 'a' OR event = 'b') AND NOT event = 'c' \
             AND (event IS NULL) = false AND event NOT LIKE '%x' AND event ILIKE 'y_' \
             AND properties.n BETWEEN 1 AND 2 AND NOT (NOT properties.yes) LIMIT 100",
        ),
        (
            "SELECT event FROM events WHERE {filters} AND event = {name} AND properties.n > {number} \
             AND properties.m IN ({half}, {yes}, {nothing}) LIMIT {limit}",
            "SELECT event FROM events WHERE event = 'it\\'s' AND properties.n > -5 \
             AND properties.m IN (0.5, true, NULL) AND {filters} LIMIT 7",
        ),
        (
            "SELECT event FROM events WHERE {filters}",
            "SELECT event FROM events WHERE {filters} LIMIT 100",
        ),
        (
            "SELECT event FROM events WHERE (event = 'a' OR event = 'b') AND {filters}",
            "SELECT event FROM events WHERE (event = 'a' OR event = 'b') AND {filters} LIMIT 100",
        ),
        (
            "SELECT day, max(n) FROM (SELECT toStartOfDay(timestamp) AS day, count() AS n FROM events \
             GROUP BY day, event) s WHERE s.n > 1 GROUP BY s.day",
            "SELECT day, max(n) FROM (SELECT toStartOfDay(timestamp) AS day, count() AS n FROM events \
             GROUP BY day, event) AS t WHERE n > 1 GROUP BY day LIMIT 100",
        ),
        (
            "SELECT `count()`, p.plan AS plan FROM (SELECT count(), person.properties AS p FROM events \
             GROUP BY p)",
            "SELECT `count()`, p.plan AS plan FROM (SELECT count(), person.properties AS p FROM events \
             GROUP BY p) AS t LIMIT 100",
        ),
        (
            "SELECT count() FROM events WHERE person_id IN (SELECT person_id FROM events \
             WHERE event = 'paid' LIMIT 5) AND event NOT IN (SELECT event FROM events)",
            "SELECT count() FROM events WHERE person_id IN (SELECT person_id FROM events \
             WHERE event = 'paid' LIMIT 5) AND event NOT IN (SELECT event FROM events) LIMIT 100",
        ),
        // An alias is meant where it can be, and a field after the name of its table.
        (
            "SELECT lower(event) AS event, count() AS n FROM events GROUP BY event \
             HAVING n > 1 AND event != 'x' ORDER BY n + 1, lower(events.event)",
            "SELECT lower(event) AS event, count() AS n FROM events GROUP BY event \
             HAVING n > 1 AND event != 'x' ORDER BY n + 1, event LIMIT 100",
        ),
        (
            "SELECT lower(event) AS event FROM events GROUP BY event, events.event ORDER BY events.event",
            "SELECT lower(event) AS event FROM events GROUP BY event, events.event ORDER BY events.event \
             LIMIT 100",
        ),
        (
            "SELECT max(timestamp) AS timestamp FROM events HAVING max(timestamp) > min(timestamp)",
            "SELECT max(timestamp) AS timestamp FROM events \
             HAVING timestamp > min(events.timestamp) LIMIT 100",
        ),
        (
            "SELECT 5, 6 AS six, event FROM events ORDER BY 1, six, event",
            "SELECT 5, 6 AS six, event FROM events ORDER BY 1, six, event LIMIT 100",
        ),
        (
            "SELECT DISTINCT event AS `a b`, uuid AS \"end\" FROM events ORDER BY `a b`",
            "SELECT DISTINCT event AS `a b`, uuid AS `end` FROM events ORDER BY `a b` LIMIT 100",
        ),
        (
            "SELECT t.t, t.t.x AS x FROM (SELECT properties AS t FROM events) AS t",
            "SELECT t, t.t.x AS x FROM (SELECT properties AS t FROM events) AS t LIMIT 100",
        ),
        (
            "SELECT match(event, '^a.*b$') AS m, extract(properties.$current_url, 'id=(\\\\d+)') AS e, \
             dateDiff('Days', timestamp, now()) AS d, domain(properties.u) AS h, path(properties.u) AS p, \
             round(properties.x, 2) AS r, least(1, 2) AS l, today() AS t FROM events",
            "SELECT match(event, '^a.*b$') AS m, extract(properties.$current_url, 'id=(\\\\d+)') AS e, \
             dateDiff('day', timestamp, now()) AS d, domain(properties.u) AS h, path(properties.u) AS p, \
             round(properties.x, 2) AS r, least(1, 2) AS l, today() AS t FROM events LIMIT 100",
        ),
        (
            "SELECT timestamp + INTERVAL 1 MONTH AS a, toDate(timestamp) - INTERVAL 2 week AS b, \
             (timestamp - timestamp) + 1 AS c FROM events",
            "SELECT timestamp + INTERVAL 1 MONTH AS a, toDate(timestamp) - INTERVAL 2 WEEK AS b, \
             timestamp - timestamp + 1 AS c FROM events LIMIT 100",
        ),
        ("/* a */ SELECT -- b\n event FROM events", "SELECT event FROM events LIMIT 100"),
        (
            "SELECT properties.from, properties.`from` AS f FROM events",
            "SELECT properties.`from`, properties.`from` AS f FROM events LIMIT 100",
        ),
    ] {
        let found = normal(text);
        assert_eq!(found, expected, "{text}");
        if found.starts_with("SELECT") {
            assert_eq!(normal(&found), found, "read again");
        }
    }
}
