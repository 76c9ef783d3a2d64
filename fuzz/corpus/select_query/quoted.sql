SELECT `select`.event AS "from", properties.`a\`b`."c.d" AS `ä ö` FROM events `select` -- the end
