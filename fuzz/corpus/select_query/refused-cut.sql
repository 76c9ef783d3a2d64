SELECT count( FROM events WHERE event = 'a
