// The samples of an operation in several languages. The language also applies to operations that are opened later.
import { Copy, html } from "./parts.js";
import { Component } from "./preact.mjs";

const DEFAULT_URL = "http://127.0.0.1:8080"; // the service's URL in samples (api/reference/samples.py)
let language = 0;

export class Samples extends Component {
  choose = (number) => {
    language = number;
    this.forceUpdate();
  };

  render({ samples }) {
    const source = samples[language].source.replace(DEFAULT_URL, location.origin);
    return html`
      <fieldset class="line">
        <legend class="unseen">Language</legend>
        ${samples.map(({ label }, number) => html`<button type="button" class="quiet" aria-pressed=${String(number === language)} onClick=${() => this.choose(number)}>${label}</button>`)}
        <div class="actions"><${Copy} label="Copy" text=${() => source} /></div>
      </fieldset>
      <pre tabindex="0" aria-label="Sample"><code>${source}</code></pre>`;
  }
}
