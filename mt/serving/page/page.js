"use strict";
// Translates the text while it is typed, with one or two models. All text is set as text content, never as HTML.

const PAUSE_MILLISECONDS = 250; // the text is translated after so long a pause in typing
const MIN_CONFIDENCE = 0.5; // a translation with less is shaded
const source = document.getElementById("source");
const glossary = document.getElementById("glossary");
const status = document.getElementById("status");
const selects = [document.getElementById("first"), document.getElementById("second")];
const panels = [...document.querySelectorAll(".panel")];
const controllers = [null, null]; // the AbortController of each panel's current request
let models = [];
let maxCharacters = Infinity; // of a text
let timer = 0;

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

async function ask(path, values, signal) {
  const body = values && JSON.stringify(values);
  const headers = body ? { "Content-Type": "application/json" } : {};
  let response, answer;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", body, headers, signal });
    answer = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (response?.ok && answer) return answer;
  // A proxy answers with pages of its own while the server is gone.
  const reason = response ? ` (a proxy answers, with status ${response.status})` : "";
  throw new Error(answer?.error || `The server cannot be reached${reason}: check that it is running, then try again`);
}

// Panels are numbered 0 and 1, like selects and controllers.
const modelOf = (panel) => models.find((model) => model.name === selects[panel].value);

async function translate(panel) {
  controllers[panel]?.abort();
  const model = modelOf(panel);
  const lines = panels[panel].querySelector(".lines");
  const copyButton = panels[panel].querySelector(".copy");
  copyButton.hidden = true;
  noteOf(copyButton).textContent = "";
  if (!model || !source.value.trim()) {
    lines.replaceChildren();
    lines.classList.remove("old");
    if (!panel) status.textContent = "";
    return;
  }
  const text = source.value;
  const controller = (controllers[panel] = new AbortController());
  lines.classList.add("old");
  status.textContent = "Translating …";
  try {
    const pairs = glossaryLines();
    const terms = pairs.filter((parts) => parts.length === 2 && parts[0] && parts[1]);
    const answer = await ask("page/translate", { model: model.name, q: text, glossary: terms }, controller.signal);
    lines.replaceChildren(...answer.map((line) => lineElement(line, model)));
    const unread = pairs.length - terms.length;
    status.textContent = unread ? `Glossary: ${unread} of ${pairs.length} lines left out, because they are not term = translation` : "";
    copyButton.hidden = false;
    copyButton.onclick = () => copy(translation(lines, text), copyButton);
  } catch (error) {
    if (error.name === "AbortError") return; // a newer request replaces this one
    lines.replaceChildren();
    status.textContent = error.message;
  }
  lines.classList.remove("old");
}

// Returns the parts of each line of the glossary that is not blank: a term and its translation, around "=" or a tab.
function glossaryLines() {
  const lines = glossary.value.split("\n").filter((line) => line.trim());
  return lines.map((line) => line.split(/[=\t]/).map((part) => part.trim()));
}

// Returns the shown translations of all lines, with the blank lines of the text.
function translation(lines, text) {
  const translations = [...lines.querySelectorAll(".of-target")].map((paragraph) => paragraph.textContent);
  const filled = text.split("\n").filter((line) => line.trim()).length;
  if (filled !== translations.length) return translations.join("\n"); // there are other line breaks, too
  return text.split("\n").map((line) => (line.trim() ? translations.shift() : "")).join("\n");
}

const noteOf = (copyButton) => copyButton.parentElement.querySelector(".copied");

// Unlike navigator.clipboard, this also works on pages without encryption.
function copy(text, button) {
  const area = make("textarea", { value: text });
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  document.querySelectorAll(".copied").forEach((note) => (note.textContent = ""));
  noteOf(button).textContent = isCopied ? "Copied" : "The browser forbids copying: select the translation and press Ctrl+C";
  area.remove();
  button.focus();
}

function lineElement(line, model) {
  const element = make("div", { className: "line" });
  const target = make("p", { className: "words of-target", lang: model.target.code, dir: "auto" });
  const from = make("p", { className: "words of-source", lang: model.source.code, dir: "auto" });
  const others = make("ol", { lang: model.target.code, dir: "auto" });
  const attention = attentionElement(model, line);
  const isNew = ({ text }, number) => line.translations.findIndex((other) => other.text === text) === number;
  const translations = line.translations.filter(isNew);
  const isUncertain = line.confidence !== null && line.confidence < MIN_CONFIDENCE; // of the first translation
  const note = make("p", { className: "score", textContent: `uncertain: confidence ${Math.min(Math.round(100 * line.confidence), 49)} %` });
  const show = (number) => {
    const shown = translations[number];
    const links = shown.alignment;
    const linkedTo = (word) => links.filter(([from]) => from === word).map(([, to]) => to);
    const linkedFrom = (word) => links.filter(([, to]) => to === word).map(([from]) => from);
    words(from, line.source, (word) => chosen(from, target, word, linkedTo(word)));
    words(target, shown.text, (word) => chosen(target, from, word, linkedFrom(word)));
    [...others.children].forEach((item, index) => item.firstChild.setAttribute("aria-pressed", index === number));
    attention.show(shown.text);
    target.classList.toggle("uncertain", isUncertain && number === 0);
    note.hidden = !isUncertain || number > 0;
  };
  translations.forEach(({ text, score: value }, number) => {
    const button = make("button", { type: "button", textContent: text, onclick: () => show(number) });
    const score = value === null ? "" : ` score ${value.toFixed(2)}`;
    others.append(make("li", {}, button, make("span", { className: "score", textContent: score, lang: "en" })));
  });
  show(0);
  element.append(target, note, from);
  const count = translations.length;
  if (count > 1) {
    const title = make("summary", { textContent: `${count} translations` });
    element.append(make("details", {}, title, others));
  }
  element.append(attention.element);
  return element;
}

// Fills a paragraph with a text, each word of which acts as a button. The tab key stops at only one of them. They are no
// button elements, because those cannot be selected.
function words(paragraph, text, choose) {
  paragraph.replaceChildren();
  let number = 0;
  let selected = ""; // what is selected when the mouse button goes down; dragging changes it
  paragraph.onmousedown = () => (selected = String(getSelection()));
  for (const part of text.split(/(\s+)/)) {
    if (!part.trim()) {
      paragraph.append(part);
      continue;
    }
    const word = number++;
    const onclick = () => (String(getSelection()) === selected || getSelection().isCollapsed) && choose(word);
    paragraph.append(make("span", { role: "button", textContent: part, tabIndex: word ? -1 : 0, onclick }));
  }
  paragraph.onkeydown = (event) => {
    const buttons = [...paragraph.children];
    const index = buttons.indexOf(document.activeElement);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(index);
    }
    const forwards = getComputedStyle(paragraph).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const to = { Home: 0, End: buttons.length - 1, ArrowLeft: index - 1, ArrowRight: index + 1 }[event.key];
    const next = event.key.startsWith("Arrow") && forwards === "ArrowLeft" ? 2 * index - to : to;
    if (!buttons[next]) return;
    event.preventDefault();
    buttons[index].tabIndex = -1;
    buttons[next].tabIndex = 0;
    buttons[next].focus();
  };
}

// Highlights a word and the words of the other paragraph that it is aligned to, and names them in the status line.
function chosen(paragraph, other, word, linked) {
  for (const button of document.querySelectorAll(".words span")) button.classList.remove("chosen", "linked");
  const own = paragraph.children[word];
  own.classList.add("chosen");
  const partners = linked.map((number) => other.children[number]).filter(Boolean);
  partners.forEach((button) => button.classList.add("linked"));
  const names = partners.map((button) => button.textContent).join(", ");
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
      headSelect.replaceChildren(new Option("mean of all", ""), ...answer.weights.map((_, index) => new Option(index + 1, index)));
      headSelect.value = answer.weights[head] ? head : "";
      draw();
    } catch (error) {
      box.replaceChildren(error.message);
    }
  }

  function draw() {
    const { map, weights } = loaded;
    // The mark of a word's start is a thick bar beside rotated text.
    const [from, to] = [loaded.source, loaded.target].map((tokens) => tokens.map((token) => token.replaceAll("▁", "_")));
    const rows = map.startsWith("encoder") ? from : to;
    const input = ["<s>", ...to.slice(0, -1)]; // of the decoder
    const columns = map.startsWith("encoder") || map.endsWith("cross_attention") ? from : input;
    const heads = headSelect.value === "" ? weights : [weights[headSelect.value]];
    const mean = (row, column) => heads.reduce((sum, head) => sum + head[row][column], 0) / heads.length;
    const table = make("table", {});
    const head = table.createTHead().insertRow();
    head.append(make("td", {}), ...columns.map((token) => make("th", { scope: "col", textContent: token })));
    const body = table.createTBody();
    rows.forEach((token, row) => {
      const line = body.insertRow();
      line.append(make("th", { scope: "row", textContent: token }));
      columns.forEach((other, column) => {
        const weight = mean(row, column);
        const percent = `${Math.round(100 * weight)} %`;
        const cell = line.insertCell();
        cell.style.backgroundColor = `rgb(var(--map) / ${weight.toFixed(3)})`;
        cell.title = `${token} to ${other}: ${percent}`;
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
  panels.forEach((panel, number) => {
    const model = modelOf(number);
    panel.hidden = !model;
    panel.querySelector("h2").textContent = model ? (selects[1].value ? label(model) : model.target.name) : "";
    translate(number);
  });
}

const label = (model) => `${model.source.name} to ${model.target.name}: ${model.name}`;

function showLength() {
  const length = [...source.value].length; // code points, which the server counts
  const shown = document.getElementById("length");
  shown.textContent = `${length.toLocaleString("en")} of at most ${maxCharacters.toLocaleString("en")} characters`;
  shown.classList.toggle("exceeded", length > maxCharacters);
}

async function load() {
  try {
    const [answer, settings] = await Promise.all([ask("page/models"), ask("frontend/settings")]);
    maxCharacters = settings.charLimit;
    models = answer;
  } catch (error) {
    status.textContent = error.message;
    return;
  }
  selects[0].append(...models.map((model) => new Option(label(model), model.name)));
  showLength();
  modelChosen();
}

function edited() {
  if (!models.length) return load(); // the server could not be reached before
  panels.forEach((_, panel) => translate(panel));
}

source.oninput = glossary.oninput = () => {
  if (models.length) showLength();
  clearTimeout(timer);
  timer = setTimeout(edited, PAUSE_MILLISECONDS);
};
selects.forEach((select) => (select.onchange = modelChosen));
load();
