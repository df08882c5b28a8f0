-- name: add
INSERT INTO partner.event_notice (network_id, owner, kind, body) VALUES ($1, $2, $3, $4)
