const KEYS = [
  [['/'], 'search; Enter and Shift+Enter go through the hits'],
  [['\u2191', '\u2193'], 'op before, after, in the order of the program'],
  [['\u2190', '\u2192'], 'first op it reads from, first that reads it'],
  [['Home', 'End'], 'first, last op'],
  [['Enter', '\u232b'], 'into the block that the op runs, back out'],
  [['n', 'p'], 'next, previous hit'],
  [['+', '\u2212'], 'zoom; also Ctrl and the wheel'],
  [['0', '1'], 'whole block, readable size'],
  [['c', 'f'], 'colours by part or family, far edges'],
  [['Esc'], 'leave the search, then the selection'],
];

function fillHelp(dialog) {
  dialog.replaceChildren(
      make('h2', {}, 'Keys and mouse'),
      make('dl', {class: 'keys'},
          KEYS.flatMap(([keys, text]) => [make('dt', {}, keys.map((key) => make('kbd', {}, key))), make('dd', {}, text)]),
          make('dt', {}, 'Drag'), make('dd', {}, 'moves the picture; the strip at its right shows the whole block'),
          make('dt', {}, 'Point'), make('dd', {}, 'at an edge for its variables and their shapes'),
          make('dt', {}, 'Double click'), make('dd', {}, 'on a stack of boxes opens the block that it runs'),
          make('dt', {}, 'Dots'), make('dd', {}, 'at a box: edges that lead far away, drawn when it is chosen'),
          make('dt', {}, 'Search'), make('dd', {}, 'looks in all blocks; op:conv, var:tmp_0, attr:axis=1 and #12 narrow it')));
}
