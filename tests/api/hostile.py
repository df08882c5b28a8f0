"""Texts that attack parsers, SQL, logs and pages; BROKEN is percent-encoded and not UTF-8, or contains NUL."""

HOSTILE = (
    *("", " ", "'", '"', "\\", ";", "--", "%", "_", "\n", "\r\nX-Injected: 1", "\t", "\u202e", "\ufeff", "\U0010ffff"),
    *("' OR '1'='1", "'; DROP TABLE partner.user_account; --", "1; SELECT pg_sleep(9)", "$1", "$$", "\\x00", "E'\\0'"),
    *("${jndi:ldap://x}", "{{7*7}}", "%s%n", "{0}", "<script>alert(1)</script>", "../../../etc/passwd", "NaN", "null"),
    *("-1", "1e9", "0x10", "٣", "1_000", str(2**31), str(2**63), str(2**64), "9" * 400, "a" * 6_000, "é" * 3_000),
)
BROKEN = ("%00", "a%00b", "%FF", "%C3", "%ED%A0%80", "%F4%90%80%80", "%c0%ae")
