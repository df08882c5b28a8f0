// The quota and the restrictions of a credential in forms: their fields, and what they hold.
import { choices } from "./api.js";
import { Choice, Field, given, html } from "./parts.js";

const UNRESTRICTED = { ip_networks: [], scopes: [] };

export const scopes = () => choices("/v1/admin/credentials/{id}/restrictions", "put", "scopes");

export function QuotaFields({ quota = null, wrong }) {
  return html`<div class="pair">
    <${Field} name="quota" label="Quota" hint="Leave empty for no quota." type="number" min="1" wrong=${wrong} value=${quota?.requests ?? ""} />
    <${Field} name="per" label="Requests per" options=${[["day", "Day (UTC)"], ["month", "Month (UTC)"]]} value=${quota?.per ?? "month"} />
  </div>`;
}

export function quotaIn(data) {
  const requests = given(data, "quota");
  return requests ? { requests: Number(requests), per: data.get("per") } : null;
}

export function RestrictionFields({ scopes, values = UNRESTRICTED, wrong }) {
  return html`
    <${Field} name="ip_networks" label="Networks" rows="3" spellcheck=${false} wrong=${wrong} value=${values.ip_networks.join("\n")}
      hint="One per line, such as 203.0.113.0/24 or 2001:db8::/32. If empty, keys work from anywhere." />
    <fieldset>
      <legend class="label">Scopes</legend>
      ${scopes.map((scope) => html`<${Choice} name="scopes" value=${scope} checked=${values.scopes.includes(scope)} />`)}
      <small class="muted">If none is chosen, keys may call everything but submit.</small>
    </fieldset>`;
}

export function restrictionsIn(data) {
  return { ip_networks: data.get("ip_networks").split(/[\s,]+/).filter(Boolean), scopes: data.getAll("scopes") };
}
