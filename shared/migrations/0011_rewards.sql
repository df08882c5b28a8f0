-- Version 11: rewards without the slot at which they were read, which nothing used and nothing could be compared with.

-- == partner ==

-- == chain ==

ALTER TABLE reward DROP COLUMN slot_no;
COMMENT ON TABLE reward IS
    'Rewards of reward accounts, as last read, less what was withdrawn since. No row for a reward of 0.';
