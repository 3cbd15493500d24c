// SPDX-License-Identifier: Apache-2.0
// Sphinx's weights for search results. Sphinx separates scopes by dots, C++ by colons:
// score() puts the class, function or constant that has the name sought before pages.
"use strict";

const soughtName = (new URLSearchParams(window.location.search).get("q") || "")
  .trim().replace(/\(\)$/, "").toLowerCase();

var Scorer = {
  score: ([page, title, , descr, score, , kind]) => {
    if (kind !== "object" || descr.includes("parameter")) return score;
    const name = title.toLowerCase();
    if (name !== soughtName && !name.endsWith("::" + soughtName)) return score;
    // Tensor before Tensor::Tensor, a kernel's class before that of a family of ops.
    const isRare = /^api\/(op_kernels|testing)\//.test(page);
    return score + 1000 - name.length - (isRare ? 100 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
