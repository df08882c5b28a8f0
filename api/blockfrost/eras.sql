-- name: state
-- The first slot of each era that has blocks, after Byron, and the tip. Cost: a row of each era.
SELECT slot_no AS tip_slot_no, first_block_no,
       ARRAY(SELECT era FROM era_start ORDER BY slot_no) AS eras,
       ARRAY(SELECT slot_no FROM era_start ORDER BY slot_no) AS slot_nos
FROM tip
