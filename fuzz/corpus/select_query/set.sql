SELECT count() FROM events WHERE person_id IN (SELECT id FROM persons WHERE properties.plan = 'pro') AND event NOT IN (SELECT event FROM events LIMIT 3)
