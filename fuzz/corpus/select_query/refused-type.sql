SELECT sum(timestamp) FROM events WHERE uuid = 5
