SELECT t.t, t.t.t.x AS x FROM (SELECT properties AS t FROM events) AS t
