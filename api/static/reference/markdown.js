// The Markdown of /openapi.json as elements: paragraphs, numbered lists, code, and in a line code, bold and links.
import { html } from "./parts.js";

export function Markdown({ text }) {
  return text.split(/\n{2,}/).map((block) => html`<${Block} text=${block.trim()} />`);
}

function Block({ text }) {
  if (text.startsWith("```")) return html`<pre tabindex="0" aria-label="Code"><code>${text.replace(/^```\w*\n|\n```$/g, "")}</code></pre>`;
  if (/^1\. /.test(text)) {
    return html`<ol>${text.split(/\n(?=\d+\. )/).map((item) => html`<li><${Line} text=${item.replace(/^\d+\. /, "")} /></li>`)}</ol>`;
  }
  return html`<p><${Line} text=${text} /></p>`;
}

// The text of a line, or of a paragraph.
export function Line({ text }) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/).map((part) => {
    if (part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("**")) return html`<strong>${part.slice(2, -2)}</strong>`;
    const [, words, address] = part.match(/^\[(.+)\]\((.+)\)$/) ?? [];
    return address ? html`<a href=${address}>${words}</a>` : part;
  });
}
