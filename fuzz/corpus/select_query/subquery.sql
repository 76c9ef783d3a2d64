SELECT n, count() FROM (SELECT person_id, count() AS n FROM events GROUP BY person_id) AS p GROUP BY n ORDER BY p.n
