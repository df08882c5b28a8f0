"""The memory of URLs that an API process has parsed."""

from api.server.app import remembering


def test_repeated_urls_are_parsed_once_unless_they_are_long() -> None:
    parsed: list[tuple[str, ...]] = []

    def parse(*url: str) -> str:
        parsed.append(url)
        return "/".join(url)

    remembered = remembering(parse)
    short, long = ("GET", "/path", "limit=1"), ("GET", "/" + "x" * 20_000, "")
    for url in (short, short, ("HEAD", *short[1:]), ("GET", "/path", "limit=2"), long, long):
        assert remembered(*url) == "/".join(url)
    assert parsed == [short, ("HEAD", *short[1:]), ("GET", "/path", "limit=2"), long, long]
