"""The pages at / and /docs in a browser: found by search, read on a phone, tried with a key, in both colour schemes."""

import re

import pytest

from tests.api.partners import partner_of
from tests.browser.pages import SCHEMES, new_page, violations
from tests.browser.site import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

WIDTHS = {"light": 390, "dark": 1280}
ADMIN_CALL, CHAIN_CALL = "rotate_credential", "list_transaction_history"


async def test_an_operation_is_found_read_and_tried(site: Site) -> None:
    url = f"http://127.0.0.1:{site.api.port}"
    partner = await partner_of(site.api, "ACME")
    credential, key = await partner.issued(await partner.user())
    async with new_page(site.browser, site.api, permissions=["clipboard-read", "clipboard-write"]) as page:
        await page.goto("/docs")
        search = page.get_by_role("searchbox", name="Search the reference")
        contents = page.get_by_role("navigation", name="Reference").get_by_role("link")
        await search.fill("no such words")
        await page.get_by_text("Nothing matches.").wait_for()
        await search.fill("OVERLAP key former")
        assert await contents.evaluate_all("links => links.map(each => each.hash)") == [f"#/{ADMIN_CALL}"]
        await search.press("Enter")
        await page.get_by_role("heading", level=1, name="Replace the API key of a credential").wait_for()
        assert await contents.and_(page.locator("[aria-current]")).get_attribute("href") == f"#/{ADMIN_CALL}"

        sample = page.get_by_label("Sample", exact=True)
        await sample.get_by_text(f'curl -s "{url}/v1/admin/credentials/<credential_id>/rotate"').wait_for()
        await page.get_by_role("button", name="TypeScript").click()
        await sample.get_by_text('service.rotateCredential("<credential_id>", { overlap_seconds: 86400 })').wait_for()
        await page.get_by_role("button", name="Copy", exact=True).click()
        await page.get_by_role("button", name="Copied").wait_for()
        assert await page.evaluate("navigator.clipboard.readText()") == await sample.inner_text()

        await page.get_by_label("Admin key", exact=True).fill(partner.admin_key)
        await page.get_by_label("id", exact=True).fill(credential["id"])
        await page.get_by_label("Idempotency-Key", exact=True).fill("once")
        await page.get_by_role("button", name="Send").click()
        answer = page.get_by_label("Answer", exact=True)
        await answer.get_by_text("former_key").wait_for()
        await page.get_by_role("button", name="Send").click()
        await answer.get_by_text("Already executed").wait_for()

        # The language also applies to operations that are opened later, and keys are kept until a reload.
        await page.goto("/docs#/get_own_key")
        await sample.get_by_text(f'new Ledgerline("{url}", {{ apiKey: process.env.API_KEY }})').wait_for()
        await page.get_by_label("API key", exact=True).fill(key)
        await page.get_by_role("button", name="Send").click()
        await answer.get_by_text("rate_limit_per_minute").wait_for()
        assert key not in page.url
        await page.goto(f"/docs#/{ADMIN_CALL}")
        assert await page.get_by_label("Admin key", exact=True).input_value() == partner.admin_key
        await page.reload()
        assert await page.get_by_label("Admin key", exact=True).input_value() == ""


async def test_an_operation_tells_each_error_once_and_what_it_means_elsewhere(site: Site) -> None:
    described = (await site.api.get("/openapi.json")).body
    responses = described["paths"]["/v1/admin/credentials/{id}/rotate"]["post"]["responses"]
    failures = [each["content"]["application/json"] for status, each in responses.items() if status != "200"]
    messages = [each["value"]["error"] for failure in failures for each in failure["examples"].values()]
    async with new_page(site.browser, site.api, viewport={"width": 390, "height": 900}) as page:
        await page.goto(f"/docs#/{ADMIN_CALL}")
        rows = page.locator(".errors li")
        await rows.first.wait_for()
        assert await rows.locator(":scope > :last-child").all_inner_texts() == messages
        assert await page.evaluate("document.documentElement.scrollHeight") < 5_000
        await rows.get_by_role("link", name="permission_denied").click()
        await page.get_by_role("heading", level=1, name="Errors").wait_for()
        assert await page.evaluate("document.activeElement.textContent") == "permission_denied 403"
        assert await page.locator("h2").count() == len(described["x-errors"])
        await page.go_back()
        await page.get_by_role("link", name="Idempotent-Replayed").click()
        await page.get_by_role("heading", level=1, name="Headers").wait_for()
        assert await page.evaluate("document.activeElement.textContent") == "Idempotent-Replayed"


async def test_each_operation_has_types_in_words(site: Site) -> None:
    paths = (await site.api.get("/openapi.json")).body["paths"]
    operations = [each["operationId"] for methods in paths.values() for each in methods.values()]
    async with new_page(site.browser, site.api) as page:
        await page.goto("/docs")
        for operation in operations:
            await page.goto(f"/docs#/{operation}")
            await page.locator(f"nav [aria-current][href='#/{operation}']").wait_for()
            assert not re.search(r"undefined|\[object|NaN", await page.get_by_role("main").inner_text()), operation


@pytest.mark.parametrize("path", ["/", "/docs", "/docs#/errors", "/docs#/headers", f"/docs#/{CHAIN_CALL}"])
async def test_the_page_is_accessible_and_no_wider_than_a_phone(site: Site, path: str) -> None:
    document = (await site.api.get("/openapi.json")).body
    document["x-errors"] = document["x-errors"][:5]  # axe takes seconds for all of them, which look alike
    async with new_page(site.browser, site.api) as page:
        await page.route("**/openapi.json", lambda route: route.fulfill(json=document))
        await page.goto(path)
        await page.get_by_role("heading", level=1).wait_for()
        for inner in await page.locator("main summary").all():
            await inner.click()
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": WIDTHS[scheme], "height": 900})
            assert await violations(page) == []
        for width in (320, 390, 600, 1024):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_the_pages_share_their_header_colours_and_fonts(site: Site) -> None:
    look = """() => {
        const header = document.querySelector(".site");
        const { top, height } = header.getBoundingClientRect();
        const of = (element, name) => getComputedStyle(element)[name];
        const names = ["backgroundColor", "color", "fontFamily"];
        const elements = [document.body, header, document.querySelector("h1")];
        return [header.textContent, top, height, ...elements.flatMap(each => names.map(name => of(each, name)))];
    }"""
    for scheme in SCHEMES:
        async with new_page(site.browser, site.api, color_scheme=scheme) as page:
            looks = []
            for path in ("/", "/docs", "/status", "/console"):
                await page.goto(path)
                await page.get_by_role("heading", level=1).wait_for()
                looks.append(await page.evaluate(look))
                current = page.locator(".site nav [aria-current]")
                assert [path] == (await current.evaluate_all("all => all.map(each => each.pathname)") or ["/"])
            assert looks == [looks[0]] * 4
