SELECT entry_utm_source AS source, avg(duration), countIf(is_bounce) / count() AS bounce FROM sessions GROUP BY source
