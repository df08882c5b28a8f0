-- What addresses, accounts and payment credentials own. Each statement is one snapshot, and returns no row if the
-- network is not served. A list returns a single row with nulls if the page is empty.
--
-- Placeholders: {owner} {owner_no} {history} {utxo_bucket} {holder} are tables and columns of an address or an account;
-- {named} finds its row; {holder_no} is the column of {holder} with the owner's number; {order} is the direction,
-- {after} the comparison with a cursor, {edge} the number from which a list begins in that direction.

-- name: summary
-- The totals and the first and last transaction of an owner $1, all zeros and nulls if it was never used. Outputs are
-- summed by bucket. An owner without buckets has a few thousand outputs at most, which are added up one by one from an
-- index.
-- NOTE: the assets are counted one by one in an index, 10,000 in a millisecond. Few owners have more.
WITH asked AS MATERIALIZED (
    SELECT {owner_no} FROM {owner} WHERE {named}
), bucketed AS MATERIALIZED (
    SELECT sum(outputs) AS outputs, sum(lovelace) AS lovelace
    FROM {utxo_bucket} WHERE {owner_no} = (SELECT {owner_no} FROM asked)
), single AS MATERIALIZED (
    SELECT count(*) AS outputs, sum(lovelace) AS lovelace
    FROM utxo WHERE {owner_no} = (SELECT {owner_no} FROM asked) AND (SELECT outputs FROM bucketed) IS NULL
), held AS MATERIALIZED (
    SELECT count(*) AS assets FROM {holder} WHERE {holder_no} = (SELECT {owner_no} FROM asked)
), last AS MATERIALIZED (
    SELECT (chunk << 6) + length(tx_ids) / 8 AS transactions, tx_id_at(tx_ids, length(tx_ids) - 8) AS tx_id
    FROM {history} WHERE {owner_no} = (SELECT {owner_no} FROM asked) ORDER BY chunk DESC LIMIT 1
), first AS MATERIALIZED (
    SELECT tx_id_at(tx_ids, 0) AS tx_id FROM {history} WHERE {owner_no} = (SELECT {owner_no} FROM asked) AND chunk = 0
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash,
       coalesce(bucketed.lovelace, single.lovelace, 0)::bigint AS lovelace,
       coalesce(bucketed.outputs, single.outputs) AS utxo_count, held.assets AS asset_count,
       coalesce(last.transactions, 0) AS transaction_count,
       first.tx_id AS first_tx_id, (SELECT hash FROM tx WHERE tx.tx_id = first.tx_id) AS first_hash,
       last.tx_id AS last_tx_id, (SELECT hash FROM tx WHERE tx.tx_id = last.tx_id) AS last_hash
FROM tip
CROSS JOIN bucketed
CROSS JOIN single
CROSS JOIN held
LEFT JOIN last ON true
LEFT JOIN first ON true
WHERE tip.phase = 'live'

-- name: holdings
-- A page of the assets that an owner $1 holds, in the order of their numbers, which is roughly that of their first
-- mints, and one row beyond the page; $2 limit, $3 offset, $4 and $5 the policy and name of the asset after which to
-- continue, or null.
-- NOTE: the offset is an index-only scan, 10,000 assets in a millisecond. A cursor costs the same at any depth. With
-- BETWEEN, a quantity is found by the primary key; the index by quantity would be read through all holders of the
-- asset.
WITH asked AS MATERIALIZED (
    SELECT {owner_no} FROM {owner} WHERE raw = $1
), passed AS MATERIALIZED (
    SELECT asset_no FROM policy JOIN asset USING (policy_no) WHERE policy_id = $4 AND name = $5
), page AS MATERIALIZED (
    SELECT asset_no FROM {holder}
    WHERE {holder_no} = (SELECT {owner_no} FROM asked)
        AND asset_no {after} coalesce((SELECT asset_no FROM passed), {edge})
    ORDER BY asset_no {order} LIMIT $2::bigint + 1 OFFSET $3
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash,
       $4::bytea IS NULL OR EXISTS (SELECT FROM passed) AS placed,
       tip.numbering, page.asset_no,
       (SELECT quantity::text FROM {holder}
        WHERE {holder_no} = (SELECT {owner_no} FROM asked)
            AND {holder}.asset_no BETWEEN page.asset_no AND page.asset_no) AS quantity
FROM tip
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.asset_no {order}

-- name: summary_of_credential
-- The same for the payment credential with the hash $1: the sum of both parts of its lists, which have no output and no
-- transaction in common. The cost is that of two summaries.
WITH asked AS MATERIALIZED (
    SELECT address_no AS no FROM address WHERE payment_hash(raw) = $1 AND credential_no IS NULL
), bucketed AS MATERIALIZED (
    SELECT sum(outputs) AS outputs, sum(lovelace) AS lovelace
    FROM utxo_bucket WHERE address_no = (SELECT no FROM asked)
), bucketed_others AS MATERIALIZED (
    SELECT sum(outputs) AS outputs, sum(lovelace) AS lovelace
    FROM credential_utxo_bucket WHERE credential_no = (SELECT no FROM asked)
), single AS MATERIALIZED (
    SELECT count(*) AS outputs, sum(lovelace) AS lovelace
    FROM utxo WHERE address_no = (SELECT no FROM asked) AND (SELECT outputs FROM bucketed) IS NULL
), single_others AS MATERIALIZED (
    SELECT count(*) AS outputs, sum(lovelace) AS lovelace
    FROM utxo WHERE credential_no = (SELECT no FROM asked) AND (SELECT outputs FROM bucketed_others) IS NULL
), held AS MATERIALIZED (
    SELECT count(*) AS assets
    FROM (
        SELECT asset_no FROM holder WHERE address_no = (SELECT no FROM asked)
        UNION
        SELECT asset_no FROM credential_holder WHERE credential_no = (SELECT no FROM asked)
    ) held
), last AS MATERIALIZED (
    SELECT sum(transactions)::integer AS transactions, max(tx_id) AS tx_id
    FROM (
        (SELECT (chunk << 6) + length(tx_ids) / 8 AS transactions, tx_id_at(tx_ids, length(tx_ids) - 8) AS tx_id
         FROM address_tx WHERE address_no = (SELECT no FROM asked) ORDER BY chunk DESC LIMIT 1)
        UNION ALL
        (SELECT (chunk << 6) + length(tx_ids) / 8, tx_id_at(tx_ids, length(tx_ids) - 8)
         FROM credential_tx WHERE credential_no = (SELECT no FROM asked) ORDER BY chunk DESC LIMIT 1)
    ) parts
), first AS MATERIALIZED (
    SELECT min(tx_id) AS tx_id
    FROM (
        SELECT tx_id_at(tx_ids, 0) AS tx_id FROM address_tx WHERE address_no = (SELECT no FROM asked) AND chunk = 0
        UNION ALL
        SELECT tx_id_at(tx_ids, 0) FROM credential_tx WHERE credential_no = (SELECT no FROM asked) AND chunk = 0
    ) parts
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash,
       (coalesce(bucketed.lovelace, single.lovelace, 0)
        + coalesce(bucketed_others.lovelace, single_others.lovelace, 0))::bigint AS lovelace,
       (coalesce(bucketed.outputs, single.outputs)
        + coalesce(bucketed_others.outputs, single_others.outputs))::bigint AS utxo_count,
       held.assets AS asset_count, coalesce(last.transactions, 0) AS transaction_count,
       first.tx_id AS first_tx_id, (SELECT hash FROM tx WHERE tx.tx_id = first.tx_id) AS first_hash,
       last.tx_id AS last_tx_id, (SELECT hash FROM tx WHERE tx.tx_id = last.tx_id) AS last_hash
FROM tip
CROSS JOIN bucketed
CROSS JOIN bucketed_others
CROSS JOIN single
CROSS JOIN single_others
CROSS JOIN held
CROSS JOIN last
CROSS JOIN first
WHERE tip.phase = 'live'

-- name: holdings_of_credential
-- The same page for the payment credential with the hash $1. An asset in both parts is one of the first in each.
WITH asked AS MATERIALIZED (
    SELECT address_no AS no FROM address WHERE payment_hash(raw) = $1 AND credential_no IS NULL
), passed AS MATERIALIZED (
    SELECT asset_no FROM policy JOIN asset USING (policy_no) WHERE policy_id = $4 AND name = $5
), page AS MATERIALIZED (
    SELECT asset_no
    FROM (
        (SELECT asset_no FROM holder
         WHERE address_no = (SELECT no FROM asked)
             AND asset_no {after} coalesce((SELECT asset_no FROM passed), {edge})
         ORDER BY asset_no {order} LIMIT $2::bigint + 1 + $3::bigint)
        UNION
        (SELECT asset_no FROM credential_holder
         WHERE credential_no = (SELECT no FROM asked)
             AND asset_no {after} coalesce((SELECT asset_no FROM passed), {edge})
         ORDER BY asset_no {order} LIMIT $2::bigint + 1 + $3::bigint)
    ) held
    ORDER BY asset_no {order} LIMIT $2::bigint + 1 OFFSET $3
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash,
       $4::bytea IS NULL OR EXISTS (SELECT FROM passed) AS placed,
       tip.numbering, page.asset_no,
       (coalesce((SELECT quantity FROM holder
                  WHERE address_no = (SELECT no FROM asked)
                      AND holder.asset_no BETWEEN page.asset_no AND page.asset_no), 0)
        + coalesce((SELECT quantity FROM credential_holder
                    WHERE credential_no = (SELECT no FROM asked)
                        AND credential_holder.asset_no BETWEEN page.asset_no AND page.asset_no), 0))::text AS quantity
FROM tip
LEFT JOIN page ON true
WHERE tip.phase = 'live'
ORDER BY page.asset_no {order}
