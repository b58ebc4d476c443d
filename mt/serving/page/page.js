"use strict";
// Translates the text while it is typed, with one or two models. All text is set as text content, never as HTML.

const PAUSE_MILLISECONDS = 250; // of typing, after which the text is translated
const MIN_CONFIDENCE = 0.5; // translations below it are shaded
const source = document.getElementById("source");
const glossary = document.getElementById("glossary");
const status = document.getElementById("status");
const selects = [document.getElementById("first"), document.getElementById("second")];
const panels = [...document.querySelectorAll(".panel")];
const controllers = [null, null]; // the AbortController of each panel's current request
let models = [];
let maxCharacters = Infinity; // of a text
let timer = 0;

function createElement(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

async function fetchJson(path, values, signal) {
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
  // While the server is down, a proxy answers with its own pages.
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
  copyNote(copyButton).textContent = "";
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
    const answer = await fetchJson("page/translate", { model: model.name, q: text, glossary: terms }, controller.signal);
    lines.replaceChildren(...answer.map((line) => lineElement(line, model)));
    const unread = pairs.length - terms.length;
    status.textContent = unread ? `Glossary: ${unread} of ${pairs.length} lines skipped; write term = translation` : "";
    copyButton.hidden = false;
    copyButton.onclick = () => copy(shownTranslation(lines, text), copyButton);
  } catch (error) {
    if (error.name === "AbortError") return; // a newer request replaces this one
    lines.replaceChildren();
    status.textContent = error.message;
  }
  lines.classList.remove("old");
}

// Returns the parts of each non-blank line of the glossary, divided by "=" or a tab: a term and its translation.
function glossaryLines() {
  const lines = glossary.value.split("\n").filter((line) => line.trim());
  return lines.map((line) => line.split(/[=\t]/).map((part) => part.trim()));
}

// Returns the displayed translations of all lines, with the blank lines of the text between them.
function shownTranslation(lines, text) {
  const translations = [...lines.querySelectorAll(".of-target")].map((paragraph) => paragraph.textContent);
  const filled = text.split("\n").filter((line) => line.trim()).length;
  if (filled !== translations.length) return translations.join("\n"); // the text has other line breaks, too
  return text.split("\n").map((line) => (line.trim() ? translations.shift() : "")).join("\n");
}

const copyNote = (copyButton) => copyButton.parentElement.querySelector(".copied");

// Copies a text. Unlike navigator.clipboard, this also works on pages without encryption.
function copy(text, button) {
  const area = createElement("textarea", { value: text });
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  document.querySelectorAll(".copied").forEach((note) => (note.textContent = ""));
  copyNote(button).textContent = isCopied ? "Copied" : "The browser forbids copying: select the translation and press Ctrl+C";
  area.remove();
  button.focus();
}

function lineElement(line, model) {
  const element = createElement("div", { className: "line" });
  const target = createElement("p", { className: "words of-target", lang: model.target.code, dir: "auto" });
  const from = createElement("p", { className: "words of-source", lang: model.source.code, dir: "auto" });
  const others = createElement("ol", { lang: model.target.code, dir: "auto" });
  const attention = attentionElement(model, line);
  const isNew = ({ text }, number) => line.translations.findIndex((other) => other.text === text) === number;
  const translations = line.translations.filter(isNew);
  const isUncertain = line.confidence !== null && line.confidence < MIN_CONFIDENCE; // of the first translation
  const note = createElement("p", { className: "score", textContent: `uncertain: confidence ${Math.min(Math.round(100 * line.confidence), 49)} %` });
  const show = (number) => {
    const shown = translations[number];
    const links = shown.alignment;
    const linkedTo = (word) => links.filter(([from]) => from === word).map(([, to]) => to);
    const linkedFrom = (word) => links.filter(([, to]) => to === word).map(([from]) => from);
    fillWords(from, line.source, (word) => highlight(from, target, word, linkedTo(word)));
    fillWords(target, shown.text, (word) => highlight(target, from, word, linkedFrom(word)));
    [...others.children].forEach((item, index) => item.firstChild.setAttribute("aria-pressed", index === number));
    attention.show(shown.text);
    target.classList.toggle("uncertain", isUncertain && number === 0);
    note.hidden = !isUncertain || number > 0;
  };
  translations.forEach(({ text, score: value }, number) => {
    const button = createElement("button", { type: "button", textContent: text, onclick: () => show(number) });
    const score = value === null ? "" : ` score ${value.toFixed(2)}`;
    others.append(createElement("li", {}, button, createElement("span", { className: "score", textContent: score, lang: "en" })));
  });
  show(0);
  element.append(target, note, from);
  const count = translations.length;
  if (count > 1) {
    const title = createElement("summary", { textContent: `${count} translations` });
    element.append(createElement("details", {}, title, others));
  }
  element.append(attention.element);
  return element;
}

// Fills a paragraph with a text whose words act as buttons. The tab key stops at only one of them. They are spans, because
// the text of button elements cannot be selected.
function fillWords(paragraph, text, choose) {
  paragraph.replaceChildren();
  let number = 0;
  let selected = ""; // the selected text when the mouse button is pressed; dragging changes it
  paragraph.onmousedown = () => (selected = String(getSelection()));
  for (const part of text.split(/(\s+)/)) {
    if (!part.trim()) {
      paragraph.append(part);
      continue;
    }
    const word = number++;
    const onclick = () => (String(getSelection()) === selected || getSelection().isCollapsed) && choose(word);
    paragraph.append(createElement("span", { role: "button", textContent: part, tabIndex: word ? -1 : 0, onclick }));
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
function highlight(paragraph, other, word, linked) {
  for (const button of document.querySelectorAll(".words span")) button.classList.remove("chosen", "linked");
  const own = paragraph.children[word];
  own.classList.add("chosen");
  const partners = linked.map((number) => other.children[number]).filter(Boolean);
  partners.forEach((button) => button.classList.add("linked"));
  const names = partners.map((button) => button.textContent).join(", ");
  status.textContent = names ? `${own.textContent} — ${names}` : `${own.textContent} is aligned to no word`;
}

function attentionElement(model, line) {
  const element = createElement("details", {}, createElement("summary", { textContent: "Attention" }));
  const mapSelect = createElement("select", {});
  const headSelect = createElement("select", {});
  const box = createElement("div", { className: "scroll", tabIndex: 0 });
  box.setAttribute("role", "region");
  const choices = createElement("div", { className: "choices" }, createElement("label", {}, "Map ", mapSelect), createElement("label", {}, "Head ", headSelect));
  element.append(choices, box);
  let text = "";
  let loaded = null; // the answer that is shown

  async function load() {
    try {
      const answer = await fetchJson("page/attention", { model: model.name, source: line.source, translation: text, map: mapSelect.value });
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
    // SentencePiece's ▁ looks like a thick bar next to rotated text.
    const [from, to] = [loaded.source, loaded.target].map((tokens) => tokens.map((token) => token.replaceAll("▁", "_")));
    const rows = map.startsWith("encoder") ? from : to;
    const input = ["<s>", ...to.slice(0, -1)]; // of the decoder
    const columns = map.startsWith("encoder") || map.endsWith("cross_attention") ? from : input;
    const heads = headSelect.value === "" ? weights : [weights[headSelect.value]];
    const mean = (row, column) => heads.reduce((sum, head) => sum + head[row][column], 0) / heads.length;
    const table = createElement("table", {});
    const head = table.createTHead().insertRow();
    head.append(createElement("td", {}), ...columns.map((token) => createElement("th", { scope: "col", textContent: token })));
    const body = table.createTBody();
    rows.forEach((token, row) => {
      const line = body.insertRow();
      line.append(createElement("th", { scope: "row", textContent: token }));
      columns.forEach((other, column) => {
        const weight = mean(row, column);
        const percent = `${Math.round(100 * weight)} %`;
        const cell = line.insertCell();
        cell.style.backgroundColor = `rgb(var(--map) / ${weight.toFixed(3)})`;
        cell.title = `${token} to ${other}: ${percent}`;
        cell.append(createElement("span", { textContent: percent }));
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

function updateModels() {
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
    const [answer, settings] = await Promise.all([fetchJson("page/models"), fetchJson("frontend/settings")]);
    maxCharacters = settings.charLimit;
    models = answer;
  } catch (error) {
    status.textContent = error.message;
    return;
  }
  selects[0].append(...models.map((model) => new Option(label(model), model.name)));
  showLength();
  updateModels();
}

function translateAll() {
  if (!models.length) return load(); // the server could not be reached when the page was loaded
  panels.forEach((_, panel) => translate(panel));
}

source.oninput = glossary.oninput = () => {
  if (models.length) showLength();
  clearTimeout(timer);
  timer = setTimeout(translateAll, PAUSE_MILLISECONDS);
};
selects.forEach((select) => (select.onchange = updateModels));
load();
