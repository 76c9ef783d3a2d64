SELECT 5, 6 AS six, event FROM events ORDER BY 1, six, 3 DESC
