SELECT match(event, '^(a|b)+$') AS m, extract(properties.$current_url, 'id=(\\d+)') AS id, domain(properties.$current_url) || path(properties.$current_url) AS u FROM events
