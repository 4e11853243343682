// The list of keys. `keys`: [[key, ...], what they do]; `notes`: [what one does, what that does].
function fillHelp(dialog, keys, notes) {
  const rows = [...keys.map(([names, text]) => [names.map((name) => make('kbd', {}, name)), text]), ...notes];
  dialog.replaceChildren(
      make('h2', {}, 'Keys and mouse'),
      make('dl', {class: 'keys'}, rows.flatMap(([what, text]) => [make('dt', {}, what), make('dd', {}, text)])));
}
