-- name: record
INSERT INTO partner.audit_log (admin_key_id, action, target_type, target_id, ip_address, details)
VALUES ($1, $2, $3, $4, $5, $6)

-- Newest first, ties by id. $1 is the only admin key whose entries are seen, null for all; the others filter.
-- name: entries
SELECT audit_log.id, audit_log.action, audit_log.admin_key_id, admin_key.entity_name AS admin_entity_name,
       audit_log.target_id, audit_log.target_type, audit_log.ip_address, audit_log.details, audit_log.created_at
FROM partner.audit_log
JOIN partner.admin_key ON admin_key.id = audit_log.admin_key_id
WHERE ($1::uuid IS NULL OR audit_log.admin_key_id = $1)
  AND ($2::text IS NULL OR audit_log.action = $2)
  AND ($3::uuid IS NULL OR audit_log.admin_key_id = $3)
  AND ($4::uuid IS NULL OR audit_log.target_id = $4)
ORDER BY audit_log.created_at DESC, audit_log.id DESC
LIMIT $5 OFFSET $6

-- name: entry_count
SELECT count(*) AS total
FROM partner.audit_log
WHERE ($1::uuid IS NULL OR admin_key_id = $1)
  AND ($2::text IS NULL OR action = $2)
  AND ($3::uuid IS NULL OR admin_key_id = $3)
  AND ($4::uuid IS NULL OR target_id = $4)
