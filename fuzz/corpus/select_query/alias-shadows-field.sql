SELECT lower(event) AS event, count() AS `count` FROM events GROUP BY event, events.event HAVING `count` > 1 ORDER BY upper(events.event), event
