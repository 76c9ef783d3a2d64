SELECT (1 + 2) * 3 - -4 / (5 % 6) AS x FROM events WHERE NOT (event = 'a' OR event IS NOT NULL) AND (event = 'b') = true OR NOT NOT properties.y
