-- name: reported
-- The nodes of the networks that have several, as their indexers last reported them: a row for each network.
SELECT network_id::bigint AS network_id, nodes FROM partner.leader WHERE nodes <> '[]'
