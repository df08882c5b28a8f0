const DEFAULT_URL = "http://127.0.0.1:8080"; // the service's URL in samples (api/samples.py)
const COPIED_MS = 2000;
let language = 0; // the last one chosen; it also applies to operations that are opened later

// A plugin that shows the samples of an operation (`x-codeSamples`) above its responses.
function samplesPlugin({ React: { createElement: h, useState } }) {
  function Samples({ samples }) {
    const [chosen, choose] = useState(language);
    const [copied, setCopied] = useState(false);
    const source = samples[chosen].source.replace(DEFAULT_URL, window.location.origin);
    const tabs = samples.map(({ label }, number) =>
      h("button", {
        key: label,
        type: "button",
        className: "btn",
        "aria-pressed": number === chosen,
        onClick: () => choose((language = number)),
      }, label));
    const copy = async () => {
      await navigator.clipboard.writeText(source);
      setCopied(true);
      setTimeout(() => setCopied(false), COPIED_MS);
    };
    return h("section", { className: "samples", "aria-label": "Samples" },
      h("div", { className: "opblock-section-header" },
        h("h4", null, "Samples"),
        tabs,
        // Browsers offer no clipboard to pages loaded over plain HTTP from another machine.
        navigator.clipboard && h("button", { type: "button", className: "btn", onClick: copy }, copied ? "Copied" : "Copy")),
      h("pre", { className: "microlight", tabIndex: 0 }, h("code", null, source)));
  }

  const withSamples = (Responses, { specSelectors }) => (props) => {
    const samples = specSelectors.specJson().getIn(["paths", props.path, props.method, "x-codeSamples"]);
    return h("div", null, samples && h(Samples, { samples: samples.toJS() }), h(Responses, props));
  };
  return { wrapComponents: { responses: withSamples } };
}

// Swagger UI's validator is an external service. With `validatorUrl: null`, the page contacts only its own origin.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#page",
  plugins: [samplesPlugin],
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
});
