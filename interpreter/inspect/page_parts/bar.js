// What pages have around their canvas: the search field, the list of keys, the splitter.
function connectSearch(viewer, canvas) {
  byId('query').addEventListener('input', () => viewer.search(byId('query').value));
  byId('query').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const back = event.key === 'ArrowUp' || (event.key === 'Enter' && event.shiftKey);
      viewer.goToHit(viewer.hits.at + (back ? -1 : 1));
      event.preventDefault();
    } else if (event.key === 'Escape') {
      viewer.search('');
      canvas.focus();
    }
    event.stopPropagation();
  });
  byId('previous').addEventListener('click', () => viewer.goToHit(viewer.hits.at - 1));
  byId('next').addEventListener('click', () => viewer.goToHit(viewer.hits.at + 1));
}

function connectHelp() {
  byId('help-button').addEventListener('click', () => byId('help').showModal());
  byId('help').addEventListener('click', (event) => {
    if (event.target === byId('help')) byId('help').close();
  });
}

function connectSplitter() {
  const splitter = byId('splitter');
  splitter.addEventListener('pointerdown', (event) => {
    splitter.setPointerCapture(event.pointerId);
    splitter.classList.add('dragging');
    event.preventDefault();
  });
  splitter.addEventListener('pointermove', (event) => {
    if (!splitter.classList.contains('dragging')) return;
    const width = Math.min(Math.max(innerWidth - event.clientX, 260), innerWidth - 320);
    byId('details').style.width = `${width}px`;
  });
  splitter.addEventListener('pointerup', () => splitter.classList.remove('dragging'));
}

// Runs the action of a pressed key, unless the key belongs to a control or the browser.
function runKey(event, actions) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
  // Lists have keys of their own, and Enter presses the button that has the focus.
  const control = event.target.closest?.('select, button');
  if (control?.tagName === 'SELECT' || (control && event.key === 'Enter')) return;
  const action = actions[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
}
