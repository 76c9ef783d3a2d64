SELECT a FROM (SELECT a FROM (SELECT a FROM (SELECT event AS a FROM events) WHERE a IN (SELECT max(event) FROM events)))
