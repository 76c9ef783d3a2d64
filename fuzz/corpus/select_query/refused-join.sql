SELECT event FROM events JOIN persons ON person_id = persons.id
