SELECT properties.$browser, count() FROM events GROUP BY 1 HAVING count() > 10 ORDER BY 2 DESC LIMIT 10 OFFSET 5
