SELECT event FROM events WHERE {filters} OR true
