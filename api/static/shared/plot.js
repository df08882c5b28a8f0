// A plot of uPlot that follows the width of its place and the colour scheme. Only pages with a chart load it.
import { Component, createRef } from "./preact.mjs";
import uPlot from "./uPlot.esm.js";
import { html } from "./parts.js";

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const axis = () => ({ stroke: colour("muted"), ticks: { show: false }, font: "12px system-ui" });
export const { bars } = uPlot.paths;

// `plotted()` returns uPlot's options and, as `data`, the values. They are drawn again when one of the values in `of` changes.
export class Plot extends Component {
  box = createRef();

  componentDidMount() {
    this.scheme = window.matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.draw);
    this.resized = new ResizeObserver(() => {
      const width = this.box.current.clientWidth;
      if (width !== this.plot.width) this.plot.setSize({ width, height: this.props.height });
    });
    this.draw();
    this.resized.observe(this.box.current);
  }

  componentDidUpdate(before) {
    if (this.props.of.some((each, place) => each !== before.of[place])) this.draw();
  }

  componentWillUnmount() {
    this.scheme.removeEventListener("change", this.draw);
    this.resized.disconnect();
    this.plot.destroy();
  }

  draw = () => {
    this.plot?.destroy();
    const { plotted, height } = this.props;
    const { data, ...options } = plotted();
    this.plot = new uPlot({ width: this.box.current.clientWidth, height, legend: { show: false }, ...options }, data, this.box.current);
  };

  render({ label }) {
    return html`<div role="img" aria-label=${label} class="plot" ref=${this.box}></div>`;
  }
}
