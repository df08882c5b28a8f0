// Charts of usage: stacked bars of requests with the limit drawn in, and lines of response times.
import { Component } from "./preact.mjs";
import { html } from "./parts.js";
import { Plot, axis, bars, colour } from "./plot.js";
import { number } from "./words.js";

const HEIGHT = 220;
const FAR_ABOVE = 8; // a limit this many times the tallest bar would flatten the bars

const X_AXIS = { grid: { show: false }, size: 26, gap: 8 };
const Y_AXIS = { size: 64, space: 44 };

// `names` label the places on the x axis, `series` are {name, token, values}; the first of stacked ones is the lowest.
// `limit` has a value for each place, or is null. `show` formats a value.
export class Chart extends Component {
  state = { at: null, scaled: false };

  // Whether the limit lies so far above the bars that it is drawn only on request.
  isFar() {
    const tallest = Math.max(...this.sums());
    return Boolean(this.props.limit) && tallest > 0 && Math.max(...this.props.limit) > FAR_ABOVE * tallest;
  }

  sums() {
    return this.props.names.map((_, place) => this.props.series.reduce((sum, { values }) => sum + (values[place] ?? 0), 0));
  }

  plotted = () => {
    const { names, series, stacked, limit, show = number } = this.props;
    const shownLimit = limit && (this.state.scaled || !this.isFar()) ? limit : null;
    const heights = stacked ? this.sums() : series.flatMap(({ values }) => values.map((value) => value ?? 0));
    const most = Math.max(...heights, ...(shownLimit ?? []));
    const values = stacked ? sumsFromTop(series) : series.map((each) => each.values);
    return {
      data: [names.map((_, place) => place), ...values],
      padding: [12, 20, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !stacked } },
      scales: { x: { time: false, range: [-0.5, names.length - 0.5] }, y: { range: [0, Math.max(most * 1.06, stacked ? 4 : 0.1)] } },
      axes: [
        { ...axis(), ...X_AXIS, splits: (plot) => places(names.length, plot.width), values: (_, at) => at.map((place) => names[place] ?? "") },
        { ...axis(), ...Y_AXIS, grid: { stroke: colour("line"), width: 1 }, values: (_, at) => at.map(show), ...(stacked && { incrs: wholeSteps() }) },
      ],
      series: [{}, ...(stacked ? columns(series) : lines(series))],
      hooks: { setCursor: [({ cursor }) => this.pointed(cursor.idx)], draw: shownLimit ? [(plot) => drawLimit(plot, shownLimit)] : [] },
    };
  };

  pointed(place) {
    const at = place === null || place === undefined ? null : place;
    if (at !== this.state.at) this.setState({ at });
  }

  render({ label, names, titles = names, series, stacked, limit, limitName, show = number }, { at, scaled }) {
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    const here = (values) => (values[at] === null ? "–" : show(values[at]));
    const shown = (values) => (at !== null ? here(values) : stacked ? show(sum(values)) : "");
    return html`<figure class="chart">
      <figcaption class="legend">
        <span class="where">${at === null ? label : titles[at]}</span>
        ${series.map(({ name, token, values }) => html`<span><i class=${`swatch ${token}`}></i>${name} <b>${shown(values)}</b></span>`)}
        ${limit && html`<span><i class="swatch limit"></i>${limitName} <b>${at !== null && number(limit[at])}</b></span>`}
      </figcaption>
      <${Plot} label=${label} height=${HEIGHT} plotted=${this.plotted} of=${[series, limit, scaled]} />
      ${this.isFar() &&
      html`<label class="small">
        <input type="checkbox" role="switch" checked=${scaled} onChange=${() => this.setState({ scaled: !scaled })} />Extend the scale to the limit, ${number(Math.max(...limit))}
      </label>`}
      <details class="small">
        <summary>These figures as a table</summary>
        <div class="scroll" tabindex="0" role="group" aria-label=${`Table: ${label}`}><${FiguresTable} ...${{ label, titles, series, limit, limitName, show }} /></div>
      </details>
    </figure>`;
  }
}

function FiguresTable({ label, titles, series, limit, limitName, show }) {
  const columns = [...series, ...(limit ? [{ name: limitName, values: limit }] : [])];
  return html`<table>
    <caption class="unseen">${label}</caption>
    <thead><tr><th scope="col">Period</th>${columns.map(({ name }) => html`<th scope="col" class="figures">${name}</th>`)}</tr></thead>
    <tbody>
      ${titles.map(
        (title, place) => html`<tr>
          <th scope="row">${title}</th>
          ${columns.map(({ values }) => html`<td class="figures">${values[place] === null ? "–" : show(values[place])}</td>`)}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

// Columns are drawn over one another, the tallest first: the height of each includes the columns below it.
const columns = (series) =>
  series
    .map(({ token }) => ({ fill: colour(token), width: 0, points: { show: false }, paths: bars({ size: [0.72, 44], radius: 0.12 }) }))
    .reverse();

function sumsFromTop(series) {
  const upTo = (top, place) => series.slice(0, top + 1).reduce((sum, { values }) => sum + values[place], 0);
  return series.map((_, top) => series[top].values.map((_, place) => upTo(top, place))).reverse();
}

const lines = (series) =>
  series.map(({ token }) => {
    const stroke = colour(token);
    return { stroke, width: 2, spanGaps: true, points: { show: true, size: 5, fill: stroke } };
  });

const wholeSteps = () => [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power));

// As many labels as fit side by side, always including the last place.
function places(count, width) {
  const every = Math.max(1, Math.ceil((count * 64) / Math.max(width - 60, 64)));
  return Array.from({ length: Math.ceil(count / every) }, (_, index) => count - 1 - index * every).reverse();
}

function drawLimit(plot, limit) {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = colour("limit");
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  limit.forEach((value, place) => {
    const height = plot.valToPos(value, "y", true);
    ctx.lineTo(plot.valToPos(place - 0.5, "x", true), height);
    ctx.lineTo(plot.valToPos(place + 0.5, "x", true), height);
  });
  ctx.stroke();
  ctx.restore();
}
