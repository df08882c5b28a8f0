-- What addresses, accounts and payment credentials have received and sent. Placeholders: {owner} {owner_no} {history}
-- {utxo_bucket} {holder} {sent} are tables and columns of an address or an account; {holder_no} is the column of
-- {holder} with the owner's number, {dropped} and {genesis} are expressions, {moved} statements.
-- NOTE: with LIMIT 1, each transaction is looked up. The planner, which expects 1,000 of any history, would join all.

-- name: totals
-- The totals of an owner $1, all zeros if it was never used; no row if the network is not served. At most $2 + 1 of the
-- assets that it holds and of those that it has sent. If its history is short, `inputs` are those of its transactions,
-- null if they have more than $3 bytes, and `address_nos` are its addresses, if it is an account.
-- Cost: the same whatever the history, as a long one is added up when blocks arrive, and a short one is short.
WITH asked AS MATERIALIZED (
    SELECT {owner_no} AS owner_no FROM {owner} WHERE raw = $1
), last AS MATERIALIZED (
    SELECT (chunk << 6) + length(tx_ids) / 8 AS transactions
    FROM {history} WHERE {owner_no} = (SELECT owner_no FROM asked) ORDER BY chunk DESC LIMIT 1
), bucketed AS MATERIALIZED (
    SELECT sum(lovelace) AS lovelace FROM {utxo_bucket} WHERE {owner_no} = (SELECT owner_no FROM asked)
), single AS MATERIALIZED (
    SELECT sum(lovelace) AS lovelace
    FROM utxo WHERE {owner_no} = (SELECT owner_no FROM asked) AND (SELECT lovelace FROM bucketed) IS NULL
), held AS MATERIALIZED (
    SELECT coalesce(array_agg(asset_no), '{}') AS asset_nos, coalesce(array_agg(quantity::text), '{}') AS quantities
    FROM (SELECT asset_no, quantity FROM {holder} WHERE {holder_no} = (SELECT owner_no FROM asked)
          ORDER BY asset_no LIMIT $2::integer + 1) of_owner
), sent AS MATERIALIZED (
    SELECT coalesce(array_agg(asset_no), '{}') AS asset_nos, coalesce(array_agg(quantity::text), '{}') AS quantities
    FROM (SELECT asset_no, quantity FROM {sent} WHERE {owner_no} = (SELECT owner_no FROM asked)
          ORDER BY asset_no LIMIT $2::integer + 2) of_owner
), short AS MATERIALIZED (
    SELECT array_agg(inputs) AS inputs
    FROM (
        SELECT inputs, sum(octet_length(inputs)) OVER () AS bytes
        FROM asked
        CROSS JOIN last
        CROSS JOIN LATERAL {history}_range(owner_no, 0, transactions - 1) entry
        CROSS JOIN LATERAL (SELECT inputs FROM tx WHERE tx.tx_id = entry.tx_id LIMIT 1) spending
        WHERE NOT is_long_history(transactions)
    ) of_history WHERE bytes <= $3::integer
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering,
       (SELECT owner_no FROM asked) AS owner_no,
       coalesce(bucketed.lovelace, single.lovelace, 0)::text AS lovelace,
       coalesce((SELECT transactions FROM last), 0) AS transactions,
       coalesce((SELECT transactions FROM last), 0) AS in_history,
       coalesce(is_long_history((SELECT transactions FROM last)), false) AS is_long,
       {dropped}::text AS dropped_lovelace, {genesis} AS genesis_outputs,
       held.asset_nos AS held_nos, held.quantities AS held, sent.asset_nos AS sent_nos, sent.quantities AS sent,
       short.inputs, {address_nos} AS address_nos
FROM tip CROSS JOIN bucketed CROSS JOIN single CROSS JOIN held CROSS JOIN sent CROSS JOIN short
WHERE tip.phase = 'live'

-- name: totals_of_credential
-- The same for the payment credential with the hash $1. `in_history`, `is_long` and `inputs` are about the transactions
-- of its first address: what the others have sent is among `sent`. An asset in both parts is listed twice, and is one
-- of the first in each.
WITH asked AS MATERIALIZED (
    SELECT address_no AS owner_no FROM address WHERE payment_hash(raw) = $1 AND credential_no IS NULL
), last AS MATERIALIZED (
    SELECT (chunk << 6) + length(tx_ids) / 8 AS transactions
    FROM address_tx WHERE address_no = (SELECT owner_no FROM asked) ORDER BY chunk DESC LIMIT 1
), last_of_others AS MATERIALIZED (
    SELECT (chunk << 6) + length(tx_ids) / 8 AS transactions
    FROM credential_tx WHERE credential_no = (SELECT owner_no FROM asked) ORDER BY chunk DESC LIMIT 1
), bucketed AS MATERIALIZED (
    SELECT sum(lovelace) AS lovelace FROM utxo_bucket WHERE address_no = (SELECT owner_no FROM asked)
), bucketed_others AS MATERIALIZED (
    SELECT sum(lovelace) AS lovelace FROM credential_utxo_bucket WHERE credential_no = (SELECT owner_no FROM asked)
), single AS MATERIALIZED (
    SELECT sum(lovelace) AS lovelace
    FROM utxo WHERE address_no = (SELECT owner_no FROM asked) AND (SELECT lovelace FROM bucketed) IS NULL
), single_others AS MATERIALIZED (
    SELECT sum(lovelace) AS lovelace
    FROM utxo WHERE credential_no = (SELECT owner_no FROM asked) AND (SELECT lovelace FROM bucketed_others) IS NULL
), held AS MATERIALIZED (
    SELECT coalesce(array_agg(asset_no), '{}') AS asset_nos, coalesce(array_agg(quantity::text), '{}') AS quantities
    FROM (
        (SELECT asset_no, quantity FROM holder WHERE address_no = (SELECT owner_no FROM asked)
         ORDER BY asset_no LIMIT $2::integer + 1)
        UNION ALL
        (SELECT asset_no, quantity FROM credential_holder WHERE credential_no = (SELECT owner_no FROM asked)
         ORDER BY asset_no LIMIT $2::integer + 1)
    ) of_both
), sent AS MATERIALIZED (
    SELECT coalesce(array_agg(asset_no), '{}') AS asset_nos, coalesce(array_agg(quantity::text), '{}') AS quantities
    FROM (
        (SELECT asset_no, quantity FROM address_sent WHERE address_no = (SELECT owner_no FROM asked)
         ORDER BY asset_no LIMIT $2::integer + 2)
        UNION ALL
        (SELECT asset_no, quantity FROM credential_sent WHERE credential_no = (SELECT owner_no FROM asked)
         ORDER BY asset_no LIMIT $2::integer + 2)
    ) of_both
), short AS MATERIALIZED (
    SELECT array_agg(inputs) AS inputs
    FROM (
        SELECT inputs, sum(octet_length(inputs)) OVER () AS bytes
        FROM asked
        CROSS JOIN last
        CROSS JOIN LATERAL address_tx_range(owner_no, 0, transactions - 1) entry
        CROSS JOIN LATERAL (SELECT inputs FROM tx WHERE tx.tx_id = entry.tx_id LIMIT 1) spending
        WHERE NOT is_long_history(transactions)
    ) of_history WHERE bytes <= $3::integer
)
SELECT tip.slot_no AS tip_slot_no, tip.block_hash AS tip_hash, tip.numbering,
       (SELECT owner_no FROM asked) AS owner_no,
       (coalesce(bucketed.lovelace, single.lovelace, 0)
        + coalesce(bucketed_others.lovelace, single_others.lovelace, 0))::text AS lovelace,
       coalesce((SELECT transactions FROM last), 0)
        + coalesce((SELECT transactions FROM last_of_others), 0) AS transactions,
       coalesce((SELECT transactions FROM last), 0) AS in_history,
       coalesce(is_long_history((SELECT transactions FROM last)), false) AS is_long,
       '0' AS dropped_lovelace, {genesis} AS genesis_outputs,
       held.asset_nos AS held_nos, held.quantities AS held, sent.asset_nos AS sent_nos, sent.quantities AS sent,
       short.inputs, NULL::integer[] AS address_nos
FROM tip CROSS JOIN bucketed CROSS JOIN bucketed_others CROSS JOIN single CROSS JOIN single_others CROSS JOIN held
CROSS JOIN sent CROSS JOIN short
WHERE tip.phase = 'live'

-- name: dropped_at_address
-- Only vouchers have lovelace, and hardly an address has two.
coalesce((SELECT sum(lovelace) FROM dropped_output
          WHERE address_no = (SELECT owner_no FROM asked) AND dropped_output.lovelace > 0), 0)

-- name: genesis_of_address
(SELECT count(*) FROM genesis_output WHERE address = $1)

-- name: genesis_of_account
(SELECT count(*) FROM genesis_output JOIN address ON raw = genesis_output.address
 WHERE get_byte(genesis_output.address, 0) < 64 AND substr(genesis_output.address, 30, 28) = substr($1, 2)
   AND stake_no = (SELECT owner_no FROM asked))

-- name: genesis_of_credential
(SELECT count(*) FROM genesis_output WHERE get_byte(address, 0) < 128 AND substr(address, 2, 28) = $1)

-- name: addresses_of_account
CASE WHEN short.inputs IS NOT NULL
     THEN ARRAY(SELECT address_no FROM address WHERE stake_no = (SELECT owner_no FROM asked)) END

-- name: inputs
-- The inputs of the transactions in a short history of an owner with number $1, from the first to that with seq $2.
SELECT inputs
FROM {history}_range($1::integer, 0, $2::bigint) entry
CROSS JOIN LATERAL (SELECT inputs FROM tx WHERE tx.tx_id = entry.tx_id LIMIT 1) spending

-- name: addresses
-- Those of the addresses $2 that belong to the account $1.
SELECT address_no FROM address WHERE stake_no = $1 AND address_no = ANY ($2::integer[])

-- name: assets
-- The assets that an owner with number $1 has ever received, in order of policy and name. $2 and $3 are the assets and
-- quantities, as text, that it has sent if its history is short. Cost: a sort of all of them.
SELECT encode(policy_id, 'hex') AS policy_id, encode(name, 'hex') AS asset_name, (held + sent)::text AS received,
       sent::text AS sent
FROM (
    SELECT asset_no, sum(held) AS held, sum(sent) AS sent
    FROM (
        {moved}
        UNION ALL
        SELECT asset_no, 0, quantity::numeric FROM unnest($2::integer[], $3::text[]) AS spent (asset_no, quantity)
    ) moved
    GROUP BY asset_no
) sums
JOIN asset USING (asset_no)
JOIN policy USING (policy_no)
ORDER BY policy.policy_id, asset.name

-- name: moved
-- What is known of such an owner without its transactions.
SELECT asset_no, quantity AS held, 0 AS sent FROM {holder} WHERE {holder_no} = $1
UNION ALL
SELECT asset_no, 0, quantity FROM {sent} WHERE {owner_no} = $1 AND asset_no <> 0
