"""The page at /docs in a browser: each operation has samples to copy, for this service."""

from typing import TYPE_CHECKING

from tests.api.client import Client

if TYPE_CHECKING:
    from playwright.async_api import Browser

PATIENCE_MS = 60_000


async def test_an_operation_has_samples_to_copy(browser: "Browser", api: Client) -> None:
    url = f"http://127.0.0.1:{api.port}"
    context = await browser.new_context(base_url=url, permissions=["clipboard-read", "clipboard-write"])
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    errors = list[str]()
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    await page.goto("/docs")
    await page.locator("#operations-Credentials-rotate_credential").get_by_role("button").first.click()
    samples = page.get_by_role("region", name="Samples")
    await samples.get_by_text(f'curl -s "{url}/v1/admin/credentials/<credential_id>/rotate"').wait_for()
    await samples.get_by_role("button", name="TypeScript").click()
    call = 'await service.rotateCredential("<credential_id>", { overlap_seconds: 86400 })'
    await samples.get_by_text(call).wait_for()
    await samples.get_by_role("button", name="Copy").click()
    await samples.get_by_role("button", name="Copied").wait_for()
    assert await page.evaluate("navigator.clipboard.readText()") == await samples.locator("code").inner_text()

    # The language also applies to operations that are opened later.
    await page.locator("#operations-User_accounts-create_user").get_by_role("button").first.click()
    await page.get_by_text(f'new Ledgerline("{url}", {{ adminKey: process.env.ADMIN_KEY }})').nth(1).wait_for()
    assert errors == []
    await context.close()
