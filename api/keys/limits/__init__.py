"""Rate limit and quota of a credential: while Valkey works, no window of 60 seconds admits more than the limit.

`verdicts` has the words, `shared` sends each request to Valkey, which counts for all processes, and `local` counts for
one process without Valkey. `state` decides which of the two applies, and what a process must report to Valkey after an
outage or a loss of data (docs/decisions/0021-limits-over-outages.md). `scripts` translates to Valkey and back.
"""
