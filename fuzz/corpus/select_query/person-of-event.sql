SELECT DISTINCT person.properties.plan AS plan, group_0.properties.name, session.id FROM events e ORDER BY plan
