"""From the effects of blocks to rows of tables and moved amounts."""
