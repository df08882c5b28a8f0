-- name: states
-- Whether the index has a transaction and a mint of assets $1, and their number of mints and burns.
SELECT asset_no, first_tx_id IS NOT NULL AS exists, first_mint_tx_id IS NOT NULL AS is_minted,
       mint_count + burn_count AS mints
FROM asset WHERE asset_no = ANY ($1::integer[])
