"""Error answers of Ogmios."""

from typing import Any


class Refusal(Exception):
    """An error answer: Ogmios' code and message, and its `data`, if any."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def content(self) -> dict[str, Any]:
        content = {"code": self.code, "message": self.message}
        return content if self.data is None else {**content, "data": self.data}
