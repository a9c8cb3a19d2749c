"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const line = document.createElement("h1");
  line.textContent = page.verdict.headline;
  const text = document.createElement("p");
  text.textContent = page.verdict.text;
  document.getElementById("app").append(line, text);
})();
