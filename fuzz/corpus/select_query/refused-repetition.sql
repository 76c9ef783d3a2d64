SELECT event FROM events WHERE match(event, '(a{1000}){1000}')
