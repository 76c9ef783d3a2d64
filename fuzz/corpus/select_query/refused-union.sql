SELECT event FROM events UNION ALL SELECT id FROM persons
