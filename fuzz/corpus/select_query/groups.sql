SELECT index, key, properties.name FROM groups AS g WHERE g.index = 0 ORDER BY key
