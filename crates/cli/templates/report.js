"use strict";
(() => {
  const box = document.getElementById("filter");
  const input = box.querySelector("input");
  const count = box.querySelector("output");
  const items = [...document.querySelectorAll(".item")].map((item) => [item, item.textContent.toLowerCase()]);
  const folds = [...document.querySelectorAll("details.fold")];
  const opened = folds.map((fold) => fold.open);
  box.hidden = false;
  box.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    for (const [item, text] of items) {
      item.hidden = !words.every((word) => text.includes(word));
      hits += item.hidden ? 0 : 1;
    }
    folds.forEach((fold, index) => { fold.open = words.length ? fold.querySelector(".item:not([hidden])") !== null : opened[index]; });
    count.textContent = words.length ? hits + " of " + items.length + " shown" : "";
  });
  const all = document.querySelectorAll("details");
  let before = [];
  addEventListener("beforeprint", () => { before = [...all].map((one) => one.open); all.forEach((one) => { one.open = true; }); });
  addEventListener("afterprint", () => { all.forEach((one, index) => { one.open = before[index]; }); });
})();
