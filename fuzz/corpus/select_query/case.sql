SELECT CASE WHEN properties.n < 10 THEN 'few' WHEN properties.n < 100 THEN 'some' ELSE 'many' END AS size, CASE event WHEN 'a' THEN 1 END AS x, if(true, 1, 2) AS y FROM events
