-- name: owned
-- A credential of an admin key; no row: foreign or missing.
SELECT id FROM partner.credential WHERE id = $1 AND admin_key_id = $2
