SELECT event FROM events; SELECT 1
