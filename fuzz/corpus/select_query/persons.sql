SELECT id, properties.email, created_at FROM persons WHERE is_identified AND properties['plan'] ILIKE '%pro%'
