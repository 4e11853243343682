const KEYS = [
  [['/'], 'search; Enter and Shift+Enter go through the hits'],
  [['\u2191', '\u2193'], 'instruction before, after, in order'],
  [['\u2190', '\u2192'], 'first predecessor, first successor'],
  [['Home', 'End'], 'first, last instruction'],
  [['Enter', '\u232b'], 'into the block that the instruction runs, back out'],
  [['n', 'p'], 'next, previous hit'],
  [['+', '\u2212'], 'zoom; also Ctrl and the wheel'],
  [['0', '1'], 'whole plan, readable size'],
  [['e', 's', 'v', 'b'], 'edges, shrunk edges, events, branches'],
  [['Esc'], 'leave the search, then the selection'],
];

const NOTES = [
  ['Drag', 'moves the picture; the strip at its right shows the whole plan'],
  ['Double click', 'on a stack of boxes opens the block that it runs'],
  ['Search', 'looks in all blocks; op:conv, var:tmp_0, frees:x, stream:h2d and #12 narrow it'],
];
