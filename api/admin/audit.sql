-- name: record
-- The same action on each of the targets $4, one of which may be null.
INSERT INTO partner.audit_log (admin_key_id, action, target_type, target_id, ip_address, details)
SELECT $1, $2, $3, target_id, $5, $6 FROM unnest($4::uuid[]) AS target_id

-- name: entries
-- Newest first, ties by id.
SELECT audit_log.id, audit_log.action, audit_log.admin_key_id, admin_key.entity_name AS admin_entity_name,
       audit_log.target_id, audit_log.target_type, audit_log.ip_address, audit_log.details, audit_log.created_at
FROM partner.audit_log
JOIN partner.admin_key ON admin_key.id = audit_log.admin_key_id
WHERE {matching}
ORDER BY audit_log.created_at DESC, audit_log.id DESC
LIMIT $10 OFFSET $11

-- name: entry_count
SELECT count(*) AS total FROM partner.audit_log WHERE {matching}

-- name: matching
-- Only entries of the admin key $1 (null: of all keys); the other parameters are filters.
($1::uuid IS NULL OR audit_log.admin_key_id = $1)
  AND ($2::text IS NULL OR audit_log.action = $2)
  AND ($3::uuid IS NULL OR audit_log.admin_key_id = $3)
  AND ($4::uuid IS NULL OR audit_log.target_id = $4)
  AND ($5::text IS NULL OR audit_log.target_type = $5)
  AND ($6::text IS NULL OR audit_log.details ->> 'request_id' = $6)
  AND ($7::timestamptz IS NULL OR audit_log.created_at >= $7)
  AND ($8::timestamptz IS NULL OR audit_log.created_at <= $8)
  AND ($9 OR audit_log.action NOT LIKE ALL ('{%.viewed,%.listed}'))
