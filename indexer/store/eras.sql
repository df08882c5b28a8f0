-- Outputs that the ledger removes when an era begins.

-- name: drop_outputs
-- Record the outputs of Byron that are still in utxo, although the ledger has removed them, and return them. Reads the
-- unspent outputs from before the first block after Byron: once when such an era begins, and once at the end of bulk.
WITH began AS (
    SELECT min(slot_no) AS after_byron, min(slot_no) FILTER (WHERE era <> 'shelley') AS after_shelley FROM era_start
)
INSERT INTO dropped_output (tx_id, slot_no, lovelace, address_no, output_index)
SELECT u.tx_id, CASE u.lovelace WHEN 0 THEN after_byron ELSE after_shelley END, u.lovelace, u.address_no, u.output_index
FROM began JOIN utxo u ON u.tx_id < after_byron << 16 JOIN address USING (address_no)
WHERE is_byron_address(raw) AND (u.lovelace = 0 OR (after_shelley IS NOT NULL AND is_redeem_address(raw)))
RETURNING tx_id, output_index, lovelace, address_no

-- name: undo
-- Forget the eras that begin at slot $1 or later. Returns the outputs that were dropped then.
WITH undone AS (
    DELETE FROM era_start WHERE slot_no >= $1 RETURNING slot_no
)
DELETE FROM dropped_output d USING undone WHERE d.slot_no = undone.slot_no
RETURNING d.tx_id, d.output_index, d.lovelace, d.address_no
