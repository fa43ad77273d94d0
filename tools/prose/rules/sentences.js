"use strict";
// Two rules about sentences: at most so many words, and at most one verb in the passive.

const passives = require("passive-voice");
const { StringSource } = require("textlint-util-to-string");

const END = /(?<=[.!?]["')\]]?)\s+(?=\S)/;

module.exports = function (context, { words = 30, passive = 1 } = {}) {
  const { Syntax, RuleError, report, locator } = context;
  const check = (node) => {
    const source = new StringSource(node, {
      replacer: ({ node: one, maskValue }) => (one.type === Syntax.Code ? maskValue("x") : undefined),
    });
    let start = 0;
    for (const sentence of source.toString().split(END)) {
      const count = sentence.split(/\s+/).filter((word) => /\w/.test(word)).length;
      const found = passives(sentence).map(({ index, offset }) => sentence.substr(index, offset));
      const index = source.originalIndexFromIndex(source.toString().indexOf(sentence, start)) ?? 0;
      const padding = locator.at(index);
      if (count > words) report(node, new RuleError(`${count} words in a sentence; at most ${words}`, { padding }));
      if (found.length > passive)
        report(node, new RuleError(`passives in one sentence: ${found.join(", ")}`, { padding }));
      start += sentence.length;
    }
  };
  return { [Syntax.Paragraph]: check, [Syntax.Header]: check };
};
