SELECT event, properties.x, count() FROM events GROUP BY event
