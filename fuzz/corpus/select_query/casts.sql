SELECT properties.n::int + 1 AS a, CAST(properties.x AS Float) AS b, -properties.y::float AS c, '2026-06-01'::date AS d FROM events
