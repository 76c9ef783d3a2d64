SELECT toStartOfDay(timestamp) AS day, count() AS n, uniq(person_id)
FROM events
WHERE event = '$pageview' AND timestamp >= now() - INTERVAL 7 DAY AND {filters}
GROUP BY day
ORDER BY day
