"use strict";
{
  const filter = document.querySelector("#query");
  const items = [...document.querySelectorAll(".item")];
  filter.value = "tool-dashboard-0003";
  filter.dispatchEvent(new Event("input"));
  const filtered = items.filter((item) => !item.hidden).length;
  filter.value = "";
  filter.dispatchEvent(new Event("input"));
  document.querySelectorAll("details").forEach((one, index) => { one.open = index < 40; });
  document.querySelectorAll(".change").forEach((one) => { one.style.contentVisibility = "visible"; });

  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const visible = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  let contrast = { ratio: 100 };
  let texts = 0;
  const wide = [];
  for (const element of document.querySelectorAll("body *")) {
    if (!visible(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.right > innerWidth + 1 && !element.closest(".scroll")) wide.push(element.outerHTML.slice(0, 90));
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!text || element.closest("script, style")) continue;
    texts += 1;
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < contrast.ratio) contrast = { ratio, at: element.outerHTML.slice(0, 90) };
  }

  const tabbed = [...document.querySelectorAll("a[href], summary, input, [tabindex]")].filter((one) => visible(one) && !one.matches(".skip"));
  const disorder = tabbed.filter((one) => one.tabIndex !== 0).map((one) => one.outerHTML.slice(0, 90));
  const inFlow = tabbed.filter((one) => !one.closest("#filter"));
  for (let index = 1; index < inFlow.length; index += 1) {
    const [one, next] = [inFlow[index - 1], inFlow[index]].map((at) => at.getBoundingClientRect());
    if (next.top < one.top - 2) disorder.push(inFlow[index].outerHTML.slice(0, 90));
  }
  const unmarked = [];
  for (const one of tabbed.slice(0, 60)) {
    one.focus({ focusVisible: true, preventScroll: true });
    const style = getComputedStyle(one);
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) unmarked.push(one.outerHTML.slice(0, 90));
  }
  const pre = document.createElement("pre");
  pre.id = "probe";
  pre.textContent = JSON.stringify({
    width: innerWidth, scrollWidth: document.documentElement.scrollWidth, wide: wide.slice(0, 5),
    dark: matchMedia("(prefers-color-scheme: dark)").matches, contrast, texts, stops: tabbed.length, disorder: disorder.slice(0, 5),
    unmarked: unmarked.slice(0, 5), items: items.length, filtered,
  });
  document.body.append(pre);
}
