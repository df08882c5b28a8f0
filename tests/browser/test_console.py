"""The page at /console in a browser: the life of a customer by clicks, two partners, keyboard, colours, refusals."""

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest

from api.admin.audit import Action
from tests.api.chains import hash_of
from tests.api.partners import BOOTSTRAP_KEY, Partner, partner_of
from tests.api.payments import ALICE
from tests.browser.pages import assert_accessible, new_page
from tests.browser.site import Site, sign_in

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

pytestmark = pytest.mark.asyncio(loop_scope="module")

IMAGE = "<img src=x onerror=\"document.title='broken in'\">"


async def click(page: "Page", name: str, role: Any = "button") -> None:
    await page.get_by_role(role, name=name, exact=True).click()


async def turn_to(page: "Page", name: str) -> None:
    """Open a page by its link in the navigation."""
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()


async def in_dialog(page: "Page", action: str, **fields: str) -> None:
    """Fill the fields of the open dialog, by label with underscores for spaces, and press its button."""
    dialog = page.get_by_role("dialog")
    for label, value in fields.items():
        field = dialog.get_by_label(label.replace("_", " "), exact=True)
        is_select = await field.evaluate("field => field.tagName === 'SELECT'")
        await (field.select_option(label=value) if is_select else field.fill(value))
    await dialog.get_by_role("button", name=action, exact=True).click()


async def told(page: "Page", words: str) -> None:
    """Wait for a notice."""
    await page.locator(".notice").get_by_text(words).wait_for()


async def new_key(page: "Page", button: str = "Copy key") -> str:
    """The key that a dialog shows, which its button copies."""
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name=button).click()
    key = await dialog.locator(".secret code").inner_text()
    assert await page.evaluate("navigator.clipboard.readText()") == key
    return key


async def copied(page: "Page", button: str = "Copy as curl") -> str:
    """The text that the first such button copies."""
    await page.get_by_role("button", name=button).first.click()
    await page.get_by_role("button", name="Copied").wait_for()
    text: str = await page.evaluate("navigator.clipboard.readText()")
    return text


async def test_the_whole_life_of_a_customer(site: Site) -> None:
    partner = await site.partner()
    async with site.visit(partner.admin_key, permissions=["clipboard-read", "clipboard-write"]) as page:
        await turn_to(page, "Accounts")
        await page.get_by_text("No accounts yet").wait_for()
        await click(page, "New account")
        await in_dialog(page, "Create account", Name="Customer", Reference="O'Hara", Email="a@example.com")
        await page.get_by_role("heading", name="Customer").wait_for()
        await told(page, "User account created")

        await click(page, "New credential")
        await in_dialog(page, "Create credential", Name="backend")
        network = page.get_by_role("dialog").get_by_label("Network", exact=True)
        assert await network.evaluate("field => field.validity.valueMissing"), "no network is preselected"
        await in_dialog(page, "Create credential", Network="Preview")
        first = await new_key(page)
        await click(page, "Try it")
        await try_history(page)
        await page.reload()
        assert await page.get_by_label("API key", exact=True).input_value() == "", "a reload forgets it"

        credential = (await partner.data("GET", "/credentials"))[0]
        await site.used(credential, 40)
        await site.used(credential, 2, 4)
        await turn_to(page, "Credentials")
        await click(page, "backend", "link")
        await page.get_by_role("img", name="Requests in the last 30 days: 42").wait_for()
        assert first not in await page.content()
        await change_rules(page)
        assert await limit_is_drawn(page)

        await click(page, "Rotate")
        await in_dialog(page, "Rotate key", The_former_key_expires="After a day")
        second = await new_key(page)
        await click(page, "I have stored it")
        await told(page, "Credential rotated")
        assert [(await site.api.get("/v1/key", key)).status for key in (first, second)] == [200, 200]
        await turn_to(page, "Audit log")
        rotated = page.get_by_role("row").filter(has_text="Credential rotated")
        await rotated.get_by_role("link", name="backend", exact=True).click()

        await click(page, "Revoke")
        await in_dialog(page, "Revoke key")
        await told(page, "Credential revoked")
        await page.get_by_text("Revoked", exact=True).first.wait_for()
        assert [(await site.api.get("/v1/key", key)).status for key in (first, second)] == [403, 403]
        await click(page, "Customer", "link")
        await click(page, "Delete")
        await in_dialog(page, "Delete account")
        await told(page, "User account deleted")
        await page.get_by_text("No accounts yet").wait_for()
        await audited(page)


async def try_history(page: "Page") -> None:
    """Ask for the transactions of an address."""
    await page.get_by_label("Call", exact=True).select_option("list_transaction_history")
    named = await page.locator("form [name^='parameter ']").evaluate_all("fields => fields.map(each => each.name)")
    assert named[0] == "parameter address" and len(named) > 1, "what the path needs comes first"
    await page.get_by_label("address", exact=True).fill(ALICE)
    await click(page, "Send")
    answer = page.get_by_label("Answer", exact=True)
    await answer.get_by_text(hash_of("first").hex()).wait_for()
    assert "59 of 60 requests left" in await page.locator(".answer").inner_text()
    assert "$API_KEY" in await copied(page)


async def change_rules(page: "Page") -> None:
    """Change limits and restrictions of the credential on the page; an invalid network is reported at its field."""
    await click(page, "Change limits")
    await in_dialog(page, "Save limits", Requests_per_minute="50", Quota="100", Requests_per="Day (UTC)")
    await told(page, "Limits updated")
    await page.get_by_text("100 requests per day (UTC)").wait_for()
    await click(page, "Change restrictions")
    await in_dialog(page, "Save restrictions", Networks="nonsense")
    field = page.get_by_label("Networks", exact=True)
    await page.get_by_text("ip_networks must be an array of").wait_for()
    assert await field.get_attribute("aria-invalid") == "true"
    assert await field.evaluate("field => field === document.activeElement")
    await page.get_by_role("dialog").get_by_label("transactions").check()
    await in_dialog(page, "Save restrictions", Networks="127.0.0.1")
    await told(page, "Restrictions updated")
    await page.get_by_text("127.0.0.1/32").wait_for()


async def limit_is_drawn(page: "Page") -> bool:
    """Whether the chart has pixels of the limit's colour in a row."""
    await page.locator(".legend").get_by_text("Limit per day").wait_for()
    found: bool = await page.locator(".plot canvas").first.evaluate(
        """canvas => {
            const colour = getComputedStyle(document.documentElement).getPropertyValue("--limit").trim();
            const [red, green, blue] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
            const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const is = at => data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] > 9;
            const inRow = y => [...Array(width).keys()].filter(x => is(4 * (y * width + x))).length;
            return [...Array(height).keys()].some(y => inRow(y) > width / 3);
        }"""
    )
    return found


async def audited(page: "Page") -> None:
    """The audit log has every step, or a single one if filtered; reads are shown on request."""
    await turn_to(page, "Audit log")
    done = page.get_by_role("table", name="Audit log")
    await done.get_by_role("cell", name="Account deleted", exact=True).wait_for()
    assert await done.get_by_role("cell", name=re.compile("viewed|listed")).count() == 0
    await page.get_by_label("Reads", exact=True).select_option(label="Shown")
    await done.get_by_role("cell", name="Credential viewed", exact=True).first.wait_for()
    for action in (
        "Account created",
        "Credential created",
        "Credential rotated",
        "Credential revoked",
        "Account deleted",
    ):
        await done.get_by_role("cell", name=action, exact=True).wait_for()
    await page.get_by_label("Action", exact=True).select_option(label="Credential rotated")
    await page.get_by_text("1 to 1 of 1").wait_for()
    offered = (
        await page.get_by_label("Action", exact=True)
        .locator("option")
        .evaluate_all("all => all.map(each => each.value)")
    )
    assert sorted(offered) == sorted(["", *get_args(Action)])


async def test_a_credentials_subscriptions_say_what_is_told_and_why_it_is_not_delivered(site: Site) -> None:
    partner = await site.partner()
    credential, _ = await partner.issued(await partner.user())
    await site.delivering(await site.subscribed(credential, 3), [(1, 500, None), (2, None, "unreachable")])
    for _ in range(20):
        await site.subscribed(credential, 0)
    async with site.visit(partner.admin_key) as page:
        await page.goto(f"/console#/credentials/{credential['id']}")
        shown = page.get_by_role("table", name="Subscriptions", exact=True)
        await page.get_by_text("1 to 20 of 21").wait_for()
        assert await shown.get_by_role("row").filter(has_text="hooks.example").count() == 0
        await page.get_by_role("navigation", name="Pagination").get_by_role("button", name="Next").click()
        row = shown.get_by_role("row").filter(has_text="2 of 3 events delivered")
        await row.get_by_text("2 attempts to send the next one failed, the last: not reachable").wait_for()
        await row.get_by_role("button", name=re.compile("^Attempts")).click()
        attempts = page.get_by_role("table", name="Last attempts").get_by_role("row")
        assert await attempts.count() == 3
        assert [("not reachable" in each, "status 500" in each) for each in await attempts.all_inner_texts()] == [
            (False, False),
            (True, False),
            (False, True),
        ]


async def test_a_webhook_is_paused_replayed_and_rotated_and_events_are_followed(site: Site) -> None:
    partner = await site.partner()
    credential, key = await partner.issued(await partner.user())
    subscription = await site.subscribed(credential, 3)
    await site.delivering(subscription, [(1, 500, None)])
    path = f"/v1/subscriptions/{subscription}/webhook"
    async with site.visit(partner.admin_key, permissions=["clipboard-read", "clipboard-write"]) as page:
        await turn_to(page, "Subscriptions")
        await page.get_by_label("API key", exact=True).fill(key)
        await click(page, "Open")
        assert await focused(page) == "Subscriptions"
        await page.get_by_role("table", name="Subscriptions").get_by_role("link", name=subscription[:8]).click()
        await click(page, "Pause")
        await in_dialog(page, "Pause")
        await told(page, "Webhook paused")
        assert (await site.api.get(path, key)).body["data"]["state"] == "paused"
        await click(page, "Resume")
        await in_dialog(page, "Resume")
        await told(page, "Webhook resumed")
        await click(page, "Send again")
        await in_dialog(page, "Send again", After_number="1")
        await page.get_by_text("1 of 3 events delivered").wait_for()
        webhook = (await site.api.get(path, key)).body["data"]
        assert (webhook["state"], webhook["delivered_number"]) == ("active", 1)
        await click(page, "Rotate secret")
        await in_dialog(page, "Rotate secret")
        secret = await new_key(page, "Copy secret")
        await click(page, "I have stored it")
        await told(page, "Secret replaced")
        assert secret.startswith("whsec_") and secret not in await page.content()

        events = page.get_by_role("table", name="Events").get_by_role("row")
        assert await events.count() == 4
        await click(page, "Follow")
        await page.get_by_text("Following: new events appear on top.").wait_for()
        number = await site.db.fetchval("SELECT subscription_no FROM partner.subscription WHERE id = $1", subscription)
        await site.tell(number, 4)
        await events.nth(4).wait_for()
        await events.nth(1).get_by_text("Payload of event 4").click()
        payload = page.get_by_label("Payload of event 4", exact=True)
        read = await site.api.get(f"/v1/subscriptions/{subscription}/events?after=3", key)
        assert msgspec.json.decode(await payload.inner_text()) == read.body["data"][0]
        await site.api.call("DELETE", f"/v1/subscriptions/{subscription}", key)
        refusal = page.get_by_role("alert").filter(has_text="Subscription not found.")
        await refusal.get_by_text("subscription_not_found").wait_for()
        assert "request" not in await refusal.inner_text(), "an event of a stream names none"


async def test_a_new_credential_has_its_rules_before_its_key_is_shown(site: Site) -> None:
    partner = await site.partner()
    account = await partner.user(name="Customer")
    async with site.visit(partner.admin_key, permissions=["clipboard-read", "clipboard-write"]) as page:
        await page.goto(f"/console#/accounts/{account['id']}")
        await click(page, "New credential")
        create = page.get_by_role("button", name="Create credential")
        assert await create.evaluate("(button) => button.getBoundingClientRect().bottom <= innerHeight")
        await page.get_by_role("dialog").get_by_label("assets").check()
        await in_dialog(page, "Create credential", Name="b", Network="Preview", Quota="100", Networks="nonsense")
        await page.get_by_role("dialog").get_by_text("ip_networks must be an array of").wait_for()
        (refused,) = await partner.data("GET", "/credentials?includeRevoked=true")
        assert refused["revoked"], "no key without the rules that were asked for is left"
        await in_dialog(page, "Create credential", Networks="127.0.0.0/8")
        key = await new_key(page)
        assert (await site.api.get("/v1/network", key)).status == 403
        (made,) = await partner.data("GET", "/credentials")
        limits, restrictions = [
            await partner.data("GET", f"/credentials/{made['id']}/{of}") for of in ("limits", "restrictions")
        ]
        assert limits["quota"] == {"requests": 100, "per": "month"}
        assert (restrictions["ip_networks"], restrictions["scopes"]) == (["127.0.0.0/8"], ["assets"])


async def test_every_period_and_every_page_open_after_one_another_in_both_orders(site: Site) -> None:
    partner = await site.partner()
    account = await partner.user(name="Customer")
    credential, _ = await partner.issued(account, name="backend")
    await site.used(credential, 42)
    bars = {"24 hours": 24, "7 days": 7, "30 days": 30, "12 months": 12}
    periods = [*bars, *reversed(bars)]
    async with site.visit(partner.admin_key) as page:
        for path in ("", f"credentials/{credential['id']}"):
            await page.goto(f"/console#/{path}")
            await page.get_by_role("img", name="Requests in the last 30 days: 42").wait_for()
            for period in periods:
                await page.get_by_role("navigation", name="Period").get_by_role("link", name=period).click()
                chart = page.locator("figure").filter(
                    has=page.get_by_role("img", name=f"Requests in the last {period}: 42")
                )
                await chart.wait_for()
                assert await chart.locator("tbody tr").count() == bars[period]
        links = page.get_by_role("navigation", name="Pages").get_by_role("link")
        pages = await links.all_inner_texts()
        for name in [*pages, *reversed(pages)]:
            await turn_to(page, name)
            await page.get_by_role("heading", level=1, name=name, exact=True).wait_for()
            assert await page.get_by_role("heading", level=1).all_inner_texts() == [name]


async def test_long_names_take_two_lines_and_are_shown_in_full_on_request(site: Site) -> None:
    partner = await site.partner("P" * 255)
    name = "Wide " * 51
    account = await partner.user(name=name, external_id="r" * 255, email="e" * 255, billing_plan="p" * 255)
    credential, _ = await partner.issued(account, name=name)
    async with site.visit(partner.admin_key, viewport={"width": 390, "height": 900}) as page:
        for path in (
            "accounts",
            f"accounts/{account['id']}",
            "credentials",
            f"credentials/{credential['id']}",
            "audit",
        ):
            await page.goto(f"/console#/{path}")
            shown = page.get_by_role("main").locator(f"[title^='{name.strip()}']")
            await shown.first.wait_for()
            lines = "each => each.clientHeight / parseFloat(getComputedStyle(each).lineHeight)"
            assert await shown.first.evaluate(lines) < 2.5
            assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path


async def test_two_partners_side_by_side_see_nothing_of_each_other(site: Site) -> None:
    one, other = await site.partner("One"), await site.partner("Other")
    account = await one.user(name="Customer of One")
    credential, _ = await one.issued(account, name="Key of One")
    await site.used(credential, 1_234)
    async with site.visit(one.admin_key) as mine, site.visit(other.admin_key) as theirs:
        await mine.get_by_text("1,234").first.wait_for()
        await theirs.get_by_text("No requests in this period").wait_for()
        for page, words in ((mine, "Customer of One"), (theirs, "No accounts yet")):
            await turn_to(page, "Accounts")
            await page.get_by_role("main").get_by_text(words).wait_for()
        for path, refusal in (
            (f"accounts/{account['id']}", "User account not found."),
            (f"credentials/{credential['id']}", "Credential not found."),
        ):
            await theirs.goto(f"/console#/{path}")
            await theirs.get_by_role("alert").get_by_text(refusal).wait_for()
        await theirs.goto(f"/console#/audit?target_id={account['id']}")
        await theirs.get_by_text("No entry matches").wait_for()
        assert "of One" not in await theirs.content()


async def test_markup_in_names_is_shown_as_text(site: Site) -> None:
    partner = await site.partner(IMAGE)
    account = await partner.user(name=IMAGE, external_id=IMAGE, metadata={IMAGE: IMAGE}, billing_plan=IMAGE)
    credential, _ = await partner.issued(account, name=IMAGE, description=IMAGE, expires_at="2099-01-01")
    await partner.data("PUT", f"/credentials/{credential['id']}/limits", {"expires_at": "2098-01-01"})
    async with site.visit(partner.admin_key) as page:
        paths = ("accounts", f"accounts/{account['id']}", "credentials", f"credentials/{credential['id']}", "audit")
        for path in ("", *paths):
            await page.goto(f"/console#/{path}")
            await page.get_by_role("main").get_by_text(IMAGE).first.wait_for()
            assert await page.locator("img").count() == 0
            assert "broken in" not in (await page.title()).split("·")[-1]
        await page.goto(f"/console#/accounts?search={IMAGE}")
        assert await page.get_by_label("Find", exact=True).input_value() == IMAGE


async def test_every_page_is_accessible_in_both_schemes_at_each_width(site: Site) -> None:
    partner = await site.partner("A partner")
    account = await partner.user(name="A customer with a long name that wraps, GmbH & Co. KG", metadata={"tier": 2**60})
    credential, key = await partner.issued(account, name="backend", description="Production")
    await partner.user(name="Suspended")
    await site.used(credential, 1_000)
    await site.used(credential, 30, 5)
    subscription = await site.subscribed(credential, 3)
    await site.delivering(subscription, [(1, 500, None), (2, None, "unreachable")])
    async with new_page(site.browser, site.api) as page:
        await page.goto("/console")
        await page.get_by_role("heading", name="Console").wait_for()
        await assert_accessible(page)
    async with site.visit(partner.admin_key) as page:
        visited = (
            ("", "GET /v1/key"),
            ("accounts", "1 to 2 of 2"),
            (f"accounts/{account['id']}", "GET /v1/key"),
            ("credentials", "1 to 1 of 1"),
            (f"credentials/{credential['id']}", "GET /v1/key", "2 of 3 events delivered"),
            ("subscriptions", "With which API key?"),
            ("audit", "from 127.0.0.1"),
            (f"accounts/{credential['id']}", "User account not found."),
        )
        links = page.get_by_role("navigation", name="Pages").get_by_role("link")
        linked = await links.evaluate_all("links => links.map(each => each.hash)")
        assert set(linked) <= {f"#/{path}" for path in (*(path for path, *_ in visited), "try")}
        for path, *texts in visited:
            await page.goto(f"/console#/{path}")
            for words in texts:
                await page.get_by_role("main").get_by_text(words).first.wait_for()
            await assert_accessible(page)
        await page.goto("/console#/try?operation=get_own_key")
        await page.get_by_label("API key", exact=True).fill(key)
        await click(page, "Send")
        await page.get_by_label("Answer", exact=True).wait_for()
        await assert_accessible(page)
        await page.goto(f"/console#/subscriptions/{subscription}")  # the key is remembered
        await page.get_by_role("main").get_by_text("Payload of event 3").first.click()
        await assert_accessible(page)
        for path, opener, field in (
            (f"credentials/{credential['id']}", "Change restrictions", "Networks"),
            (f"credentials/{credential['id']}", "Rotate", "The former key expires"),
            (f"credentials/{credential['id']}", re.compile("^Attempts to send"), "refused, status 500"),
            (f"accounts/{account['id']}", "New credential", "Scopes"),
        ):
            await page.goto(f"/console#/{path}")
            await page.get_by_role("button", name=opener).click()
            await page.get_by_role("dialog").get_by_text(field, exact=True).wait_for()
            await assert_accessible(page)
            await page.keyboard.press("Escape")
        await click(page, "New credential")
        await in_dialog(page, "Create credential", Name="another", Network="Preview")
        await page.get_by_role("dialog").get_by_role("button", name="Copy key").wait_for()
        await assert_accessible(page)
    await site.db.execute("UPDATE partner.admin_key SET last_used_at = now() - interval '11 months'")  # the longest
    async with site.visit(BOOTSTRAP_KEY) as page:
        await page.get_by_role("table", name="Admin keys").wait_for()
        await assert_accessible(page)
        await click(page, "New admin key")
        await assert_accessible(page)


async def focused(page: "Page") -> str:
    """The text of the focused element, or its name if it is a field."""
    text: str = await page.evaluate("document.activeElement.name || document.activeElement.textContent.trim()")
    return text


async def test_an_account_is_created_with_only_the_keyboard(site: Site) -> None:
    partner = await site.partner()
    async with new_page(site.browser, site.api, reduced_motion="reduce") as page:
        await page.goto("/console#/accounts")
        assert await focused(page) == "admin_key"
        await page.keyboard.type(partner.admin_key)
        await page.keyboard.press("Enter")
        await page.get_by_text("No accounts yet").wait_for()
        assert await focused(page) == "Accounts", "the heading of the page that opened"
        for key, reached in (("Tab", "Copy as curl"), ("Tab", "New account"), ("Enter", "name")):
            await page.keyboard.press(key)
            assert await focused(page) == reached
        await page.keyboard.press("Escape")
        assert await focused(page) == "New account"
        await page.keyboard.press("Enter")
        await page.keyboard.type("By keyboard")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="By keyboard").wait_for()
        assert await focused(page) == "By keyboard"
        await page.reload()
        await page.get_by_role("heading", name="By keyboard").wait_for()
        await page.keyboard.press("Tab")
        assert await focused(page) == "Skip to content"
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.tagName") == "MAIN"


async def test_filters_and_pages_survive_back_and_reload(site: Site) -> None:
    partner = await site.partner()
    for number in range(21):
        await partner.user(name=f"Customer {number:02}", external_id="it's" if number == 7 else f"{number}")
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    async with site.visit(partner.admin_key, **options) as page:
        await turn_to(page, "Accounts")
        await page.get_by_text("1 to 20 of 21").wait_for()
        await click(page, "Next")
        await page.get_by_text("21 to 21 of 21").wait_for()
        await page.reload()
        await page.get_by_text("21 to 21 of 21").wait_for()
        await page.get_by_label("Find", exact=True).fill("it's")
        await page.keyboard.press("Enter")
        await page.get_by_text("1 to 1 of 1").wait_for()
        await page.get_by_text("Customer 07").wait_for()
        line = await copied(page)
        assert partner.admin_key not in line
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-c", line), env={**os.environ, "ADMIN_KEY": partner.admin_key}, stdout=asyncio.subprocess.PIPE
        )
        answer = msgspec.json.decode((await shell.communicate())[0])
        assert [user["name"] for user in answer["data"]] == ["Customer 07"]
        await page.go_back()
        await page.get_by_text("21 to 21 of 21").wait_for()
        assert await page.get_by_label("Find", exact=True).input_value() == ""


async def test_usage_that_is_too_long_to_add_up_is_reported(site: Site) -> None:
    partner = await site.partner()
    credential, _ = await partner.issued(await partner.user())
    await site.used(credential, 7)

    async def with_a_low_limit(route: "Route") -> None:
        response = await route.fetch()
        text = await response.text()
        assert "MAX_LINES = 200_000" in text
        await route.fulfill(response=response, body=text.replace("MAX_LINES = 200_000", "MAX_LINES = 0"))

    async with site.visit(partner.admin_key) as page:
        await page.route("**/docs/overview.js", with_a_low_limit)
        await page.reload()
        await page.get_by_text("Too much to add up here").wait_for()


async def test_a_wrong_key_is_reported_and_a_revoked_one_signs_out(site: Site) -> None:
    partner = await site.partner()
    async with new_page(site.browser, site.api) as page:
        await page.goto("/console")
        for key, words in (
            ("nonsense", "An admin key is iiak_admin_ followed by 40 hex characters."),
            ("iiak_admin_" + "0" * 40, "Invalid admin API key."),
        ):
            await sign_in(page, key)
            await page.get_by_text(words).wait_for()
            assert await page.evaluate("sessionStorage.length") == 0
        await sign_in(page, partner.admin_key)
        await page.get_by_text("No requests in this period").wait_for()
        await Partner(site.api, BOOTSTRAP_KEY).data("DELETE", f"/admin-keys/{partner.record['id']}")
        await turn_to(page, "Accounts")
        await page.get_by_role("alert").get_by_text("You have been signed out").wait_for()
        assert await page.evaluate("sessionStorage.length") == 0


async def test_a_missing_permission_is_reported_with_its_remedy(site: Site) -> None:
    partner = await partner_of(site.api, "Reader", ["view_usage"])
    async with site.visit(partner.admin_key) as page:
        await turn_to(page, "Audit log")
        alert = page.get_by_role("alert")
        await alert.get_by_text("Permission denied: view_audit_logs required.").wait_for()
        await alert.get_by_text("Ask the operator for an admin key with this permission.").wait_for()
        assert await alert.get_by_role("link", name="permission_denied").get_attribute("href") == (
            "/docs#/errors/permission_denied"
        )


async def test_the_bootstrap_key_creates_and_revokes_admin_keys(site: Site) -> None:
    async with site.visit(BOOTSTRAP_KEY, permissions=["clipboard-read", "clipboard-write"]) as page:
        assert await page.get_by_role("link", name="Accounts").count() == 0
        await click(page, "New admin key")
        await page.get_by_label("view_audit_logs").uncheck()
        await in_dialog(page, "Create admin key", Partner="Newcomer")
        key = await new_key(page)
        assert re.fullmatch(r"iiak_admin_[0-9a-f]{40}", key)
        await click(page, "I have stored it")
        await told(page, "Admin key created")
        assert key not in await page.content()
        newcomer = Partner(site.api, key)
        assert [(await newcomer.get(path)).status for path in ("/users", "/audit-logs")] == [200, 403]
        row = page.get_by_role("row").filter(has_text="Newcomer")
        await row.get_by_role("button", name="Revoke").click()
        await in_dialog(page, "Revoke admin key")
        await row.get_by_text("Revoked").wait_for()
        assert (await newcomer.get("/users")).status == 403
        await click(page, "Sign out")
        await page.get_by_role("button", name="Sign in").wait_for()
        assert await page.evaluate("sessionStorage.length") == 0
