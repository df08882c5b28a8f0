"""The version of this program, stated here and nowhere else: logs, `--version`, pages and packages read it."""

VERSION = "0.1.0"
