// Adds to a page that is whole without it: a search field, buttons that copy, and links that open.
"use strict";

function open(target) {
  for (let each = target; each; each = each.parentElement) {
    if (each.tagName === "DETAILS") each.open = true;
  }
  const inside = target.querySelector(":scope > details");
  if (inside) inside.open = true;
}

function follow() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  open(target);
  target.scrollIntoView();
}

function addCopying(figure) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const text = figure.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(figure.querySelector("code"));
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  figure.querySelector("figcaption").append(button);
}

function addSearch(place) {
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Find an operation or schema";
  field.setAttribute("aria-label", field.placeholder);
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const article of document.querySelectorAll("article")) {
      const text = article.id + " " + article.querySelector("summary").textContent;
      article.hidden = !text.toLowerCase().includes(wanted);
    }
    for (const link of document.querySelectorAll("nav ul ul li")) {
      link.hidden = !link.textContent.toLowerCase().includes(wanted);
    }
    for (const group of document.querySelectorAll("section.group")) {
      group.hidden = !group.querySelector("article:not([hidden])");
    }
  });
  place.append(field);
}

document.querySelectorAll("figure.block").forEach(addCopying);
addSearch(document.getElementById("search"));
if (matchMedia("(max-width: 60rem)").matches) document.getElementById("menu").open = false;
addEventListener("hashchange", follow);
follow();
