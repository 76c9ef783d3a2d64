SELECT count() OVER (PARTITION BY event) FROM events
