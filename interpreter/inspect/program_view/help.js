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

const NOTES = [
  ['Drag', 'moves the picture; the strip at its right shows the whole block'],
  ['Point', 'at an edge for its variables and their shapes'],
  ['Double click', 'on a stack of boxes opens the block that it runs'],
  ['Dots', 'at a box: edges that lead far away, drawn when it is chosen'],
  ['Search', 'looks in all blocks; op:conv, var:tmp_0, attr:axis=1 and #12 narrow it'],
];
