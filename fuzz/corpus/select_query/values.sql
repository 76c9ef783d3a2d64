SELECT event FROM events WHERE event = {name} AND properties.n IN ({number}, {half}, -1, NULL)
