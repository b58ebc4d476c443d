"use strict";
// Translates what is typed, as it is typed, by one or two models. Nothing is written as HTML: all text is set as text.

const PAUSE = 250; // milliseconds without typing after which the text is translated
const source = document.getElementById("source");
const status = document.getElementById("status");
const selects = [document.getElementById("first"), document.getElementById("second")];
const panels = [...document.querySelectorAll(".panel")];
const asking = [null, null]; // the request of each panel that is under way
let models = [];
let timer = 0;

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

async function ask(path, values, signal) {
  const body = values && JSON.stringify(values);
  const headers = body ? { "Content-Type": "application/json" } : {};
  const response = await fetch(path, { method: body ? "POST" : "GET", body, headers, signal });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

const modelOf = (place) => models.find((model) => model.name === selects[place].value);

async function translate(place) {
  asking[place]?.abort();
  const model = modelOf(place);
  const lines = panels[place].querySelector(".lines");
  if (!model || !source.value.trim()) {
    lines.replaceChildren();
    lines.classList.remove("old");
    return;
  }
  const controller = (asking[place] = new AbortController());
  lines.classList.add("old");
  status.textContent = "Translating …";
  try {
    const found = await ask("page/translate", { model: model.name, q: source.value }, controller.signal);
    lines.replaceChildren(...found.map((line) => lineElement(line, model)));
    status.textContent = "";
  } catch (error) {
    if (error.name === "AbortError") return; // a newer request has taken its place
    lines.replaceChildren();
    status.textContent = error instanceof TypeError ? "The server cannot be reached." : error.message;
  }
  lines.classList.remove("old");
}

function lineElement(line, model) {
  const element = make("div", { className: "line" });
  const target = make("p", { className: "words of-target", lang: model.target.code, dir: "auto" });
  const from = make("p", { className: "words of-source", lang: model.source.code, dir: "auto" });
  const others = make("ol", { lang: model.target.code, dir: "auto" });
  const attention = attentionElement(model, line);
  const show = (number) => {
    const shown = line.translations[number];
    const links = shown.alignment;
    words(from, line.source, (word) => chosen(from, target, word, links.filter(([one]) => one === word).map(([, other]) => other)));
    words(target, shown.text, (word) => chosen(target, from, word, links.filter(([, other]) => other === word).map(([one]) => one)));
    [...others.children].forEach((item, at) => item.firstChild.setAttribute("aria-pressed", at === number));
    attention.show(shown.text);
  };
  line.translations.forEach((one, number) => {
    const button = make("button", { type: "button", textContent: one.text, onclick: () => show(number) });
    const score = one.score === null ? "" : ` score ${one.score.toFixed(2)}`;
    others.append(make("li", {}, button, make("span", { className: "score", textContent: score, lang: "en" })));
  });
  show(0);
  element.append(target, from);
  const count = line.translations.length - 1;
  if (count > 0) {
    const title = make("summary", { textContent: count === 1 ? "1 alternative" : `${count} alternatives` });
    element.append(make("details", {}, title, others));
  }
  element.append(attention.element);
  return element;
}

// Fills a paragraph with a text whose words can be chosen. Only one of them is a stop of the tab key.
function words(paragraph, text, choose) {
  paragraph.replaceChildren();
  let number = 0;
  for (const part of text.split(/(\s+)/)) {
    if (!part.trim()) {
      paragraph.append(part);
      continue;
    }
    const word = number++;
    paragraph.append(make("button", { type: "button", textContent: part, tabIndex: word ? -1 : 0, onclick: () => choose(word) }));
  }
  paragraph.onkeydown = (event) => {
    const buttons = [...paragraph.children];
    const at = buttons.indexOf(document.activeElement);
    const forwards = getComputedStyle(paragraph).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const to = { Home: 0, End: buttons.length - 1, ArrowLeft: at - 1, ArrowRight: at + 1 }[event.key];
    const place = event.key.startsWith("Arrow") && forwards === "ArrowLeft" ? 2 * at - to : to;
    if (!buttons[place]) return;
    event.preventDefault();
    buttons[at].tabIndex = -1;
    buttons[place].tabIndex = 0;
    buttons[place].focus();
  };
}

// Marks a word and those of the other side that it is linked to, and says so.
function chosen(paragraph, other, word, linked) {
  for (const button of document.querySelectorAll(".words button")) button.classList.remove("chosen", "linked");
  const own = paragraph.children[word];
  own.classList.add("chosen");
  const theirs = linked.map((number) => other.children[number]).filter(Boolean);
  theirs.forEach((button) => button.classList.add("linked"));
  const names = theirs.map((button) => button.textContent).join(", ");
  status.textContent = names ? `${own.textContent} — ${names}` : `${own.textContent} is aligned to no word`;
}

function attentionElement(model, line) {
  const element = make("details", {}, make("summary", { textContent: "Attention" }));
  const mapSelect = make("select", {});
  const headSelect = make("select", {});
  const box = make("div", { className: "scroll", tabIndex: 0 });
  box.setAttribute("role", "region");
  const choices = make("div", { className: "choices" }, make("label", {}, "Map ", mapSelect), make("label", {}, "Head ", headSelect));
  element.append(choices, box);
  let text = "";
  let loaded = null; // the answer that is shown

  async function load() {
    try {
      const answer = await ask("page/attention", { model: model.name, source: line.source, translation: text, map: mapSelect.value });
      loaded = answer;
      mapSelect.replaceChildren(...answer.maps.map((name) => new Option(mapName(name), name, false, name === answer.map)));
      const head = headSelect.value;
      headSelect.replaceChildren(new Option("mean of all", ""), ...answer.weights.map((_, at) => new Option(at + 1, at)));
      headSelect.value = answer.weights[head] ? head : "";
      draw();
    } catch (error) {
      box.replaceChildren(error.message);
    }
  }

  function draw() {
    const { rows, columns, weights } = loaded;
    const heads = headSelect.value === "" ? weights : [weights[headSelect.value]];
    const mean = (row, column) => heads.reduce((sum, head) => sum + head[row][column], 0) / heads.length;
    const table = make("table", {});
    const head = table.createTHead().insertRow();
    head.append(make("td", {}), ...columns.map((piece) => make("th", { scope: "col", textContent: piece })));
    const body = table.createTBody();
    rows.forEach((piece, row) => {
      const line = body.insertRow();
      line.append(make("th", { scope: "row", textContent: piece }));
      columns.forEach((other, column) => {
        const weight = mean(row, column);
        const percent = `${Math.round(100 * weight)} %`;
        const cell = line.insertCell();
        cell.style.backgroundColor = `rgb(var(--map) / ${weight.toFixed(3)})`;
        cell.title = `${piece} to ${other}: ${percent}`;
        cell.append(make("span", { textContent: percent }));
      });
    });
    box.setAttribute("aria-label", `Attention: ${mapName(loaded.map)}`);
    box.replaceChildren(table);
  }

  mapSelect.onchange = load;
  headSelect.onchange = draw;
  element.ontoggle = () => element.open && load();
  return {
    element,
    show(translation) {
      text = translation;
      if (element.open) load();
    },
  };
}

function mapName(name) {
  const layer = name.match(/layers\.(\d+)/);
  const side = name.startsWith("encoder") ? "encoder" : "decoder";
  const where = layer ? `${side}, layer ${Number(layer[1]) + 1}` : side;
  return name.endsWith("cross_attention") ? `${where}, to the text` : `${where}, to itself`;
}

function modelChosen() {
  const first = modelOf(0);
  const before = selects[1].value;
  const others = models.filter((model) => model !== first && model.source.code === first.source.code);
  selects[1].replaceChildren(new Option("no other", ""), ...others.map((model) => new Option(label(model), model.name)));
  selects[1].value = others.some((model) => model.name === before) ? before : "";
  document.getElementById("beside").hidden = !others.length;
  source.lang = first.source.code;
  document.getElementById("source-title").textContent = first.source.name;
  panels.forEach((panel, place) => {
    const model = modelOf(place);
    panel.hidden = !model;
    panel.querySelector("h2").textContent = model ? label(model) : "";
    translate(place);
  });
}

const label = (model) => `${model.source.name} to ${model.target.name}: ${model.name}`;

source.oninput = () => {
  clearTimeout(timer);
  timer = setTimeout(() => panels.forEach((_, place) => translate(place)), PAUSE);
};
selects.forEach((select) => (select.onchange = modelChosen));
ask("page/models").then((found) => {
  models = found;
  selects[0].append(...models.map((model) => new Option(label(model), model.name)));
  modelChosen();
}, (error) => (status.textContent = error.message));
