-- name: leaders
-- Every session that holds a network's lock, with the age of its last heartbeat, which is null if the last one is
-- another session's. Locks are not replicated: query the primary.
SELECT held.objid::bigint AS network_id, held.pid AS backend_pid, session.application_name AS application,
       extract(epoch FROM clock_timestamp() - leader.beat_at)::float8 AS beat_age_s,
       extract(epoch FROM clock_timestamp())::float8 AS now_s
FROM pg_locks held
JOIN pg_stat_activity session ON session.pid = held.pid
LEFT JOIN partner.leader ON leader.network_id = held.objid::bigint AND leader.backend_pid = held.pid
WHERE held.locktype = 'advisory' AND held.granted AND held.classid = $1 AND held.objsubid = 2
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: last_heartbeats
-- One row per network: its leader's last heartbeat, and whether the session that sent it still leads. A session waits
-- for one lock at a time.
SELECT network.id AS network_id, retired.network_id IS NOT NULL AS retired, held.pid IS NOT NULL AS leading,
       extract(epoch FROM clock_timestamp() - leader.beat_at)::float8 AS beat_age_s,
       coalesce(leader.failing, '{}') AS failing, leader.version,
       coalesce(leader.node_connected, false) AS node_connected,
       leader.node_since, leader.node_slot_no, leader.node_block_no,
       extract(epoch FROM clock_timestamp() - leader.node_moved_at)::float8 AS node_unmoved_s,
       leader.sync_left_s, coalesce(leader.finishing, false) AS finishing, leader.refused,
       extract(epoch FROM clock_timestamp() - awaited.waitstart)::float8 AS lock_wait_s,
       coalesce(leader.nodes, '[]') AS nodes,
       coalesce((
           SELECT json_agg(json_build_object(
               'node', node_no, 'noticed_at', noticed_at,
               'common', CASE WHEN block_no IS NOT NULL THEN json_build_object(
                   'slot_no', slot_no, 'block_no', block_no, 'block_hash', encode(block_hash, 'hex')) END,
               'our_tip', json_build_object('slot_no', our_slot_no, 'block_no', our_block_no,
                                            'block_hash', encode(our_block_hash, 'hex')),
               'node_tip', json_build_object('slot_no', node_slot_no, 'block_no', node_block_no,
                                             'block_hash', encode(node_block_hash, 'hex'))
           ) ORDER BY node_no)
           FROM partner.chain_split WHERE chain_split.network_id = network.id
       )::text, '[]') AS splits,
       clock_timestamp() AS now
FROM (VALUES {network_ids}) AS network (id)
LEFT JOIN partner.leader ON leader.network_id = network.id
LEFT JOIN partner.retired_network retired ON retired.network_id = network.id
LEFT JOIN pg_locks held
    ON held.locktype = 'advisory' AND held.granted AND held.classid = $1 AND held.objid::bigint = network.id
        AND held.objsubid = 2
    AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND held.pid = leader.backend_pid
LEFT JOIN pg_locks awaited ON awaited.pid = held.pid AND NOT awaited.granted

-- name: beat
-- Record a heartbeat of the session $3, if it holds the lock of network $2 and the schema has version $5. The node's
-- tip is $9 and $10, and has not moved for $11 seconds. If it is null, the last known tip stays. An unchanged tip keeps
-- the time at which it moved, even if another session reported that.
INSERT INTO partner.leader AS last (network_id, backend_pid, beat_at, failing, version, node_connected, node_since,
                                    node_slot_no, node_block_no, node_moved_at, sync_left_s, finishing, nodes)
SELECT $2::smallint, $3, clock_timestamp(), $4, $6, $7, clock_timestamp() - make_interval(secs => $8),
       $9, $10, clock_timestamp() - make_interval(secs => $11), $12, $13, $14
FROM pg_locks held
WHERE held.locktype = 'advisory' AND held.granted AND held.classid = $1 AND held.objid::bigint = $2::smallint
    AND held.objsubid = 2
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND held.pid = $3
  AND (SELECT version FROM partner.schema_version) = $5
ON CONFLICT (network_id) DO UPDATE SET
    backend_pid = excluded.backend_pid, beat_at = excluded.beat_at, failing = excluded.failing,
    version = excluded.version,
    node_connected = excluded.node_connected, node_since = excluded.node_since,
    node_slot_no = coalesce(excluded.node_slot_no, last.node_slot_no),
    node_block_no = coalesce(excluded.node_block_no, last.node_block_no),
    node_moved_at = CASE WHEN (excluded.node_slot_no, excluded.node_block_no)
                          IS DISTINCT FROM (last.node_slot_no, last.node_block_no)
                         THEN coalesce(excluded.node_moved_at, last.node_moved_at) ELSE last.node_moved_at END,
    sync_left_s = excluded.sync_left_s, finishing = excluded.finishing,
    nodes = excluded.nodes, refused = NULL

-- name: record_fatal
-- Note why the session $2, which has led network $1, has stopped.
UPDATE partner.leader SET refused = $3 WHERE network_id = $1 AND backend_pid = $2

-- name: retire
INSERT INTO partner.retired_network (network_id) VALUES ($1) ON CONFLICT (network_id) DO NOTHING

-- name: unretire
DELETE FROM partner.retired_network WHERE network_id = $1

-- name: terminate
-- End the session $3, if it still holds the lock of network $2.
SELECT pg_terminate_backend(held.pid)
FROM pg_locks held
WHERE held.locktype = 'advisory' AND held.granted AND held.classid = $1 AND held.objid::bigint = $2::smallint
    AND held.objsubid = 2
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND held.pid = $3
